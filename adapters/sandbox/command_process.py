"""A running command as the gateway sees it: its pipes, its deadline, its end.

The supervisor (`launcher`) does the waiting and the killing; this side asks for it. Nothing here
waits on a thread or keeps a task: the end of the supervisor is the end of its status pipe.
"""

import ast
import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Self

from adapters.sandbox import (
    broker,  # noqa: F401 - the supervisor, which writes no bytecode, finds that of this import
    deleted_files,  # noqa: F401 - the same
    launcher,
    process_tree,
)
from adapters.sandbox.cgroups import CommandGroup
from adapters.sandbox.launch_spec import LaunchSpec, to_bytes
from adapters.sandbox.pipe_ends import ReadPipe, WritePipe, open_pipe
from runtime.ports.clock import Clock, Timer
from runtime.ports.sandbox import (
    TASK_TOKEN,
    LimitHit,
    ProcessIdentity,
    SandboxCommand,
    SandboxExit,
    SandboxUnavailable,
    TreeEnd,
)

_CHUNK = 64 * 1024
_IMPORT_ROOT = str(Path(__file__).resolve().parents[2])
_START_GUARD_S = 60
# How long a process may take to obey SIGKILL before it is reported as remaining.
_KILL_WAIT_S = 5.0
# How often what is left of a tree is looked for. The first look finds who could still begin more.
_SWEEPS = 5


