"""Commands, through the sandbox only (TOOL-5)."""

import asyncio
import codecs
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal, Protocol

from pydantic import Field, field_validator
from typing_extensions import override

from runtime.domain.errors import InvalidInput, ToolError
from runtime.domain.tools import Effect, Touches
from runtime.policy.command_folders import folders_begun
from runtime.ports.sandbox import (
    Sandbox,
    SandboxCommand,
    SandboxExit,
    SandboxLimits,
    SandboxProcess,
    SandboxUnavailable,
)
from runtime.tools.base import Arguments, Tool, ToolContext, ToolOutput
from runtime.tools.binary_files import describe, is_binary, is_nearly_text
from runtime.tools.builtin.file_context import guard, off_loop
from runtime.tools.git_programs import GitEnvironment, hardened
from runtime.tools.grants import grants_of, roots_of

_KEPT = 8 * 1024 * 1024
"""Bytes of output that are kept; a command may write more, which is counted and dropped."""
_EMITTED = 64 * 1024
"""Characters of live progress for one command."""
DEFAULT_TIMEOUT_S = 60.0
BACKGROUND_S: Final = 24 * 3600.0
"""How long a command in the background may take."""
MAX_TIMEOUT_S = 600.0
_REFUSED = "transport 'file' not allowed"
"""What git says where it may not speak to another folder."""
UNCONFINED = "none"
"""The name of the sandbox that hides nothing."""


@dataclass(frozen=True, slots=True)
class ExecSettings:
    """What commands are granted. `env` is all they see beyond the sandbox's minimum. `background`
    runs those that outlive their turn; without it there are none."""

    env: Mapping[str, str] = field(default_factory=dict)
    network: bool = False
    max_timeout_s: float = MAX_TIMEOUT_S
    limits: SandboxLimits = field(default_factory=SandboxLimits)
    hidden: tuple[str, ...] = ()
    background: "Background | None" = None


class ExecArguments(Arguments):
    command: str = Field(min_length=1, max_length=100_000)
    working_dir: str = "."
    timeout_s: float = Field(default=DEFAULT_TIMEOUT_S, gt=0)
    background: bool = False
    notify: Literal["done", "changes", "silent"] = Field(
        default="done", description="what the person hears of a command in the background"
    )

    @field_validator("command", "working_dir")
    @classmethod
    def _no_nul(cls, text: str) -> str:
        if "\0" in text:
            raise ValueError("a NUL character ends a text for the system: leave it out")
        return text


@dataclass(frozen=True, slots=True)
class BackgroundCommand:
    """A command that was decided about and is to run in the background. `unchanged` raises
    `ToolError` where it would run something else by now; who starts it asks that last."""

    command: SandboxCommand
    text: str
    session_id: str
    run_id: str
    notify: Literal["done", "changes", "silent"]
    unchanged: Callable[[], None]


class Background(Protocol):
    """Runs commands that outlive the turn which asked for them (TOOL-6)."""

    async def start(self, begun: BackgroundCommand) -> str:
        """Start a command; the id of its task. Raises `ToolError`."""
        ...


@dataclass(frozen=True, slots=True)
class CommandOutcome:
    """How a command ended, also in words, and what it printed: empty where that is nothing."""

    end: SandboxExit
    output: str
    ending: str


