"""One definition of a subagent: Markdown behind YAML frontmatter (SUB-2).

What is wrong with a file is said by field and rule. Where it cannot be used, `reason` says why;
what was passed over in it stands in `problems`, and the rest of it holds.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
)

from runtime.domain.decisions import PermissionMode
from runtime.workspace.frontmatter import FrontmatterProblem, parse
from runtime.workspace.skills import shown
from runtime.workspace.text_files import Skipped, read_text

DEFAULT_TURNS: Final = 50
PATTERN: Final = "mcp__"
"""How the names of tools begin that come and go with their servers; they may be patterns."""
_NAME: Final = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"

DefinitionSource = Literal["built-in", "user", "workspace"]
IsolationName = Literal["full", "selective", "shared", "worktree"]


def _listed(value: object) -> object:
    """A YAML list as it is; a string as its parts between commas, and none where it is empty."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise ValueError("should be a list of names, or names between commas")
    return value


def _named(value: object) -> object:
    """A name in the form that can be asked for."""
    if not isinstance(value, str) or re.match(_NAME, value) is None:
        raise ValueError("should be 1 to 64 letters, digits, - and _, of which - and _ not first")
    return value


Turns = Annotated[int, Field(ge=1, le=1000)]
Names = Annotated[tuple[str, ...], BeforeValidator(_listed)]


class Header(BaseModel):
    """The frontmatter. Other fields are kept and reported.

    ``tools`` None leaves the choice to the type it refines, an empty tuple means none at all.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    name: Annotated[str, BeforeValidator(_named)] | None = None
    description: Annotated[
        str,
        StringConstraints(strip_whitespace=True, max_length=1024),
        AfterValidator(lambda text: " ".join(text.split())),
    ] = ""
    tools: Names | None = None
    disallowed_tools: Names = Field(default=(), alias="disallowedTools")
    model: Annotated[
        Annotated[str, StringConstraints(min_length=1, max_length=200)] | None,
        AfterValidator(lambda name: None if name == "inherit" else name),
    ] = None
    permission_mode: PermissionMode | None = Field(default=None, alias="permissionMode")
    max_turns: Turns | None = Field(default=None, alias="maxTurns")
    max_iterations: Turns | None = None
    skills: Names = ()
    mcp_servers: Names = Field(default=(), alias="mcpServers")
    memory: str | None = None
    background: bool = False
    isolation: IsolationName | None = None
    triggers: Names = ()


@dataclass(frozen=True, slots=True)
class Known:
    """The names that there are. `models` are those that are offered; `skills` None: not looked."""

    tools: Collection[str]
    models: Collection[str]
    skills: Collection[str] | None = None


@dataclass(frozen=True, slots=True)
class Definition:
    """A kind of subagent that somebody described.

    ``file`` names it for people; ``reason`` says why it cannot be used, ``problems`` what was
    passed over in it.
    """

    name: str
    source: DefinitionSource
    file: str
    header: Header = field(default_factory=Header)
    prompt: str = ""
    reason: str = ""
    problems: tuple[str, ...] = ()

    @property
    def available(self) -> bool:
        """Whether a child can be made of it."""
        return not self.reason

    @property
    def max_turns(self) -> int:
        """How many steps a run may take, before its parent's limit."""
        return self.header.max_turns or self.header.max_iterations or DEFAULT_TURNS

    @property
    def notes(self) -> tuple[str, ...]:
        """What of it means nothing here and is kept all the same; no mistake."""
        extra = sorted(self.header.model_extra or {})
        return tuple(f"{shown(one)}: this field means nothing here" for one in extra)

    def checked(self, known: Known) -> "Definition":
        """Without the tools, the model and the skills that are not `known`, each of them told."""
        said = self.header
        problems = [_missing("tools", one, known.tools) for one in said.tools or () if one]
        problems += [_missing("disallowedTools", one, known.tools) for one in said.disallowed_tools]
        tools = None if said.tools is None else tuple(n for n in said.tools if _there(n, known))
        if said.tools and not tools:
            problems.append("tools: none of them exists, so it has none")
        model = said.model
        if model is not None and model not in known.models:
            near = _near(model, known.models)
            problems.append(f"model: {shown(model)} is not offered here, so another is used{near}")
            model = None
        skills = said.skills
        if known.skills is not None:
            problems += [_missing("skills", one, known.skills) for one in skills]
            skills = tuple(one for one in skills if one in known.skills)
        told = tuple(one for one in problems if one)
        header = said.model_copy(update={"tools": tools, "model": model, "skills": skills})
        return replace(self, header=header, problems=told)


def read(source: DefinitionSource, top: Path, file: str) -> Definition:
    """The definition in `file` below `top`; one that cannot be used says why. Blocks on files."""
    stem = shown(Path(file).stem)
    # Two folders of a person may hold files of one name.
    label = f"{top}/{shown(file)}" if source == "user" else shown(file)
    try:
        text = read_text(top, file)
        if text is None:
            return Definition(stem, source, label, reason="there is no such file")
        header, body = parse(text, Header)
    except (Skipped, FrontmatterProblem) as problem:
        return Definition(stem, source, label, reason=str(problem))
    name = header.name or stem
    return Definition(name, source, label, header, prompt=body, reason=_unusable(name, body))


def _unusable(name: str, body: str) -> str:
    if not body.strip():
        return "body: it has no body, which is the subagent's prompt"
    if re.match(_NAME, name) is None:
        return "name: its file's name is no name for a subagent, so give it this field"
    return ""


def _there(name: str, known: Known) -> bool:
    return name in known.tools or name == "*" or name.startswith(PATTERN)


def _missing(field_name: str, name: str, known: Collection[str]) -> str:
    """What is wrong with a name of a field; nothing where it exists or stands for what may."""
    if name in known or (field_name != "skills" and (name == "*" or name.startswith(PATTERN))):
        return ""
    return f"{field_name}: {shown(name)} does not exist{_near(name, known)}"


def _near(name: str, known: Collection[str]) -> str:
    close = get_close_matches(name[:64].lower(), sorted(known), n=3, cutoff=0.6)
    return f"; near it: {', '.join(close)}" if close else ""