@dataclass(frozen=True, slots=True)
class DiskUse:
    """Bytes that were written, and since when, in nanoseconds of the host's own time."""

    written: int
    since_ns: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What a backend worked out for one command.

    `shell_status` says that the head's exit code follows the shell's convention for signals.
    `charge` is told what the command used of the disk.
    `machinery` is how many levels of the tree below the supervisor are the backend's own.
    """

    spec: LaunchSpec
    token: str
    group: CommandGroup
    shell_status: bool = False
    machinery: int = 0
    charge: Callable[["DiskUse"], None] | None = None

    def free(self) -> None:
        """Give back what the plan holds on this host."""
        self.group.remove()
        if self.spec.temporary is not None:
            shutil.rmtree(self.spec.temporary, ignore_errors=True)


class _Status(asyncio.Protocol):
    """The status pipe: lines from the supervisor, and its end when the supervisor is gone."""

    def __init__(self) -> None:
        self._waiters: list[asyncio.Event] = []
        self._buffer = b""
        self.first = asyncio.Event()
        """Set by the first line, or by the end where none comes."""
        self.gone = False

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if b"\n" in self._buffer:
            self.first.set()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self.gone = True
        for waiter in (self.first, *self._waiters):
            waiter.set()

    def messages(self) -> list[dict[str, object]]:
        return [ast.literal_eval(line.decode()) for line in self._buffer.splitlines()]

    async def ended(self, within: float | None = None, clock: Clock | None = None) -> bool:
        """Wait for the end; False when `within` seconds of `clock` passed first."""
        if self.gone or (within is not None and within <= 0):
            return self.gone
        waiter = asyncio.Event()
        self._waiters.append(waiter)
        timer = clock.call_later(within, waiter.set) if clock and within is not None else None
        try:
            await waiter.wait()
        finally:
            self._waiters.remove(waiter)
            if timer is not None:
                timer.cancel()
        return self.gone


class _Pipes:
    """The pipes between the gateway and the supervisor. Each file owns its descriptor."""

    def __init__(self, *, stdin: bool) -> None:
        self._files: list[FileIO] = []
        self.stdin: FileIO | None = None
        try:
            self.control_out, self.control = self._keep(open_pipe())
            self.status, self.status_in = self._keep(open_pipe())
            self.output, self.output_in = self._keep(open_pipe())
            if stdin:
                self.stdin_out, self.stdin = self._keep(open_pipe())
            else:
                self.stdin_out = FileIO(os.devnull)
                self._files.append(self.stdin_out)
        except BaseException:
            self.close()
            raise

    def _keep(self, pipe: tuple[FileIO, FileIO]) -> tuple[FileIO, FileIO]:
        self._files += pipe
        return pipe

    def spawn(self, plan: Plan) -> "subprocess.Popen[bytes]":
        """Start the supervisor; its ends of the pipes are closed here, come what may."""
        try:
            with tempfile.TemporaryFile() as file:
                file.write(to_bytes(plan.spec))
                file.flush()
                file.seek(0)
                given = tuple(end.fileno() for end in (file, self.control_out, self.status_in))
                return subprocess.Popen(
                    [sys.executable, "-I", "-S", "-B", "-c", launcher.BOOT, _IMPORT_ROOT]
                    + [str(descriptor) for descriptor in given],
                    stdin=self.stdin_out,
                    stdout=self.output_in,
                    stderr=self.output_in,
                    pass_fds=(*given, *plan.spec.keep_fds),
                    # The head carries the token too, so that it is found in a later life.
                    env={TASK_TOKEN: plan.token},
                    cwd="/",
                    start_new_session=True,
                )
        except OSError as error:
            raise SandboxUnavailable(f"The supervisor could not be started: {error}.") from error
        finally:
            for end in (self.control_out, self.status_in, self.output_in, self.stdin_out):
                end.close()

    def close(self) -> None:
        """Close both sides."""
        for file in self._files:
            file.close()


class LaunchedProcess:
    """`SandboxProcess` over the supervisor. Made by `launch_command` only."""

    def __init__(
        self, plan: Plan, *, clock: Clock, child: "subprocess.Popen[bytes]", pipes: _Pipes
    ) -> None:
        self._plan = plan
        self._clock = clock
        self._child = child
        self._control = pipes.control
        self._status = _Status()
        self._status_pipe = ReadPipe(pipes.status)
        self._output = asyncio.StreamReader(limit=_CHUNK)
        self._output_pipe = ReadPipe(pipes.output)
        self._stdin = None if pipes.stdin is None else WritePipe(pipes.stdin)
        self._started = clock.monotonic()
        self._deadline: Timer | None = None
        self._timed_out = False
        self._conclusion: asyncio.Task[SandboxExit] | None = None
        head = process_tree.read_process(child.pid)
        ticks = head.started_ticks if head is not None else 0
        self.identity = ProcessIdentity(child.pid, ticks, plan.token)

    async def open(self, timeout_s: float | None) -> None:
        """Connect the pipes and wait until the command runs, or raise why it does not."""
        self._status_pipe.connect(self._status)
        self._output_pipe.connect(asyncio.StreamReaderProtocol(self._output))
        try:
            async with asyncio.timeout(_START_GUARD_S):
                await self._status.first.wait()
        except TimeoutError as late:
            raise SandboxUnavailable("The supervisor did not answer.") from late
        first = next(iter(self._status.messages()), {"error": "the supervisor died"})
        if "error" in first:
            raise SandboxUnavailable(f"The command was not started: {first['error']}.")
        if timeout_s is not None:
            self._deadline = self._clock.call_later(timeout_s, self._time_out)

    async def read(self) -> bytes:
        return await self._output.read(_CHUNK)

    async def write(self, data: bytes) -> None:
        if self._stdin is None:
            raise BrokenPipeError("the command's standard input is closed")
        await self._stdin.write(data)

    def close_stdin(self) -> None:
        if self._stdin is not None:
            self._stdin.finish()

    async def wait(self) -> SandboxExit:
        try:
            await self._status.ended()
        except asyncio.CancelledError:
            self.kill()
            await self._status.ended(_KILL_WAIT_S, self._clock)
            await self._settle()
            raise
        return await self._settle()

    def kill(self) -> None:
        """Have the supervisor kill the whole tree, at once and without waiting for it."""
        self._control.close()

    def _time_out(self) -> None:
        self._timed_out = True
        self.kill()

    async def terminate(self, grace_s: float) -> TreeEnd:
        if self._status.gone:
            await self._settle()
            supported = process_tree.supported()
            return TreeEnd(True, matched_target=False, signal_sent=False, supported=supported)
        if not self._control.closed:
            # Tells the supervisor to leave alone, for now, what outlives the first process.
            self._control.write(b"T")
        found = await asyncio.to_thread(process_tree.find_tree, self.identity)
        above = self._plan.machinery
        commands = [each for each, depth in found.items() if depth is None or depth > above]
        sent = process_tree.send(commands, signal.SIGTERM)
        if not await self._status.ended(grace_s, self._clock):
            self.kill()
            sent += len(commands)
            await self._status.ended(_KILL_WAIT_S, self._clock)
        if self._status.gone:
            # Reaped first, or the supervisor on its last instruction would count as remaining.
            await self._settle()
        remaining = await asyncio.to_thread(process_tree.find_tree, self.identity, found)
        return TreeEnd(
            confirmed=self._status.gone and not remaining,
            matched_target=bool(found),
            signal_sent=sent > 0,
            supported=process_tree.supported(),
            remaining_pids=tuple(sorted(each.pid for each in remaining)),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        del kind, error, trace
        await self.abandon()

    async def abandon(self) -> None:
        """Kill what runs and free everything, also when the start did not finish."""
        try:
            self.kill()
            if self._status.first.is_set():
                await self._status.ended(_KILL_WAIT_S, self._clock)
        finally:
            # Also where the wait was cancelled.
            try:
                await self._settle()
            finally:
                self._status_pipe.close()
                self._output_pipe.close()
                if self._stdin is not None:
                    self._stdin.close()

    async def _settle(self) -> SandboxExit:
        """The end, once: reap the supervisor, read what happened, free what was held.

        A caller that is cancelled does not undo that. To conclude a second time would signal and
        remove what others have by then.
        """
        if self._conclusion is None:
            if self._deadline is not None:
                self._deadline.cancel()
            self.kill()
            concluding = asyncio.to_thread(self._conclude)
            self._conclusion = asyncio.create_task(concluding, name="command-conclude")
        end = await asyncio.shield(self._conclusion)
        self.close_stdin()
        return end

    def _conclude(self) -> SandboxExit:
        told = self._said("wait_status")
        wait_status = told if isinstance(told, int) else None
        if wait_status is None:
            # The supervisor was killed before it could finish: do its work for it.
            self._sweep()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(_KILL_WAIT_S)
        code = -signal.SIGKILL if wait_status is None else os.waitstatus_to_exitcode(wait_status)
        if self._plan.shell_status and code - 128 in set(signal.Signals):
            code = 128 - code
        limit = self._limit(code)
        used, since = self._said("disk_used"), self._said("started_ns")
        if self._plan.charge is not None and isinstance(used, int) and isinstance(since, int):
            self._plan.charge(DiskUse(used, since))
        self._plan.free()
        return SandboxExit(
            code=code if code >= 0 else 128 - code,
            signal=None if code >= 0 else -code,
            timed_out=self._timed_out,
            duration_s=self._clock.monotonic() - self._started,
            limit=limit,
        )

    def _said(self, name: str) -> object:
        """What the supervisor wrote under this name, or None."""
        lines = (line[name] for line in self._status.messages() if name in line)
        return next(lines, None)

    def _sweep(self) -> None:
        """Kill what is left of the tree. What was begun while the list was read is in the next."""
        for _ in range(_SWEEPS):
            found = list(process_tree.find_tree(self.identity))
            listed = (process_tree.read_process(pid) for pid in self._plan.group.pids())
            found += [process for process in listed if process is not None]
            if not found:
                return
            process_tree.send(found, signal.SIGKILL)
            # A group can be removed only when nobody is left in it.
            process_tree.await_end(found, _KILL_WAIT_S)

    def _limit(self, code: int) -> LimitHit | None:
        if self._timed_out:
            return "time"
        said = self._said("limit")
        if said == "disk" or said == "free_space":
            return said
        if code == -signal.SIGXFSZ:
            return "file_size"
        return self._plan.group.limit_hit()


async def launch_command(plan: Plan, command: SandboxCommand, *, clock: Clock) -> LaunchedProcess:
    """Start what `plan` says; on any failure nothing is left running or held."""
    with contextlib.ExitStack() as undo:
        undo.callback(plan.free)
        try:
            pipes = _Pipes(stdin=command.stdin == "open")
            undo.callback(pipes.close)
            child = pipes.spawn(plan)
        finally:
            for descriptor in plan.spec.keep_fds:
                os.close(descriptor)
        process = LaunchedProcess(plan, clock=clock, child=child, pipes=pipes)
        undo.pop_all()
    try:
        await process.open(command.limits.timeout_s)
    except BaseException:
        await process.abandon()
        raise
    return process
