"""A workspace to run tools in, as the model does: by the name of a tool and JSON arguments."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import JsonValue

from runtime.domain.tools import ToolCall, ToolResult, Touches
from runtime.features.schedules.tools import schedule_tools
from runtime.features.subagents.agent_messages import How, Word
from runtime.features.subagents.family import AgentFamily, Detail, Household
from runtime.features.subagents.rows.agent_tree import AgentRow
from runtime.features.subagents.spawn.agent_types import Types
from runtime.features.subagents.tools import (
    AgentsList,
    RequestParentClarification,
    SessionsSpawn,
    Subagents,
)
from runtime.features.tasks.tools import TOOLS as TASK_TOOLS
from runtime.ports.clock import Timer
from runtime.ports.sandbox import (
    ProcessIdentity,
    Sandbox,
    SandboxCommand,
    SandboxProcess,
    TreeEnd,
)
from runtime.sessions.recipients import Recipient
from runtime.tools.base import AnyTool, ToolContext, ToolOutput
from runtime.tools.builtin import builtin_tools
from runtime.tools.builtin.shell import ExecSettings
from runtime.tools.outgoing_files import Room, Sending, SendLimits, room_for
from runtime.tools.output import to_result
from runtime.tools.registry import Registry
from runtime.tools.seen_versions import SeenFiles
from runtime.workspace.layout import FILES, Layout
from tests.fakes.fetch import FakeFetch


@dataclass
class HandTimer:
    """A timer that fires when a test says so."""

    seconds: float
    callback: Callable[[], None]
    cancelled: bool = False

    def cancel(self) -> None:
        self.cancelled = True


@dataclass
class StillClock:
    """Time that never moves; `timers` are fired by hand."""

    timers: list[HandTimer] = field(default_factory=list)

    def now_ms(self) -> int:
        return 0

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("no tool waits on the clock")

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        self.timers.append(HandTimer(seconds, callback))
        return self.timers[-1]


class NoSandbox:
    """For tests that run no command."""

    name = "none"

    async def start(self, command: SandboxCommand) -> SandboxProcess:
        raise AssertionError("no command is run here")

    async def end_tree(self, identity: ProcessIdentity, grace_s: float) -> TreeEnd:
        raise AssertionError("no command is run here")

    def describe(self) -> str:
        raise AssertionError("no command is run here")


class NoFamily:
    """For tests that look after no subagents."""

    async def look(self, session_id: str) -> Household:
        raise AssertionError("nobody is looked at here")

    async def detail(self, row: AgentRow) -> Detail:
        raise AssertionError("nobody is looked at here")

    async def wait(self, session_ids: Collection[str], seconds: float) -> Sequence[str]:
        raise AssertionError("nobody is waited for here")

    async def tell(self, word: Word) -> How:
        raise AssertionError("nobody is told anything here")

    async def stop(self, session_id: str, reason: str) -> bool:
        raise AssertionError("nobody is stopped here")

    async def types(self, session_id: str, tools: Sequence[AnyTool]) -> Types:
        raise AssertionError("no types are asked for here")


class NoUnits:
    """For tests that keep nothing."""


class Skills:
    """Skills by name."""

    def __init__(self, bodies: Mapping[str, str]) -> None:
        self._bodies = bodies

    def read(self, name: str) -> str | None:
        return self._bodies.get(name)

    def names(self) -> Sequence[str]:
        return tuple(self._bodies)


@dataclass
class Desk:
    """A session at work in the workspace at `workspace`; what is live is in `seen`."""

    workspace: Path
    extra: tuple[Path, ...] = ()
    fetch: FakeFetch = field(default_factory=FakeFetch)
    sandbox: Sandbox = field(default_factory=NoSandbox)
    commands: ExecSettings = field(default_factory=ExecSettings)
    skills: Skills = field(default_factory=lambda: Skills({}))
    seen: list[str] = field(default_factory=list)
    files: SeenFiles = field(default_factory=SeenFiles)
    session: str = "ses_1"
    notes: bool = True
    child: bool = False
    room: Room = field(default_factory=lambda: room_for(SendLimits(), "test", 0))
    redact: Callable[[str], str] = str
    recipients: tuple[Recipient, ...] = ()
    family: AgentFamily = field(default_factory=NoFamily)
    made: list[AnyTool] = field(default_factory=list)

    async def _recipients(self, _run_id: str, key: str) -> Sequence[Recipient]:
        return [one for one in self.recipients if key in ("", one.key)]

    async def _room(self, _run_id: str) -> Room:
        return self.room

    @property
    def folder(self) -> Path:
        """The working folder."""
        return self.workspace / FILES

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.registry = Registry(
            builtin_tools(
                sandbox=self.sandbox,
                fetch=self.fetch,
                skills=self.skills,
                clock=StillClock(),
                commands=self.commands,
                sending=Sending(self._room, self.redact, self._recipients),
                of_features=(
                    SessionsSpawn(),
                    RequestParentClarification(),
                    Subagents(self.family),
                    AgentsList(self.family, self.made),
                    *schedule_tools(NoUnits()),  # type: ignore[arg-type]  # never asked
                    *(tool(NoUnits()) for tool in TASK_TOOLS),  # type: ignore[arg-type]  # never asked
                ),
            )
        )
        self.made.extend(self.registry.tools)

    def context(self, call_id: str = "call_1") -> ToolContext:
        return ToolContext(
            session_id=self.session,
            run_id="run_1",
            call_id=call_id,
            layout=Layout.of(self.workspace),
            roots=self.extra,
            files=self.files,
            emit=self.seen.append,
            notes=self.notes,
            child=self.child,
        )

    def touches(self, tool: str, **arguments: JsonValue) -> Touches:
        return self.registry.prepare(call(tool, arguments)).touches(self.context())

    async def run(self, tool: str, **arguments: JsonValue) -> ToolOutput:
        return await self.registry.prepare(call(tool, arguments)).run(self.context())

    async def result(self, tool: str, **arguments: JsonValue) -> ToolResult:
        asked = call(tool, arguments)
        output = await self.registry.prepare(asked).run(self.context())
        return to_result(asked, output, context=self.context())


def call(tool: str, arguments: Mapping[str, JsonValue] | str) -> ToolCall:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return ToolCall(id="call_1", name=tool, arguments=text)
