"""The tools that every session is offered, one module per family."""

from collections.abc import Sequence
from typing import Final

from runtime.ports.clock import Clock
from runtime.ports.fetch import Fetch
from runtime.ports.sandbox import Sandbox
from runtime.tools.base import AnyTool, Face, SkillReader
from runtime.tools.builtin.apply_patch import ApplyPatch
from runtime.tools.builtin.ask import AskUser
from runtime.tools.builtin.directories import GlobFiles, ListDir, ResolvePath
from runtime.tools.builtin.files import EditFile, ReadFile, WriteFile
from runtime.tools.builtin.grep import Grep
from runtime.tools.builtin.send_file import SendFile
from runtime.tools.builtin.send_message import SendMessage
from runtime.tools.builtin.shell import Exec, ExecSettings
from runtime.tools.builtin.skills import UseSkill
from runtime.tools.builtin.web import WebFetch
from runtime.tools.outgoing_files import Sending

FACES: Final = tuple(
    Face(tool.name, tool.effect)
    for tool in (
        *(ReadFile, WriteFile, EditFile, ApplyPatch, ListDir, GlobFiles, Grep, ResolvePath),
        *(Exec, WebFetch, AskUser, SendFile, SendMessage, UseSkill),
    )
)
"""All that `builtin_tools` makes itself, in its order."""


def builtin_tools(
    *,
    sandbox: Sandbox,
    fetch: Fetch,
    skills: SkillReader,
    clock: Clock,
    commands: ExecSettings,
    sending: Sending | None = None,
    of_features: Sequence[AnyTool] = (),
) -> tuple[AnyTool, ...]:
    """All of them and those of features, in the order in which the prompt lists them; nothing goes
    anywhere without `sending`."""
    sends = () if sending is None else (SendFile(sending), SendMessage(sending))
    return (
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
        *of_features,
        UseSkill(skills),
    )