class Exec(Tool[ExecArguments]):
    """One shell command. The result leads with how it ended."""

    name = "exec"
    own_words = True
    description = "Run a shell command in the working folder, sandboxed."
    arguments = ExecArguments
    effect = Effect.ONCE
    example = '{"command": "git status --short", "working_dir": ".", "timeout_s": 60}'

    def __init__(self, sandbox: Sandbox, settings: ExecSettings) -> None:
        self._sandbox = sandbox
        self._settings = settings

    @override
    def touches(self, arguments: ExecArguments, context: ToolContext) -> Touches:
        folder = str(guard(context).resolve(arguments.working_dir))
        return Touches(
            reads=(folder,),
            writes=() if context.read_only else roots_of(context),
            command=arguments.command,
            folder=folder,
            network=("*",) if _network(context, self._settings) else (),
            subject=arguments.command,
        )

    @override
    async def run(self, arguments: ExecArguments, context: ToolContext) -> ToolOutput:
        self._refuse(arguments, context)
        granted = await off_loop(
            lambda: _decided(arguments, context, self._settings), arguments.working_dir
        )
        background = self._settings.background
        if background is not None and arguments.background:
            return await _begin(background, granted.command, arguments, context)
        end, collected = await self._run(granted, context)
        output = collected.told()
        return ToolOutput(
            f"{_ending(end, self._settings.limits, arguments.timeout_s)}\n"
            f"{output}{granted.trouble(output)}",
            untrusted=_network(context, self._settings),
            source="output of a command with network access",
            failed=end.code != 0 or end.timed_out,
        )

    async def outcome(self, arguments: ExecArguments, context: ToolContext) -> CommandOutcome:
        """Run a command that was allowed, for whoever judges it by its end and not by words.

        Raises `ToolError` where it was not run."""
        self._refuse(arguments, context)
        granted = await off_loop(
            lambda: _decided(arguments, context, self._settings), arguments.working_dir
        )
        end, collected = await self._run(granted, context)
        ending = _ending(end, self._settings.limits, arguments.timeout_s)
        return CommandOutcome(end, collected.told() if collected.size else "", ending)

    async def _run(
        self, granted: "Granted", context: ToolContext
    ) -> "tuple[SandboxExit, _Collected]":
        collected = _Collected(context.emit)
        try:
            async with await self._sandbox.start(granted.command) as process:
                end = await _finish(process, collected, context.call_id)
        except (SandboxUnavailable, InvalidInput) as error:
            raise ToolError(f"the command was not run: {error}") from error
        return end, collected

    def _refuse(self, arguments: ExecArguments, context: ToolContext) -> None:
        if self._sandbox.name == UNCONFINED and context.read_only:
            raise ToolError(
                "the command was not run: this session is read-only, and commands run without a "
                "sandbox that could hold them to that; use the file tools instead"
            )
        if self._sandbox.name == UNCONFINED and not context.notes:
            raise ToolError(
                "the command was not run: private notes are closed here, and commands run without "
                "a sandbox that could hide them; use the file tools instead"
            )
        if arguments.background and self._settings.background is None:
            raise ToolError(
                "background: commands in the background are not available here; "
                "run it in the foreground, with timeout_s if it takes long"
            )
        most = BACKGROUND_S if arguments.background else self._settings.max_timeout_s
        if arguments.timeout_s > most:
            raise ToolError(f"timeout_s: must be at most {most:g}")


async def _begin(
    background: Background,
    command: SandboxCommand,
    arguments: ExecArguments,
    context: ToolContext,
) -> ToolOutput:
    named = "timeout_s" in arguments.model_fields_set
    timeout_s = arguments.timeout_s if named else BACKGROUND_S
    begun = BackgroundCommand(
        replace(command, limits=replace(command.limits, timeout_s=timeout_s)),
        text=arguments.command,
        session_id=context.session_id,
        run_id=context.run_id,
        notify=arguments.notify,
        unchanged=context.unchanged,
    )
    task_id = await background.start(begun)
    told = {
        "done": "The person is told here when it ends.",
        "changes": "The person is told here of each change.",
        "silent": "Nobody is told when it ends.",
    }
    return ToolOutput(
        f"[runs in the background as the task {task_id}]\n{told[arguments.notify]} "
        "task_output shows what it prints, task_write types into it, task_stop ends it."
    )


@dataclass(frozen=True, slots=True)
class Granted:
    """A command with all that it is granted, and with what git finds in it."""

    command: SandboxCommand
    git: GitEnvironment

    def trouble(self, output: str) -> str:
        """What is to be said of git behind the output of the command."""
        if self.git.problem:
            return f"\n[git does not start here: {self.git.problem}]"
        if self.git.alone and _REFUSED in output:
            return f"\n[git cannot fetch from or push to other folders here: {self.git.alone}]"
        return ""


