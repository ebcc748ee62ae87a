"""Commands, through the sandbox only (TOOL-5)."""

import asyncio
import codecs
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from pydantic import Field
from typing_extensions import override

from runtime.domain.errors import InvalidInput, ToolError
from runtime.domain.tools import Effect, Touches
from runtime.ports.sandbox import (
    Sandbox,
    SandboxCommand,
    SandboxExit,
    SandboxLimits,
    SandboxProcess,
    SandboxUnavailable,
)
from runtime.tools.base import Arguments, Tool, ToolContext, ToolOutput
from runtime.tools.binary import describe, is_binary
from runtime.tools.builtin.common import guard, off_loop
from runtime.tools.builtin.reading import READING_ENV
from runtime.tools.hidden import (
    PRIVATE,
    file_name,
    hold_notes,
    is_folder,
    outputs_folder,
    uploads_folder,
    worktrees_folder,
)

_KEPT = 8 * 1024 * 1024
"""Bytes of output that are kept; a command may write more, which is counted and dropped."""
_EMITTED = 64 * 1024
"""Characters of live progress for one command."""
DEFAULT_TIMEOUT_S = 60.0
MAX_TIMEOUT_S = 600.0
UNCONFINED = "none"
"""The name of the sandbox that hides nothing."""


@dataclass(frozen=True, slots=True)
class ExecSettings:
    """What commands are granted. `env` is all they see beyond the sandbox's minimum."""

    env: Mapping[str, str] = field(default_factory=dict)
    network: bool = False
    max_timeout_s: float = MAX_TIMEOUT_S
    limits: SandboxLimits = field(default_factory=SandboxLimits)
    hidden: tuple[str, ...] = ()


class ExecArguments(Arguments):
    command: str = Field(min_length=1, max_length=100_000)
    working_dir: str = "."
    timeout_s: float = Field(default=DEFAULT_TIMEOUT_S, gt=0)
    background: bool = False


class Exec(Tool[ExecArguments]):
    """One shell command. The result leads with how it ended."""

    name = "exec"
    description = "Run a shell command in the sandbox."
    arguments = ExecArguments
    effect = Effect.ONCE
    example = '{"command": "git status --short", "working_dir": ".", "timeout_s": 60}'

    def __init__(self, sandbox: Sandbox, settings: ExecSettings) -> None:
        self._sandbox = sandbox
        self._settings = settings

    @override
    def touches(self, arguments: ExecArguments, context: ToolContext) -> Touches:
        return Touches(
            reads=(str(guard(context).resolve(arguments.working_dir)),),
            writes=() if context.read_only else _roots(context),
            command=arguments.command,
            network=("*",) if self._network(context) else (),
            subject=arguments.command,
        )

    @override
    async def run(self, arguments: ExecArguments, context: ToolContext) -> ToolOutput:
        self._refuse(arguments, context)
        command = await off_loop(lambda: self._command(arguments, context), arguments.working_dir)
        collected = _Collected(context.emit)
        try:
            async with await self._sandbox.start(command) as process:
                end = await _finish(process, collected, context.call_id)
        except (SandboxUnavailable, InvalidInput) as error:
            raise ToolError(f"the command was not run: {error}") from error
        return ToolOutput(
            f"{_ending(end, arguments.timeout_s)}\n{collected.told()}",
            untrusted=self._network(context),
            source="output of a command with network access",
        )

    def _network(self, context: ToolContext) -> bool:
        return self._settings.network and not context.read_only

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
        if arguments.background:
            raise ToolError(
                "background: commands in the background are not available yet; "
                "run it in the foreground, with timeout_s if it takes long"
            )
        if arguments.timeout_s > self._settings.max_timeout_s:
            raise ToolError(f"timeout_s: must be at most {self._settings.max_timeout_s:g}")

    def _command(self, arguments: ExecArguments, context: ToolContext) -> SandboxCommand:
        with guard(context).directory(arguments.working_dir) as (_, spot):
            cwd = str(spot.path)
        limits = self._settings.limits
        readable, hidden = _outputs(context)
        received, others = _uploads(context)
        roots = (*_roots(context), *received)
        reads = context.read_only
        return SandboxCommand(
            command=arguments.command,
            cwd=cwd,
            # Whoever allowed it, policy or a person: in a read-only mode no command can write.
            writable=() if reads else roots,
            readable=(*roots, *readable) if reads else readable,
            unlinked=tuple(str(path) for path in context.reads),
            hidden=(*self._settings.hidden, *hidden, *others, *_notes(context)),
            network=self._network(context),
            env=READING_ENV if reads else self._settings.env,
            limits=SandboxLimits(
                memory_bytes=limits.memory_bytes,
                processes=limits.processes,
                file_bytes=limits.file_bytes,
                open_files=limits.open_files,
                timeout_s=arguments.timeout_s,
            ),
        )


async def _finish(process: SandboxProcess, collected: "_Collected", call: str) -> SandboxExit:
    async with asyncio.TaskGroup() as tasks:
        # Beside the reading: what a command left in the background holds the output open until
        # the wait ends it.
        waiting = tasks.create_task(process.wait(), name=f"exec-wait-{call}")
        while piece := await process.read():
            collected.add(piece)
    return waiting.result()


def _notes(context: ToolContext) -> tuple[str, ...]:
    """The private notes that a command does not find; a child could write them otherwise."""
    closed = context.child and not context.read_only
    notes = context.notes and not closed
    if not notes and not context.read_only:
        hold_notes(context.workspace)
    return replace(context, notes=notes).hidden.masks


def _roots(context: ToolContext) -> tuple[str, ...]:
    """The folders that may be written; one inside of what is hidden would be shown again."""
    hidden = context.hidden
    roots = [root.resolve() for root in context.roots]
    return tuple(str(root) for root in roots if not hidden.covers(root))


def _outputs(context: ToolContext) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What to show and what to hide of the gateway's folder in the workspace.

    The folder can be read, the results that other sessions kept in it cannot. It is there before
    the command is, because what is made later is not hidden.
    """
    kept = outputs_folder(context.workspace)
    if not context.notes:
        worktrees_folder(context.workspace)
    if kept is None:
        gateways = context.workspace.resolve() / PRIVATE
        return ((str(gateways),) if is_folder(gateways) else ()), ()
    own = kept / file_name(context.session_id)
    return (str(kept.parent), *([str(own)] if is_folder(own) else [])), (str(kept),)


def _uploads(context: ToolContext) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What to show and what to hide of the files that people sent: those of other sessions."""
    folder = uploads_folder(context.workspace)
    if folder is None:
        return (), ()
    hidden = context.hidden
    shown = [one for one in sorted(folder.iterdir()) if not hidden.covers(one) and is_folder(one)]
    return tuple(str(one) for one in shown), (str(folder),)


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

    def told(self) -> str:
        if not self._size:
            return "[no output]"
        raw = bytes(self._kept)
        if is_binary(raw):
            return f"[binary output: {describe(raw, self._size)}; write it to a file instead]"
        text = raw.decode(errors="replace")
        if self._size > len(raw):
            text += f"\n[output beyond {_KEPT:,} bytes was dropped: {self._size:,} in all]"
        return text


def _ending(end: SandboxExit, timeout_s: float) -> str:
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
