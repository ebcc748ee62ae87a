"""The tools that every session is offered, one module per family."""

from dataclasses import dataclass
from typing import Final

from runtime.domain.tools import Effect
from runtime.ports.clock import Clock
from runtime.ports.fetch import Fetch
from runtime.ports.sandbox import Sandbox
from runtime.tools.base import AnyTool, SkillReader
from runtime.tools.builtin.ask import AskUser
from runtime.tools.builtin.clarifying import RequestParentClarification
from runtime.tools.builtin.files import EditFile, ReadFile, WriteFile
from runtime.tools.builtin.grep import Grep
from runtime.tools.builtin.listing import GlobFiles, ListDir, ResolvePath
from runtime.tools.builtin.messaging import SendMessage
from runtime.tools.builtin.patching import ApplyPatch
from runtime.tools.builtin.sending import SendFile
from runtime.tools.builtin.shell import Exec, ExecSettings
from runtime.tools.builtin.skills import UseSkill
from runtime.tools.builtin.spawning import SessionsSpawn
from runtime.tools.builtin.subagents import AgentsList, Subagents
from runtime.tools.builtin.web import WebFetch
from runtime.tools.family import Family
from runtime.tools.outgoing import Sending


@dataclass(frozen=True, slots=True)
class Face:
    """What of a tool can be known before it is made."""

    name: str
    effect: Effect


FACES: Final = tuple(
    Face(tool.name, tool.effect)
    for tool in (
        ReadFile,
        WriteFile,
        EditFile,
        ApplyPatch,
        ListDir,
        GlobFiles,
        Grep,
        ResolvePath,
        Exec,
        WebFetch,
        AskUser,
        SendFile,
        SendMessage,
        SessionsSpawn,
        RequestParentClarification,
        Subagents,
        AgentsList,
        UseSkill,
    )
)
"""All that `builtin_tools` makes, in its order."""


def builtin_tools(
    *,
    sandbox: Sandbox,
    fetch: Fetch,
    skills: SkillReader,
    clock: Clock,
    commands: ExecSettings,
    sending: Sending | None = None,
    family: Family | None = None,
) -> tuple[AnyTool, ...]:
    """All of them, in the order in which the prompt lists them; nothing goes anywhere without
    `sending`, and nobody looks after subagents without `family`."""
    sends = () if sending is None else (SendFile(sending), SendMessage(sending))
    there: list[AnyTool] = []
    family_tools = () if family is None else (Subagents(family), AgentsList(family, there))
    there += (
        ReadFile(),
        WriteFile(),
        EditFile(),
        ApplyPatch(),
        ListDir(),
        GlobFiles(),
        Grep(clock),
        ResolvePath(),
        Exec(sandbox, commands),
        WebFetch(fetch),
        AskUser(),
        *sends,
        SessionsSpawn(),
        RequestParentClarification(),
        *family_tools,
        UseSkill(skills),
    )
    return tuple(there)
