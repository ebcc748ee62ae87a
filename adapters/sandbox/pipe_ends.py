"""The gateway's ends of a command's pipes, on any event loop.

Where a loop connects a pipe itself, uvloop closes the number of a file object and then
the object, when another thread may have been given the number; asyncio closes the object alone.
So the loop only watches a number here (`add_reader`, `add_writer`), which no loop ever closes, and
the file object is its one owner.
"""

import asyncio
import os
from io import FileIO

_CHUNK = 64 * 1024
_HIGH_WATER = 64 * 1024


def open_pipe() -> tuple[FileIO, FileIO]:
    """A new pipe: where it is read and where it is written. Raises `OSError`."""
    out, into = os.pipe()
    return FileIO(out, "rb"), FileIO(into, "wb")


class ReadPipe(asyncio.ReadTransport):
    """Reads a pipe, or the master of a terminal, for a protocol. Closes its file at the end."""

    def __init__(self, file: FileIO) -> None:
        """`file` is owned by this object from now on."""
        super().__init__()
        self._file = file
        self._loop: asyncio.AbstractEventLoop | None = None
        self._protocol: asyncio.Protocol | None = None
        self._watched = False

    def connect(self, protocol: asyncio.Protocol) -> None:
        """Hand what arrives to `protocol`. Called once, while the loop runs."""
        self._loop = asyncio.get_running_loop()
        self._protocol = protocol
        os.set_blocking(self._file.fileno(), False)
        protocol.connection_made(self)
        self.resume_reading()

    def is_closing(self) -> bool:
        return self._file.closed

    def is_reading(self) -> bool:
        return self._watched

    def pause_reading(self) -> None:
        if self._watched and self._loop is not None:
            self._watched = False
            self._loop.remove_reader(self._file.fileno())

    def resume_reading(self) -> None:
        if not self._watched and not self._file.closed and self._loop is not None:
            self._loop.add_reader(self._file.fileno(), self._read)
            self._watched = True

    def close(self) -> None:
        """Read no more. May be called again."""
        self._end(None)

    def _read(self) -> None:
        assert self._protocol is not None
        try:
            data = self._file.read(_CHUNK)
        except OSError as error:
            self._end(error)
            return
        if data:
            self._protocol.data_received(data)
        elif data is not None:  # None: nothing is there yet.
            self._end(None)

    def _end(self, error: OSError | None) -> None:
        if self._file.closed:
            return
        self.pause_reading()
        self._file.close()
        if self._protocol is not None:
            self._protocol.connection_lost(error)


class WritePipe:
    """Writes to a pipe. What the pipe has no room for waits here."""

    def __init__(self, file: FileIO) -> None:
        """`file` is owned by this object from now on."""
        self._file = file
        self._unwritten = bytearray()
        self._progress = asyncio.Event()
        self._watched_by: asyncio.AbstractEventLoop | None = None
        self._finishing = False
        self._broken = False
        os.set_blocking(file.fileno(), False)

    async def write(self, data: bytes) -> None:
        """Write it, and return once at most 64 KiB wait.

        Raises `BrokenPipeError` when nobody reads any more, and after `finish`.
        """
        if self._finishing or self._file.closed:
            raise BrokenPipeError("the pipe is closed")
        self._unwritten += data
        self._flush()
        while len(self._unwritten) > _HIGH_WATER and not self._file.closed:
            self._progress.clear()
            await self._progress.wait()
        if self._broken:
            raise BrokenPipeError("nobody reads from the pipe any more")

    def finish(self) -> None:
        """Close it once everything is written. May be called again."""
        self._finishing = True
        if not self._unwritten:
            self.close()

    def close(self) -> None:
        """Close it now; what waits is dropped. May be called again."""
        if self._file.closed:
            return
        self._unwatch()
        self._file.close()
        self._broken = bool(self._unwritten)
        self._unwritten.clear()
        self._progress.set()

    def _flush(self) -> None:
        try:
            while self._unwritten:
                count = self._file.write(self._unwritten)
                if count is None:  # The pipe is full.
                    self._watch()
                    return
                del self._unwritten[:count]
                self._progress.set()
        except OSError:
            self.close()
            return
        self._unwatch()
        if self._finishing:
            self.close()

    def _watch(self) -> None:
        if self._watched_by is None:
            loop = asyncio.get_running_loop()
            loop.add_writer(self._file.fileno(), self._flush)
            self._watched_by = loop

    def _unwatch(self) -> None:
        if self._watched_by is not None:
            self._watched_by.remove_writer(self._file.fileno())
            self._watched_by = None
