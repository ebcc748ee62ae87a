"""The real program `gatehouse` in a process of its own, as a person or a supervisor runs it."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import SecretStr

from tests.scenario.process.nursery import ROOT, Child, nursery

Process = Child | asyncio.subprocess.Process
READY = "Gatehouse is ready: "
TOKEN = "token-of-the-tests-operator"
ADMIN = SecretStr(TOKEN)
BEARER = {"Authorization": f"Bearer {TOKEN}"}
SHORT_LEASE = {"GATEHOUSE_WORKERS__LEASE_TTL_S": "5"}
"""For tests that wait until a lease has run out. It is renewed at a third of its life, which leaves
3.3 s: with less, a machine that is full to the brim loses leases that nobody meant to take."""
_SETTING = "GATEHOUSE_HTTP__ADMIN_TOKEN"


@dataclass
class Place:
    """A machine of its own, as far as the program can tell: a home, and what is in its file.

    With `loaded` the program is a fork of a process that has loaded its modules, see `nursery`.
    Without, it may run as another `user`, by number, with a `python` of that user's.
    """

    path: Path
    variables: dict[str, str] = field(default_factory=dict)
    loaded: bool = True
    user: int | None = None
    python: str = sys.executable

    @property
    def home(self) -> Path:
        """The gateway's home folder."""
        return self.path / "home"

    @property
    def workspace(self) -> Path:
        """The agent's folder."""
        return self.home / "workspace"

    def configure(self, text: str) -> Path:
        """Write the configuration file; the path."""
        self.home.mkdir(exist_ok=True)
        file = self.home / "gatehouse.toml"
        file.write_text(text, encoding="utf-8")
        return file

    def environment(self) -> dict[str, str]:
        """What the program sees; nothing of the tests' own settings."""
        return {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "HOME": str(self.path),
            "PYTHONPATH": str(ROOT),
            "GATEHOUSE_HOME": str(self.home),
            "GATEHOUSE_HTTP__PORT": "0",
            "GATEHOUSE_MODELS__DEFAULT": "offline:offline",
            _SETTING: TOKEN,
            **self.variables,
        }


@dataclass(frozen=True)
class Ended:
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str


class Program:
    """A running gateway. Lines of both outputs are kept; waiting for one is by event."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.out: list[str] = []
        self.err: list[str] = []
        self._changed = asyncio.Condition()
        self._open = 2

    async def read(self, stream: asyncio.StreamReader | None, kept: list[str]) -> None:
        """Keep the lines of one output until it ends."""
        assert stream is not None
        async for line in stream:
            async with self._changed:
                kept.append(line.decode(errors="replace").rstrip("\n"))
                self._changed.notify_all()
        async with self._changed:
            self._open -= 1
            self._changed.notify_all()

    async def until(self, kept: list[str], wanted: Callable[[str], bool]) -> str:
        """The first line that is wanted; fails when the program ends without it."""
        async with self._changed:
            while not any(wanted(line) for line in kept):
                assert self._open, f"it ended first:\n{self.transcript}"
                await self._changed.wait()
            return next(line for line in kept if wanted(line))

    async def url(self) -> str:
        """Where it answers, once it does."""
        line = await self.until(self.out, lambda line: line.startswith(READY))
        return line.removeprefix(READY)

    async def says(self, text: str, *, after: int = 0) -> str:
        """The line of the log that holds `text`; not among the first `after` lines."""
        async with self._changed:
            while not (found := [line for line in self.err[after:] if text in line]):
                assert self._open, f"it ended first:\n{self.transcript}"
                await self._changed.wait()
            return found[0]

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    async def ended(self) -> int:
        """Its exit code, once it is gone and everything that it said was read."""
        code = await self.process.wait()
        async with self._changed:
            while self._open:
                await self._changed.wait()
        return code

    @property
    def transcript(self) -> str:
        """Everything that it said."""
        return "\n".join((*self.out, *self.err))


@asynccontextmanager
async def gateway(place: Place, *arguments: str) -> AsyncIterator[Program]:
    """`gatehouse serve` in the background; killed when the block ends before it does."""
    process = await _start(place, arguments or ("serve",), stdin=False)
    async with followed(process) as program:
        yield program


@asynccontextmanager
async def followed(process: Process) -> AsyncIterator[Program]:
    """A process whose outputs are read; killed when the block ends before it does."""
    program = Program(process)
    readers = (
        asyncio.create_task(program.read(process.stdout, program.out), name="stdout"),
        asyncio.create_task(program.read(process.stderr, program.err), name="stderr"),
    )
    try:
        yield program
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        await asyncio.gather(*readers)


async def command(place: Place, *arguments: str, typed: str | None = None) -> Ended:
    """Run a command to its end, with `typed` on its standard input."""
    process = await _start(place, arguments, stdin=typed is not None)
    out, err = await process.communicate(None if typed is None else typed.encode())
    assert process.returncode is not None
    return Ended(process.returncode, out.decode(), err.decode())


async def _start(place: Place, arguments: tuple[str, ...], *, stdin: bool) -> Process:
    if place.loaded:
        environment = place.environment()
        return await nursery().start(
            arguments, folder=place.path, environment=environment, stdin=stdin
        )
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(
        place.python,
        "-m",
        "gateway",
        *arguments,
        stdin=pipe if stdin else asyncio.subprocess.DEVNULL,
        stdout=pipe,
        stderr=pipe,
        cwd=place.path,
        env=place.environment(),
        user=place.user,
        group=place.user,
        extra_groups=None if place.user is None else [],
    )


def reaching(place: Place, url: str, variables: Mapping[str, str] | None = None) -> Place:
    """The same machine, where the command line is told the address and the operator's token."""
    token = place.variables.get(_SETTING, TOKEN)
    told = {"GATEHOUSE_URL": url, "GATEHOUSE_TOKEN": token}
    return replace(place, variables={**place.variables, **told, **(variables or {})})
