"""A person who reads a document and types its commands: a shell with a terminal."""

import asyncio
import fcntl
import os
import pty
import re
import signal
import struct
import termios
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

_READY: Final = re.compile(r"^Gatehouse is ready: (http://\S+)", re.MULTILINE)
_SERVES: Final = re.compile(
    r"(?:[A-Z_]+=\S+ )*(?:make run|\S*gatehouse serve)(?P<behind> &)?(?: +#.*)?"
)
_CHUNK: Final = 65_536
_ROWS: Final = 50
_COLUMNS: Final = 200


class Reader:
    """A shell in which one command after another is typed. Folder, variables and jobs last."""

    def __init__(self, shell: asyncio.subprocess.Process, terminal: str) -> None:
        self._shell = shell
        self._terminal = terminal
        self._changed = asyncio.Event()
        self._typed = 0
        self.seen = ""

    def see(self, chunk: bytes) -> None:
        """Take what the terminal shows."""
        self.seen += chunk.decode(errors="replace").replace("\r\n", "\n")
        self._changed.set()

    @property
    def addresses(self) -> list[str]:
        """Where the gateways answer that were started here, in order."""
        return _READY.findall(self.seen)

    async def type(self, command: str, last: str = "") -> tuple[int, str]:
        """The exit status of a command, and its output. A command that serves goes on in the
        background; its output is what it had said when it was ready, with the line that has the
        text `last`."""
        serves = _SERVES.fullmatch(command)
        began, ready = len(self.seen), len(self.addresses)
        self._typed += 1
        typed = f"{{ {command}\n}} <{self._terminal}"
        if serves and serves["behind"]:
            typed = command.replace(" &", f" <{self._terminal} &")
        elif serves:
            # Somebody who reads on leaves it in a terminal of its own.
            typed = f"({command} <{self._terminal} &)"
        mark = f"[{self._typed} ended "
        await self._enter(f"{typed}\nprintf '\\n[%s ended %s]\\n' {self._typed} $?\n")
        await self._until(lambda: "]\n" in self.seen[began:].partition(mark)[2])
        if serves:
            await self._until(lambda: len(self.addresses) > ready)
            await self._until(lambda: not last or "\n" in self.seen[began:].partition(last)[2])
        output, _, rest = self.seen[began:].partition(f"\n{mark}")
        status, _, later = rest.partition("]\n")
        return int(status), output + later

    async def says(self, text: str) -> None:
        """Wait until the terminal shows a text."""
        await self._until(lambda: text in self.seen)

    async def leave(self) -> None:
        """End the shell and everything that was started in it."""
        for process in _of_session(self._shell.pid):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        await self._shell.wait()

    async def _enter(self, text: str) -> None:
        assert self._shell.stdin is not None
        self._shell.stdin.write(text.encode())
        await self._shell.stdin.drain()

    async def _until(self, met: Callable[[], bool]) -> None:
        while not met():
            assert self._shell.returncode is None, f"the shell ended:\n{self.seen}"
            self._changed.clear()
            await self._changed.wait()


def _of_session(session: int) -> Iterator[int]:
    """The processes of a session, by number: the terminal's shell, and its children."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError):
            if os.getsid(int(folder.name)) == session:
                yield int(folder.name)


@asynccontextmanager
async def reading(folder: Path, variables: Mapping[str, str]) -> AsyncIterator[Reader]:
    """A reader whose shell begins in a folder and sees these variables alone."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, _COLUMNS, 0, 0))
    terminal = os.ttyname(slave)
    shell = await asyncio.create_subprocess_exec(
        *("bash", "--noprofile", "--norc"),
        stdin=asyncio.subprocess.PIPE,
        stdout=slave,
        stderr=slave,
        cwd=folder,
        env={"TERM": "dumb", "LANG": "C.UTF-8", **variables},
        start_new_session=True,
    )
    reader, loop = Reader(shell, terminal), asyncio.get_running_loop()
    loop.add_reader(master, lambda: reader.see(os.read(master, _CHUNK)))
    try:
        yield reader
    finally:
        await reader.leave()
        loop.remove_reader(master)
        os.close(slave)
        os.close(master)
