"""What a workspace holds, as values: identity files, the long-term notes, the skills.

Pure: how the files are found and read is `runtime.workspace.snapshot`'s.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

IDENTITY_FILES = ("AGENTS.md", "SOUL.md", "USER.md", "TOOLS.md", "IDENTITY.md")
"""In the order of the prompt (CTX-2)."""
MEMORY_FILE = "memory/MEMORY.md"
SKILLS_FOLDER = "skills"
AGENTS_FOLDER = "agents"
PERSONAS_FOLDER = "personas"
SKILL_FILE = "SKILL.md"

SkillSource = Literal["built-in", "workspace"]


@dataclass(frozen=True, slots=True)
class Skill:
    """One skill as the index shows it (CTX-10); its text is read on demand and grants no tools.

    `reason` says why a skill is not available and is empty where it is.
    """

    name: str
    description: str
    source: SkillSource
    reason: str = ""

    @property
    def available(self) -> bool:
        """Whether the skill can be used now."""
        return not self.reason


@dataclass(frozen=True, slots=True)
class WorkspaceSnapshot:
    """The workspace at one moment. Two snapshots with one digest say the same to a model.

    `identity` holds texts by file name, absent files left out; `memory` is the long-term notes.
    `warnings` name what was skipped and why, one sentence each, for the operator. `persona` is
    whose the identity files are, empty for the workspace's own (CTX-11).
    """

    root: Path = field(compare=False)
    identity: Mapping[str, str] = field(compare=False)
    memory: str | None = field(compare=False)
    skills: tuple[Skill, ...] = field(compare=False)
    warnings: tuple[str, ...] = field(compare=False)
    digest: str
    persona: str = field(default="", compare=False)


def snapshot_of(
    root: Path,
    *,
    identity: Mapping[str, str],
    memory: str | None,
    skills: Iterable[Skill],
    warnings: Iterable[str] = (),
    persona: str = "",
) -> WorkspaceSnapshot:
    """A snapshot with the digest of its content; the root counts, warnings do not."""
    skills = tuple(skills)
    parts = [str(root), "" if memory is None else f"memory {memory}"]
    parts += [f"{name} {identity[name]}" for name in IDENTITY_FILES if name in identity]
    parts += [f"{one.name} {one.source} {one.reason} {one.description}" for one in skills]
    parts += [f"persona {persona}"] if persona else []
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        raw = part.encode("utf-8", "surrogateescape")
        digest.update(len(raw).to_bytes(8))
        digest.update(raw)
    return WorkspaceSnapshot(
        root=root,
        identity=dict(identity),
        memory=memory,
        skills=skills,
        warnings=tuple(warnings),
        digest=digest.hexdigest(),
        persona=persona,
    )


def with_persona(
    live: WorkspaceSnapshot, persona: str, files: Mapping[str, str]
) -> WorkspaceSnapshot:
    """The workspace with a persona's identity files in place of its own: what the persona has not
    is left out. Notes and skills stay the workspace's."""
    return snapshot_of(
        live.root,
        identity=files,
        memory=live.memory,
        skills=live.skills,
        warnings=live.warnings,
        persona=persona,
    )
