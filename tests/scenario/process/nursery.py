"""Starts `gatehouse` in a tenth of the time: a process that has loaded it already is forked.

What runs is the same `main()` in a process of its own, with its own arguments, environment, folder
and outputs, that dies by the same signals and ends as an interpreter ends; only the loading of the
modules is shared, root's look at the folders of the system, and a canary of the sandbox that passed
in another one. Run as a program, this file is the process that is forked. Each group of tests also
starts some that load everything themselves (`Place.loaded` is false there).
"""

import asyncio
import atexit
import hashlib
import json
import os
import selectors
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from adapters.sandbox import probe
from adapters.sandbox.backend import Backend
from adapters.sandbox.closed_folders import SYSTEM_CLOSED
from adapters.system.clock import SystemClock
from runtime.ports.sandbox import SandboxCommand

ROOT: Final = Path(__file__).parents[3]
LOADED: Final = (
    "adapters.models.clients.anthropic",
    "adapters.models.clients.openai",
    "adapters.models.offline",
    "adapters.slack.adapter",
    "adapters.telegram.adapter",
    "adapters.telegram.botapi",
    "gateway.backup",
    "gateway.cli.checks",
    "gateway.cli.main",
    "gateway.logs",
    "gateway.service",
    # What these load when they first need it.
    "alembic",
    "anyio._backends._asyncio",
    "asyncpg",
    "genai_prices.data",
    "runtime.bus.postgres",
    "tree_sitter_bash",
    "uvloop",
)
ORDER_BYTES: Final = 1 << 16
NUMBER: Final = struct.Struct("=q")


class Child:
    """A forked program; it has what the tests use of an `asyncio.subprocess.Process`."""

    def __init__(self, report: int, ours: Sequence[int | None]) -> None:
        self.pid = _number(report)
        self.returncode: int | None = None
        self.stdout: asyncio.StreamReader | None = None
        self.stderr: asyncio.StreamReader | None = None
        self._report = report
        self._ended = asyncio.Event()
        self._stdin, self._out, self._err = ours

    async def open(self) -> None:
        """Begin to read what it says, and how it ends."""
        assert self._out is not None
        assert self._err is not None
        asyncio.get_running_loop().add_reader(self._report, self._ends)
        self.stdout, self.stderr = await _reader(self._out), await _reader(self._err)

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it is known to be gone."""
        if self.returncode is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """SIGTERM."""
        self.send_signal(signal.SIGTERM)

    async def wait(self) -> int:
        """Its exit code, or minus the signal that ended it."""
        await self._ended.wait()
        assert self.returncode is not None
        return self.returncode

    def _ends(self) -> None:
        asyncio.get_running_loop().remove_reader(self._report)
        self.returncode = _number(self._report)
        os.close(self._report)
        self._ended.set()

    async def communicate(self, typed: bytes | None = None) -> tuple[bytes, bytes]:
        """Give it all of its input; what it said, once it has ended."""
        assert self.stdout is not None
        assert self.stderr is not None
        async with asyncio.TaskGroup() as group:
            out = group.create_task(self.stdout.read())
            err = group.create_task(self.stderr.read())
            group.create_task(asyncio.to_thread(self._type, typed or b""))
        await self.wait()
        return out.result(), err.result()

    def _type(self, typed: bytes) -> None:
        if self._stdin is not None:
            with os.fdopen(self._stdin, "wb") as stdin:
                stdin.write(typed)


class Nursery:
    """The loaded process, from the side of the tests; it ends when its socket does."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._passed = tempfile.TemporaryDirectory(prefix="gatehouse-canaries-")
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, str(Path(__file__)), str(theirs.fileno()), self._passed.name],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                cwd=ROOT,
                env={**environment, "PYTHONPATH": str(ROOT)},
            )

    async def start(
        self, arguments: Sequence[str], *, folder: Path, environment: Mapping[str, str], stdin: bool
    ) -> Child:
        """Start the program with these arguments."""
        report, theirs = os.pipe()
        pipes = [os.pipe() if stdin else (os.open(os.devnull, os.O_RDONLY), None)]
        pipes += [(there, here) for here, there in (os.pipe(), os.pipe())]
        given = [there for there, _ in pipes]
        order = {"arguments": arguments, "folder": str(folder), "environment": dict(environment)}
        socket.send_fds(self._socket, [json.dumps(order).encode()], [theirs, *given])
        for descriptor in (theirs, *given):
            os.close(descriptor)
        child = await asyncio.to_thread(Child, report, [here for _, here in pipes])
        await child.open()
        return child

    def end(self) -> None:
        """Let it go."""
        self._socket.close()
        self._process.wait()
        self._passed.cleanup()