def _decided(arguments: ExecArguments, context: ToolContext, settings: ExecSettings) -> Granted:
    """As `command_of`, which may take long: what was allowed is compared behind it."""
    granted = command_of(arguments, context, settings)
    context.unchanged()
    return granted


def command_of(arguments: ExecArguments, context: ToolContext, settings: ExecSettings) -> Granted:
    """The command with all that it is granted; looks at the files as they are now.

    Raises `ToolError` for a working folder that cannot be had.
    """
    with guard(context).directory(arguments.working_dir) as (_, spot):
        cwd = str(spot.path)
    # A child reads the private notes by tools, not by commands that may write (SUB-16).
    closed = context.child and not context.read_only
    grants = grants_of(replace(context, notes=context.notes and not closed))
    roots = map(Path, roots_of(context))
    goes = folders_begun(arguments.command)
    begun = [Path(cwd), *(Path(cwd, one) for one in goes.spellings)]
    reading = context.read_only
    git = hardened(begun, roots, told=goes.told, reading=reading, granted=settings.env)
    command = SandboxCommand(
        command=arguments.command,
        cwd=cwd,
        writable=grants.writable,
        readable=grants.readable,
        unlinked=grants.unlinked,
        hidden=(*settings.hidden, *grants.hidden),
        network=_network(context, settings),
        env=git.variables,
        limits=replace(settings.limits, timeout_s=arguments.timeout_s),
        session=context.session_id,
    )
    return Granted(command, git)


def _network(context: ToolContext, settings: ExecSettings) -> bool:
    return settings.network and not context.read_only


async def _finish(process: SandboxProcess, collected: "_Collected", call: str) -> SandboxExit:
    async with asyncio.TaskGroup() as tasks:
        # Beside the reading: what a command left in the background holds the output open until
        # the wait ends it.
        waiting = tasks.create_task(process.wait(), name=f"exec-wait-{call}")
        while piece := await process.read():
            collected.add(piece)
    return waiting.result()


class _Collected:
    """Output so far: the head that is kept, the count of all, and what was shown live."""

    def __init__(self, emit: Callable[[str], None]) -> None:
        self._emit = emit
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._kept = bytearray()
        self._size = 0
        self._emitted = 0

    def add(self, piece: bytes) -> None:
        self._size += len(piece)
        self._kept += piece[: max(_KEPT - len(self._kept), 0)]
        text = ""
        if self._emitted < _EMITTED:
            text = self._decoder.decode(piece)[: _EMITTED - self._emitted]
            self._emitted += len(text)
        # Also what is not shown any more says that the command is at work (SUB-21).
        self._emit(text)

    @property
    def size(self) -> int:
        """Bytes that were printed."""
        return self._size

    def told(self) -> str:
        if not self._size:
            return "[no output]"
        raw = bytes(self._kept)
        if is_binary(raw) and not is_nearly_text(raw):
            return f"[binary output: {describe(raw, self._size)}; write it to a file instead]"
        text = raw.decode(errors="replace")
        if self._size > len(raw):
            text += f"\n[output beyond {_KEPT:,} bytes was dropped: {self._size:,} in all]"
        return text


def _ending(end: SandboxExit, limits: SandboxLimits, timeout_s: float) -> str:
    if end.limit == "disk":
        used = f"it used more than {(limits.disk_bytes or 0) // 1024**2:,} MB of disk"
        return f"[ended: {used}, all commands of this session together, {end.duration_s:.1f} s]"
    if end.limit == "free_space":
        left = f"less than {limits.free_bytes // 1024**2:,} MB of disk were left"
        return f"[ended: {left}, {end.duration_s:.1f} s]"
    if end.timed_out:
        how = f"timed out after {timeout_s:g} s and was killed"
    elif end.signal is not None:
        how = f"killed by {_signal(end.signal)} (exit code {end.code})"
    else:
        how = f"exit code {end.code}"
    met = "" if end.limit in {None, "time"} else f", met its limit of {end.limit}"
    return f"[{how}{met}, {end.duration_s:.1f} s]"


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
