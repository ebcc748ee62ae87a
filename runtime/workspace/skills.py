"""Skills: `skills/<name>/SKILL.md`, Markdown behind YAML frontmatter (CTX-10).

A skill with a mistake in it is listed as unavailable with the reason, not passed over. A skill is
text: whatever it says, it grants no tools.
"""

import os
import re
import shutil
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from runtime.domain.printable import printable_name
from runtime.domain.value import Value
from runtime.workspace.content import SKILL_FILE, SKILLS_FOLDER, Skill, SkillSource
from runtime.workspace.frontmatter import FrontmatterProblem, parse
from runtime.workspace.text_files import Skipped, read_text, real

MAX_SKILLS = 200
"""Of one folder; a prompt that lists more is of no use."""
_NAME = r"[a-z0-9][a-z0-9-]{0,63}"

Program = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.+-]*$")]
Variable = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
FindProgram = Callable[[str], str | None]


class Requires(Value):
    """What a skill needs: programs on the PATH and environment variables, by name."""

    programs: tuple[Program, ...] = Field(default=(), max_length=20)
    env: tuple[Variable, ...] = Field(default=(), max_length=20)


class Header(BaseModel):
    """The frontmatter. Other fields are kept and mean nothing here."""

    model_config = ConfigDict(frozen=True, extra="allow")

    name: Annotated[str, StringConstraints(pattern=f"^{_NAME}$")]
    description: Annotated[
        str, StringConstraints(strip_whitespace=True, min_length=1, max_length=1024)
    ]
    requires: Requires = Requires()


@dataclass(frozen=True, slots=True)
class ReadSkill:
    """A skill with its text; `programs` are those whose presence its availability hangs on."""

    skill: Skill
    body: str = ""
    programs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SkillShelf:
    """The skills of a workspace, built-in ones first; the last of a name wins.

    `builtin` is a folder with a `skills` folder in it. `env` are the names of the environment
    variables that are set. Every method looks at the files as they are now and blocks on them.
    """

    root: Path
    builtin: Path | None = None
    env: Collection[str] = field(default=frozenset())
    find_program: FindProgram = shutil.which

    def places(self) -> Iterator[tuple[SkillSource, Path]]:
        """The folders that hold a `skills` folder, in order."""
        if self.builtin is not None:
            yield "built-in", self.builtin
        yield "workspace", self.root

    def load(self) -> tuple[tuple[ReadSkill, ...], tuple[str, ...]]:
        """All skills by name, and a warning for each that has a problem."""
        found: dict[str, ReadSkill] = {}
        warnings: list[str] = []
        for source, place in self.places():
            if leaves(place):
                warnings.append(f"{SKILLS_FOLDER} is skipped: it is a link that leaves {place}")
            names = skill_folders(place)
            if len(names) > MAX_SKILLS:
                warnings.append(f"{SKILLS_FOLDER}: only the first {MAX_SKILLS} skills are read")
            for folder in names[:MAX_SKILLS]:
                read = self._read(source, place, folder)
                if read is not None:
                    found[read.skill.name] = read
        for read in found.values():
            if read.skill.reason and not read.body:
                file = f"{SKILLS_FOLDER}/{read.skill.name}/{SKILL_FILE}"
                warnings.append(f"{file} is not used: {read.skill.reason}")
        return tuple(found[name] for name in sorted(found)), tuple(warnings)

    def read(self, name: str) -> str | None:
        """The body of a skill, or None where there is none of this name or it is unavailable."""
        if re.fullmatch(_NAME, name) is None:
            return None
        for source, place in reversed(tuple(self.places())):
            read = self._read(source, place, name)
            if read is not None:
                return read.body if read.skill.available else None
        return None

    def names(self) -> tuple[str, ...]:
        """The names of the available skills."""
        return tuple(read.skill.name for read in self.load()[0] if read.skill.available)

    def _read(self, source: SkillSource, place: Path, folder: str) -> ReadSkill | None:
        try:
            text = read_text(place, f"{SKILLS_FOLDER}/{folder}/{SKILL_FILE}")
            if text is None:
                return None
            header, body = parse(text, Header)
            if header.name != folder:
                said = f"its name is {header.name}, but its folder is {shown(folder)}"
                raise FrontmatterProblem(said)
        except (Skipped, FrontmatterProblem) as problem:
            return ReadSkill(Skill(shown(folder), "", source, reason=str(problem)))
        skill = Skill(
            name=folder,
            description=" ".join(header.description.split()),
            source=source,
            reason=self._lacks(header.requires),
        )
        return ReadSkill(skill, body or header.description, header.requires.programs)

    def _lacks(self, requires: Requires) -> str:
        programs = [name for name in requires.programs if self.find_program(name) is None]
        variables = [name for name in requires.env if name not in self.env]
        lacks = [f"the program {name} is not installed" for name in programs]
        lacks += [f"the environment variable {name} is not set" for name in variables]
        return "; ".join(lacks)


def skill_folders(place: Path) -> list[str]:
    """The names in the `skills` folder of `place` that may be skills, sorted; hidden ones not."""
    names: list[str] = []
    if leaves(place):
        return names
    # A folder that is not there, or not readable, holds no skills.
    with suppress(OSError), os.scandir(place / SKILLS_FOLDER) as entries:
        names = [one.name for one in entries if one.name[:1] != "." and one.is_dir()]
    return sorted(names)


def leaves(place: Path) -> bool:
    """Whether the `skills` folder of `place` is really somewhere else."""
    return real(place) not in real(place / SKILLS_FOLDER).parents


def shown(name: str) -> str:
    """The name of a folder as a prompt or a log may show it: one line, at most 64 characters."""
    return "".join("?" if c in '<>`"' else c for c in printable_name(name, 64))