_nursery: Nursery | None = None


def nursery() -> Nursery:
    """The one of this process; it begins to load when it is asked for first."""
    global _nursery
    if _nursery is None:
        environment = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
        _nursery = Nursery(environment)
        atexit.register(_nursery.end)
    return _nursery


async def _reader(descriptor: int) -> asyncio.StreamReader:
    loop, reader = asyncio.get_running_loop(), asyncio.StreamReader()
    pipe = os.fdopen(descriptor, "rb", 0)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    return reader


def _number(report: int) -> int:
    """The next number of a report: first the process's id, then how it ended."""
    told = os.read(report, NUMBER.size)
    assert len(told) == NUMBER.size, "the loaded process has ended"
    return int(NUMBER.unpack(told)[0])


def serve(orders: socket.socket) -> tuple[Sequence[str], Sequence[int]]:
    """Fork for each order. Returns in the child alone: with its arguments and its outputs."""
    woken, wakes = os.pipe()
    os.set_blocking(wakes, False)
    signal.set_wakeup_fd(wakes)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    reports: dict[int, int] = {}
    clock = SystemClock()
    with selectors.DefaultSelector() as selector:
        selector.register(orders, selectors.EVENT_READ)
        selector.register(woken, selectors.EVENT_READ)
        while True:
            ready = {key.fileobj for key, _ in selector.select()}
            if woken in ready:
                os.read(woken, 4096)
                _tell_of_the_dead(reports)
            if orders not in ready:
                continue
            told, given, _, _ = socket.recv_fds(orders, ORDER_BYTES, 4)
            if not told:
                os._exit(0)
            report, *streams = given
            # A gateway of root looks at all of the system at its start, for most of a second.
            SYSTEM_CLOSED.walk(clock.monotonic())
            if (pid := os.fork()) == 0:
                break
            for descriptor in streams:
                os.close(descriptor)
            os.write(report, NUMBER.pack(pid))
            reports[pid] = report
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for descriptor in (woken, wakes, report, *reports.values()):
        os.close(descriptor)
    orders.close()
    return _become(json.loads(told)), streams


def _tell_of_the_dead(reports: dict[int, int]) -> None:
    while reports:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        report = reports.pop(pid)
        with suppress(BrokenPipeError):  # where the test is over
            os.write(report, NUMBER.pack(os.waitstatus_to_exitcode(status)))
        os.close(report)


def _become(order: Any) -> Sequence[str]:
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])
    return list(order["arguments"])


def _believe(passed: Path) -> None:
    """Take a backend of the sandbox without a canary where the same one passed in another fork.

    It is the same if the backend, the PATH and what is granted are, but for the name of the home.
    What failed is tried again.
    """
    try_backend, own = probe.try_backend, os.environ.get("HOME", "")

    async def try_once(backend: Backend, grants: SandboxCommand | None = None) -> str | None:
        granted = grants and replace(grants, token=None)
        tried = repr((backend.describe(), os.environ.get("PATH"), granted)).replace(own, "~")
        mark = passed / hashlib.sha256(tried.encode()).hexdigest()
        if backend.available() is None and mark.exists():
            return None
        refused = await try_backend(backend, grants)
        if refused is None:
            mark.touch()
        return refused

    probe.try_backend = try_once


def _ends(program: Callable[[], object]) -> None:
    """Run it, and end as an interpreter does, but for what that takes down: each page of a module
    that is cleared would be copied first, which costs a command more than its work."""
    status: object = 0
    try:
        program()
    except SystemExit as end:
        status = end.code or 0
    if not isinstance(status, int):
        return sys.exit(str(status))
    sys.stdout.flush()
    sys.stderr.flush()
    # The interpreter's own way; there is no public one.
    threading._shutdown()
    atexit._run_exitfuncs()
    os._exit(status)


def main() -> None:
    """Load everything, and become a gateway whenever one is asked for."""
    for name in LOADED:
        import_module(name)
    program = import_module("gateway.cli.main").main
    # Its own import, because the tests load this file for the other side of the socket.
    import_module("tests.scenario.first_use").fill_caches()
    arguments, streams = serve(socket.socket(fileno=int(sys.argv[1])))
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
        os.close(descriptor)
    _believe(Path(sys.argv[2]))
    sys.argv = [str(ROOT / "gateway" / "__main__.py"), *arguments]
    _ends(program)


if __name__ == "__main__":
    main()
