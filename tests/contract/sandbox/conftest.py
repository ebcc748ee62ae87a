"""One sandbox after the other, a clock that moves by hand, and a place to work in."""

import asyncio
import os
import secrets
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from adapters.sandbox.bubblewrap import Bubblewrap
from adapters.sandbox.cgroups import Cgroups, Parent, discover
from adapters.sandbox.landlock import Landlock
from adapters.sandbox.probe import try_backend
from adapters.sandbox.unconfined import Unconfined
from runtime.ports.sandbox import (
    Sandbox,
    SandboxCommand,
    SandboxExit,
    SandboxLimits,
    SandboxProcess,
)
from tests.fakes.sandbox import FakeSandbox, FakeStdio, forever

PYTHON = os.path.realpath(sys.executable)
PYTHON_ROOTS = (sys.base_prefix, str(Path(PYTHON).parent))


@dataclass
class HandTimer:
    """A call that `HandClock.advance` makes."""

    due: float
    callback: Callable[[], None]
    live: bool = True

    def cancel(self) -> None:
        self.live = False


class HandClock:
    """The `Clock` port; its time moves only by `advance`."""

    def __init__(self) -> None:
        self._now = 1000.0
        self.timers: list[HandTimer] = []

    def now_ms(self) -> int:
        return int(self._now * 1000)

    def monotonic(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        done = asyncio.Event()
        self.call_later(seconds, done.set)
        await done.wait()

    def call_later(self, seconds: float, callback: Callable[[], None]) -> HandTimer:
        timer = HandTimer(self._now + seconds, callback)
        self.timers.append(timer)
        return timer

    def advance(self, seconds: float) -> None:
        self._now += seconds
        for timer in [each for each in self.timers if each.live and each.due <= self._now]:
            timer.cancel()
            timer.callback()

    def pending(self) -> list[float]:
        """Seconds until each live timer."""
        return [timer.due - self._now for timer in self.timers if timer.live]


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def groups() -> Iterator[Cgroups]:
    """Version 1 groups of this test alone, so that what a command leaves behind shows."""
    found = discover()
    parents = [each for each in (found.memory, found.pids) if each is not None]
    if any(parent.version == 2 for parent in parents):
        yield found
        return
    name = f"test-{secrets.token_hex(8)}"
    mine = [replace(parent, path=parent.path / name) for parent in parents]
    for parent in mine:
        parent.path.mkdir()
    named: dict[str, Parent] = {parent.controller: parent for parent in mine}
    yield Cgroups(memory=named.get("memory"), pids=named.get("pids"))
    for parent in mine:
        # Fails when a group below was not removed: that is the check.
        parent.path.rmdir()


@dataclass
class Bench:
    """A sandbox at work on a workspace, with a private folder beside it."""

    sandbox: Sandbox
    clock: HandClock
    base: Path
    groups: Cgroups = field(default_factory=Cgroups)
    limits: SandboxLimits = field(default_factory=SandboxLimits)

    @property
    def workspace(self) -> Path:
        return self.base / "workspace"

    @property
    def outside(self) -> Path:
        return self.base / "outside"

    def command(self, command: str | tuple[str, ...]) -> SandboxCommand:
        return SandboxCommand(
            command=command,
            cwd=str(self.workspace),
            writable=(str(self.workspace),),
            readable=PYTHON_ROOTS,
            limits=self.limits,
        )

    def python(self, script: str) -> SandboxCommand:
        """A command that is the interpreter itself, without a shell above it."""
        return self.command((PYTHON, "-I", "-S", "-c", script))

    async def run(self, command: str | SandboxCommand) -> tuple[str, SandboxExit]:
        """Everything that it prints, and its end."""
        asked = self.command(command) if isinstance(command, str) else command
        async with asyncio.timeout(300), await self.sandbox.start(asked) as process:
            return await drain(process), await process.wait()


async def drain(process: SandboxProcess) -> str:
    """Read to the end."""
    output = bytearray()
    while chunk := await process.read():
        output += chunk
    return output.decode()


async def read_until(process: SandboxProcess, text: str, count: int = 1) -> str:
    """Read until `text` was printed `count` times."""
    output = ""
    while output.count(text) < count:
        chunk = await process.read()
        assert chunk, f"it ended before {text!r} was printed: {output}"
        output += chunk.decode()
    return output


BIG = 10 * 1024 * 1024
COMMANDS = {
    "exit": "printf hello; printf ' world' >&2; exit 3",
    "kill": "kill -9 $$",
    "cat": "cat",
    "env": "env",
    "big": f"head -c {BIG} /dev/zero",
    "stubborn": "trap '' TERM; echo up; while :; do sleep 1000; done",
    "obedient": "echo up; exec sleep 1000",
}
"""Commands that every sandbox can run; the fake's are below."""


async def _cat(stdio: FakeStdio) -> int:
    while data := await stdio.input.read(65536):
        await stdio.write(data)
    return 0


async def _exit(stdio: FakeStdio) -> int:
    await stdio.write(b"hello world")
    return 3


async def _kill(stdio: FakeStdio) -> int:
    return 137


async def _env(stdio: FakeStdio) -> int:
    await stdio.write("".join(f"{key}={value}\n" for key, value in stdio.env.items()).encode())
    return 0


async def _big(stdio: FakeStdio) -> int:
    await stdio.write(bytes(BIG))
    return 0


async def _obedient(stdio: FakeStdio) -> int:
    await stdio.write(b"up\n")
    return await forever(stdio)


async def _stubborn(stdio: FakeStdio) -> int:
    await stdio.write(b"up\n")
    await asyncio.Event().wait()
    return 0


_PROGRAMS = {
    COMMANDS["exit"]: _exit,
    COMMANDS["kill"]: _kill,
    COMMANDS["cat"]: _cat,
    COMMANDS["env"]: _env,
    COMMANDS["big"]: _big,
    COMMANDS["obedient"]: _obedient,
    COMMANDS["stubborn"]: _stubborn,
}


# What each backend's canary said, once for all tests.
_CANARIES: dict[str, str | None] = {}


async def build(name: str, clock: HandClock, groups: Cgroups) -> Sandbox:
    """The sandbox of this name; skips where the host cannot have it."""
    if name == "fake":
        return FakeSandbox(clock, _PROGRAMS)
    if name == "none":
        return Unconfined(clock, cgroups=groups)
    kind = Bubblewrap if name == "bubblewrap" else Landlock
    backend = kind(clock, cgroups=groups)
    if name not in _CANARIES:
        _CANARIES[name] = await try_backend(backend)
    if _CANARIES[name] is not None:
        pytest.skip(f"{name} does not confine here: {_CANARIES[name]}")
    return backend


async def _bench(name: str, tmp_path: Path, clock: HandClock, groups: Cgroups) -> Bench:
    for folder in ("workspace", "outside"):
        (tmp_path / folder).mkdir()
    return Bench(await build(name, clock, groups), clock, tmp_path, groups)


@pytest.fixture(params=["bubblewrap", "landlock"])
async def confined(
    request: pytest.FixtureRequest, tmp_path: Path, clock: HandClock, groups: Cgroups
) -> Bench:
    """Every backend that confines."""
    return await _bench(request.param, tmp_path, clock, groups)


@pytest.fixture(params=["bubblewrap", "landlock", "none"])
async def launched(
    request: pytest.FixtureRequest, tmp_path: Path, clock: HandClock, groups: Cgroups
) -> Bench:
    """Every backend that starts processes."""
    return await _bench(request.param, tmp_path, clock, groups)


@pytest.fixture(params=["bubblewrap", "landlock", "none", "fake"])
async def bench(
    request: pytest.FixtureRequest, tmp_path: Path, clock: HandClock, groups: Cgroups
) -> Bench:
    """Every sandbox, the fake included."""
    return await _bench(request.param, tmp_path, clock, groups)
