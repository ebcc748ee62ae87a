"""Short commands beside threads that open, read and compare files, in a process of its own.

    python -m tests.contract.sandbox.commands_beside_files asyncio|uvloop CHILDREN COMMANDS

A descriptor that is closed twice takes a number from somebody else of its process, so this is no
work for the process of a test. Prints a JSON object: how many files were opened, and what went
wrong with them (at most a few), and how many descriptors are left of the commands.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from io import FileIO
from pathlib import Path

from adapters.sandbox.cgroups import Cgroups
from adapters.sandbox.pipe_ends import ReadPipe, WritePipe, open_pipe
from adapters.sandbox.unconfined import Unconfined
from adapters.system.clock import SystemClock
from runtime.ports.sandbox import SandboxCommand

_THREADS = 4
_FILES = 16
_AT_ONCE = 8
_MOST_REPORTED = 5
_SIDES = ("the child first", "we first", "both at once")


@dataclass
class Report:
    """What the threads saw."""

    opened: int = 0
    wrong: list[str] = field(default_factory=list)
    left: int = 0

    def add(self, what: str) -> None:
        if len(self.wrong) < _MOST_REPORTED:
            self.wrong.append(what)


@contextmanager
def files_in_use(folder: Path, report: Report) -> Iterator[None]:
    """Threads open files, read them and compare what they read, for as long as the block."""
    over = threading.Event()
    for number in range(_FILES):
        folder.joinpath(str(number)).write_bytes(_content(number))

    def use_files(first: int) -> None:
        number = first
        while not over.is_set():
            number = (number + _THREADS) % _FILES
            try:
                _use(folder / str(number), _content(number))
            except (OSError, ValueError) as error:
                report.add(str(error))
            report.opened += 1

    threads = [threading.Thread(target=use_files, args=(each,)) for each in range(_THREADS)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


def _content(number: int) -> bytes:
    return f"file {number}\n".encode()


def _use(path: Path, content: bytes) -> None:
    """Raises `OSError` where the number is nobody's, `ValueError` where it is another file's."""
    file = os.open(path, os.O_RDONLY)
    try:
        for _ in range(4):
            found = os.pread(file, 64, 0)
            if found != content:
                raise ValueError(f"read {found!r} instead of {content!r}")
    finally:
        os.close(file)


def _start_child(stdin: FileIO, output: FileIO) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(["/bin/cat"], stdin=stdin, stdout=output, process_group=0)


async def run_child(kind: int) -> None:
    """A real child at both ends of our pipes; `kind` says which side closes them first."""
    output, output_in = open_pipe()
    stdin_out, stdin = open_pipe()
    with stdin_out, output_in:
        child = _start_child(stdin_out, output_in)
    reader = asyncio.StreamReader()
    source, feed = ReadPipe(output), WritePipe(stdin)
    source.connect(asyncio.StreamReaderProtocol(reader))
    try:
        await feed.write(b"hello\n")
        assert await reader.readline() == b"hello\n"
        if _SIDES[kind] == "the child first":
            child.kill()
            assert await reader.read() == b""
        elif _SIDES[kind] == "we first":
            source.close()
        else:
            feed.finish()
    finally:
        feed.close()
        source.close()
        child.wait()


async def run_command(sandbox: Unconfined, folder: str, kind: int) -> None:
    """A command through its supervisor: run to its end, left alone at work, or cancelled at its
    start."""
    command = SandboxCommand(
        command=("/bin/cat",), cwd=folder, writable=(folder,), readable=(), stdin="open"
    )
    if kind == 2:
        start = asyncio.create_task(sandbox.start(command), name="start")
        asyncio.get_running_loop().call_soon(start.cancel)
        with suppress(asyncio.CancelledError):
            await start
        return
    async with await sandbox.start(command) as process:
        await process.write(b"hello\n")
        assert await process.read() == b"hello\n"
        if kind == 0:
            process.close_stdin()
            assert await process.read() == b""
            assert (await process.wait()).code == 0


async def play(children: int, commands: int) -> Report:
    """All of it, a few at once."""
    report, before = Report(), _count_descriptors()
    places = asyncio.Semaphore(_AT_ONCE)
    sandbox = Unconfined(SystemClock(), cgroups=Cgroups())

    async def in_turn(work: Coroutine[None, None, None]) -> None:
        async with places:
            await work

    with tempfile.TemporaryDirectory() as folder, files_in_use(Path(folder), report):
        async with asyncio.TaskGroup() as group:
            for number in range(children):
                group.create_task(in_turn(run_child(number % len(_SIDES))))
        async with asyncio.TaskGroup() as group:
            for number in range(commands):
                group.create_task(in_turn(run_command(sandbox, folder, number % 3)))
    report.left = _count_descriptors() - before
    return report


def _count_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def main(loop: str, children: int, commands: int) -> None:
    """Play on the loop of this name, and print the report."""
    # The threads change places often: the loop waits less, and meets more of what it may not close.
    sys.setswitchinterval(0.0001)
    factory = asyncio.new_event_loop
    if loop == "uvloop":
        # Lazy: an extra.
        import uvloop

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        report = runner.run(play(children, commands))
    sys.stdout.write(json.dumps(asdict(report)))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
