"""The tools that every session is offered, one module per family."""

from runtime.ports.clock import Clock
from runtime.ports.fetch import Fetch
from runtime.ports.sandbox import Sandbox
from runtime.tools.base import AnyTool, SkillReader
from runtime.tools.builtin.ask import AskUser
from runtime.tools.builtin.files import EditFile, ReadFile, WriteFile
from runtime.tools.builtin.grep import Grep
from runtime.tools.builtin.listing import GlobFiles, ListDir, ResolvePath
from runtime.tools.builtin.shell import Exec, ExecSettings
from runtime.tools.builtin.skills import UseSkill
from runtime.tools.builtin.web import WebFetch


def builtin_tools(
    *,
    sandbox: Sandbox,
    fetch: Fetch,
    skills: SkillReader,
    clock: Clock,
    commands: ExecSettings,
) -> tuple[AnyTool, ...]:
    """All of them, in the order in which the prompt lists them."""
    return (
        ReadFile(),
        WriteFile(),
        EditFile(),
        ListDir(),
        GlobFiles(),
        Grep(clock),
        ResolvePath(),
        Exec(sandbox, commands),
        WebFetch(fetch),
        AskUser(),
        UseSkill(skills),
    )
