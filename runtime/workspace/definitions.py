"""Definitions of subagents: Markdown behind YAML frontmatter, from three kinds of folders (SUB-2).

Built-in ones first, then those of the user, then the workspace's; the last of a name wins. A file
with a mistake in it is listed with the reason and takes its name all the same: whoever wrote a
narrower definition over a wider one must not get the wider one because of a misspelt field.
"""

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
)

from runtime.workspace.content import AGENTS_FOLDER
from runtime.workspace.frontmatter import FrontmatterProblem, parse
from runtime.workspace.reading import Skipped, read_text, real
from runtime.workspace.skills import shown

FOLDERS: Final = (f".claude/{AGENTS_FOLDER}", AGENTS_FOLDER)
"""Below a workspace, the later of which wins."""
MAX_FILES: Final = 200
"""Of one folder with all that is below it."""
MAX_DEPTH: Final = 8
SUFFIX: Final = ".md"
DEFAULT_TURNS: Final = 50
_NAME: Final = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"

DefinitionSource = Literal["built-in", "user", "workspace"]
PermissionModeName = Literal["bypassPermissions", "acceptEdits", "default", "dontAsk", "plan"]
IsolationName = Literal["full", "selective", "shared", "worktree"]


def _listed(value: object) -> object:
    """A YAML list as it is; a string as its parts between commas, and none where it is empty."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return value


Turns = Annotated[int, Field(ge=1, le=1000)]
Names = Annotated[tuple[str, ...], BeforeValidator(_listed)]


class Header(BaseModel):
    """The frontmatter. Other fields are kept and reported."""

    model_config = ConfigDict(frozen=True, extra="allow")

    name: Annotated[str, StringConstraints(pattern=_NAME)] | None = None
    description: Annotated[str, StringConstraints(strip_whitespace=True, max_length=1024)] = ""
    tools: Names | None = None
    disallowed_tools: Names = Field(default=(), alias="disallowedTools")
    model: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = None
    permission_mode: PermissionModeName | None = Field(default=None, alias="permissionMode")
    max_turns: Turns | None = Field(default=None, alias="maxTurns")
    max_iterations: Turns | None = None
    skills: Names = ()
    mcp_servers: Names = Field(default=(), alias="mcpServers")
    memory: str | None = None
    background: bool = False
    isolation: IsolationName | None = None
    triggers: Names = ()


@dataclass(frozen=True, slots=True)
class Definition:
    """A kind of subagent that somebody described.

    ``tools`` None leaves the choice to the type it refines, an empty tuple means none at all.
    ``file`` names it for people, relative to its folder; ``reason`` says why it cannot be used,
    ``notes`` what was passed over in it. ``extra`` are the fields that mean nothing here.
    """

    name: str
    source: DefinitionSource
    file: str
    description: str = ""
    prompt: str = ""
    tools: tuple[str, ...] | None = None
    disallowed_tools: tuple[str, ...] = ()
    model: str | None = None
    permission_mode: PermissionModeName | None = None
    max_turns: int = DEFAULT_TURNS
    skills: tuple[str, ...] = ()
    mcp_servers: tuple[str, ...] = ()
    memory: str | None = None
    background: bool = False
    isolation: IsolationName | None = None
    triggers: tuple[str, ...] = ()
    reason: str = ""
    notes: tuple[str, ...] = ()
    extra: Mapping[str, JsonValue] = field(default_factory=dict)

    @property
    def available(self) -> bool:
        """Whether a child can be made of it."""
        return not self.reason

    def with_tools(self, known: Collection[str]) -> "Definition":
        """Without the tools that do not exist, each of which is noted; none left means none."""
        if self.tools is None:
            return self
        missing = [name for name in self.tools if not _exists(name, known)]
        kept = tuple(name for name in self.tools if _exists(name, known))
        notes = [f"the tool {shown(name)} does not exist" for name in missing]
        if missing and not kept:
            notes.append("none of its tools exists, so it has none")
        return replace(self, tools=kept, notes=(*self.notes, *notes))


@dataclass(frozen=True, slots=True)
class Definitions:
    """What was found: by name, and a warning for each file that has a problem."""

    items: tuple[Definition, ...]
    warnings: tuple[str, ...]

    def get(self, name: str) -> Definition | None:
        """The definition of this very name, usable or not."""
        return next((one for one in self.items if one.name == name), None)


@dataclass(frozen=True, slots=True)
class DefinitionShelf:
    """The definitions that a session sees, read anew at every call; every method blocks on files.

    ``builtin`` is a folder with an ``agents`` folder in it, ``user`` are folders of definitions,
    the later of which wins, ``root`` is the workspace.
    """

    root: Path
    builtin: Path | None = None
    user: Sequence[Path] = ()

    def places(self) -> Iterator[tuple[DefinitionSource, Path, str]]:
        """Source, top folder and the folder below it, the later of which wins."""
        if self.builtin is not None:
            yield "built-in", self.builtin, AGENTS_FOLDER
        for folder in self.user:
            yield "user", folder, ""
        for below in FOLDERS:
            yield "workspace", self.root, below

    def load(self, known_tools: Collection[str] | None = None) -> Definitions:
        """All definitions. With `known_tools` the names of others are dropped and noted."""
        found: dict[str, Definition] = {}
        warnings: list[str] = []
        for source, top, below in self.places():
            files = _files(top, below)
            if len(files) > MAX_FILES:
                place = below or str(top)
                warnings.append(f"{place}: only the first {MAX_FILES} definitions are read")
            here: dict[str, Definition] = {}
            for file in files[:MAX_FILES]:
                read = _read(source, top, file)
                if read.name in here:
                    first = here[read.name].file
                    read = replace(read, reason=f"{first} beside it has the same name")
                here[read.name] = read if known_tools is None else read.with_tools(known_tools)
            found |= here
        items = tuple(found[name] for name in sorted(found))
        for one in items:
            if one.reason:
                warnings.append(f"{one.file} is not used: {one.reason}")
            warnings.extend(f"{one.file}: {note}" for note in one.notes)
        return Definitions(items, tuple(warnings))


def _exists(name: str, known: Collection[str]) -> bool:
    """`mcp__server__*` and the like stand for tools that come and go."""
    return name in known or name == "*" or name.startswith("mcp__")


def _files(top: Path, below: str) -> list[str]:
    """The definitions below a folder, relative to `top`, sorted; what is hidden or a link is not
    followed, and `below` itself must not lead out of `top`."""
    start = top / below
    if below and real(top) not in real(start).parents:
        return []
    found: list[str] = []
    for folder, folders, names in os.walk(start):
        inside = Path(folder).relative_to(top)
        deep = len(inside.parts) - len(Path(below).parts) >= MAX_DEPTH
        folders[:] = [] if deep else sorted(name for name in folders if name[:1] != ".")
        with suppress(UnicodeError):
            found += [
                (inside / name).as_posix()
                for name in sorted(names)
                if name.endswith(SUFFIX) and name[:1] != "."
            ]
        if len(found) > MAX_FILES:
            break
    return found


def _read(source: DefinitionSource, top: Path, file: str) -> Definition:
    stem = shown(Path(file).stem)
    try:
        text = read_text(top, file)
        if text is None:
            return Definition(stem, source, shown(file), reason="it is gone")
        header, body = parse(text, Header)
    except (Skipped, FrontmatterProblem) as problem:
        return Definition(stem, source, shown(file), reason=str(problem))
    extra = dict(header.model_extra or {})
    name = header.name or stem
    return Definition(
        name=name,
        source=source,
        file=shown(file),
        description=" ".join(header.description.split()),
        prompt=body,
        tools=header.tools,
        disallowed_tools=header.disallowed_tools,
        model=None if header.model == "inherit" else header.model,
        permission_mode=header.permission_mode,
        max_turns=header.max_turns or header.max_iterations or DEFAULT_TURNS,
        skills=header.skills,
        mcp_servers=header.mcp_servers,
        memory=header.memory,
        background=header.background,
        isolation=header.isolation,
        triggers=header.triggers,
        reason=_unusable(name, body),
        notes=tuple(f"the field {shown(one)} means nothing here" for one in sorted(extra)),
        extra=extra,
    )


def _unusable(name: str, body: str) -> str:
    if not body.strip():
        return "it has no body, which is the subagent's prompt"
    if re.match(_NAME, name) is None:
        return "its file's name is no name for a subagent: give it a field name"
    return ""
