"""A `Sandbox` without processes: commands are coroutines that the test hands in.

It keeps the port's promises about output, input, ends and time, and confines nothing.
"""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Self

from runtime.domain.errors import InvalidInput
from runtime.ports.clock import Clock
from runtime.ports.sandbox import (
    TASK_TOKEN,
    ProcessIdentity,
    SandboxCommand,
    SandboxExit,
    TreeEnd,
)

_CHUNK = 64 * 1024


class FakeStdio:
    """What a fake command has: its environment, its input, its output, and SIGTERM as an event."""

    def __init__(self, env: Mapping[str, str], *, open_stdin: bool) -> None:
        self.env = dict(env)
        self.terminated = asyncio.Event()
        self.output: asyncio.Queue[bytes] = asyncio.Queue(maxsize=1)
        self.input = asyncio.StreamReader()
        if not open_stdin:
            self.input.feed_eof()

    async def write(self, data: bytes) -> None:
        """Print; waits for the reader, as a full pipe would."""
        for start in range(0, len(data), _CHUNK):
            await self.output.put(data[start : start + _CHUNK])


Program = Callable[[FakeStdio], Awaitable[int]]
"""A fake command; it returns its exit code and may be cancelled, which stands for SIGKILL."""


async def forever(stdio: FakeStdio) -> int:
    """A program that does nothing until it is ended, and obeys SIGTERM."""
    await stdio.terminated.wait()
    return 128 + signal.SIGTERM


def obeying(program: Program) -> Program:
    """A program that ends at SIGTERM, whatever it is at."""

    async def run(stdio: FakeStdio) -> int:
        async with asyncio.TaskGroup() as group:
            work = group.create_task(_code(program, stdio), name="fake work")
            ended = group.create_task(forever(stdio), name="fake signal")
            done, left = await asyncio.wait({work, ended}, return_when=asyncio.FIRST_COMPLETED)
            for task in left:
                task.cancel()
        return done.pop().result()

    return run


async def _code(program: Program, stdio: FakeStdio) -> int:
    return await program(stdio)


class FakeProcess:
    """`SandboxProcess` over one coroutine, which runs in a task of this process."""

    def __init__(
        self, program: Program, stdio: FakeStdio, command: SandboxCommand, clock: Clock
    ) -> None:
        self._stdio = stdio
        self._clock = clock
        self._started = clock.monotonic()
        self._timed_out = False
        self._token = stdio.env[TASK_TOKEN]
        self._task = asyncio.create_task(self._run(program), name=f"fake {command.command}")
        timeout_s = command.limits.timeout_s
        self._deadline = (
            clock.call_later(timeout_s, self._time_out) if timeout_s is not None else None
        )

    async def _run(self, program: Program) -> int:
        code = 128 + signal.SIGKILL
        try:
            code = await program(self._stdio)
        finally:
            self._ended_s = self._clock.monotonic() - self._started
        return code

    def _kill(self) -> None:
        self._task.cancel()

    def _time_out(self) -> None:
        self._timed_out = True
        self._task.cancel()

    @property
    def identity(self) -> ProcessIdentity:
        return ProcessIdentity(pid=4242, started_ticks=1, token=self._token)

    async def read(self) -> bytes:
        queue = self._stdio.output
        getting = asyncio.create_task(queue.get(), name="fake read")
        try:
            await asyncio.wait({getting, self._task}, return_when=asyncio.FIRST_COMPLETED)
            if getting.done():
                return getting.result()
        finally:
            getting.cancel()
        return queue.get_nowait() if not queue.empty() else b""

    async def write(self, data: bytes) -> None:
        if self._task.done():
            raise BrokenPipeError("the command has ended")
        self._stdio.input.feed_data(data)

    def close_stdin(self) -> None:
        self._stdio.input.feed_eof()

    async def wait(self) -> SandboxExit:
        try:
            await asyncio.wait({self._task})
        except asyncio.CancelledError:
            self._task.cancel()
            await asyncio.wait({self._task})
            raise
        return self._exit()

    def _exit(self) -> SandboxExit:
        if self._deadline is not None:
            self._deadline.cancel()
        killed = self._task.cancelled()
        code = 128 + signal.SIGKILL if killed else self._task.result()
        return SandboxExit(
            code=code,
            signal=code - 128 if code > 128 else None,
            timed_out=self._timed_out,
            duration_s=self._ended_s,
            limit="time" if self._timed_out else None,
        )

    async def terminate(self, grace_s: float) -> TreeEnd:
        if self._task.done():
            return TreeEnd(True, matched_target=False, signal_sent=False, supported=True)
        self._stdio.terminated.set()
        timer = self._clock.call_later(grace_s, self._kill)
        await asyncio.wait({self._task})
        timer.cancel()
        return TreeEnd(True, matched_target=True, signal_sent=True, supported=True)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._task.cancel()
        await asyncio.wait({self._task})
        if self._deadline is not None:
            self._deadline.cancel()


class FakeSandbox:
    """`Sandbox` that looks its commands up in `programs`, by their text; keeps what was asked."""

    name = "fake"

    def __init__(self, clock: Clock, programs: Mapping[str, Program] | None = None) -> None:
        self.programs = dict(programs or {})
        self.started: list[SandboxCommand] = []
        self._clock = clock

    async def start(self, command: SandboxCommand) -> FakeProcess:
        if any(name.upper().startswith("GATEHOUSE_") for name in command.env):
            raise InvalidInput("env", "a setting of the gateway stays out")
        self.started.append(command)
        text = command.command if isinstance(command.command, str) else " ".join(command.command)
        token = command.token or f"fake-{len(self.started)}"
        env = {"PATH": "/usr/bin:/bin", **command.env, TASK_TOKEN: token}
        stdio = FakeStdio(env, open_stdin=command.stdin == "open")
        return FakeProcess(self.programs[text], stdio, command, self._clock)

    async def end_tree(self, identity: ProcessIdentity, grace_s: float) -> TreeEnd:
        return TreeEnd(True, matched_target=False, signal_sent=False, supported=True)

    def describe(self) -> str:
        return "fake: commands are coroutines of the test"
