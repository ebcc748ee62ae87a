"""A TCP proxy in front of a server: a connection that a test cuts and mends."""

import asyncio
from contextlib import suppress
from urllib.parse import urlsplit


class Cable:
    """Passes bytes on both ways, until it is cut."""

    def __init__(self, url: str) -> None:
        self._parts = urlsplit(url)
        self._server: asyncio.Server | None = None
        self._handlers: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._port = 0
        self.whole = True
        self.answers: int | None = None
        """How often the server is heard on each connection before that breaks; None: always."""

    @property
    def url(self) -> str:
        """The server's URL by way of this cable."""
        user, at, _ = self._parts.netloc.rpartition("@")
        return self._parts._replace(netloc=f"{user}{at}127.0.0.1:{self._port}").geturl()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._port = self._server.sockets[0].getsockname()[1]

    def cut(self) -> None:
        """Break every connection, and each that is tried from now on."""
        self.whole = False
        for writer in tuple(self._writers):
            writer.transport.abort()

    def mend(self) -> None:
        self.whole = True

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        if self._handlers:
            await asyncio.wait(self._handlers)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._handlers.add(task)
        task.add_done_callback(self._handlers.discard)
        if not self.whole:
            writer.transport.abort()
            return
        host, port = self._parts.hostname or "localhost", self._parts.port
        far_reader, far_writer = await asyncio.open_connection(host, port)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._pump(reader, far_writer), name="cable there")
            group.create_task(self._pump(far_reader, writer, self.answers), name="cable back")

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, most: int | None = None
    ) -> None:
        self._writers.add(writer)
        heard = 0
        with suppress(ConnectionError):
            while heard != most and (found := await reader.read(65_536)):
                writer.write(found)
                await writer.drain()
                heard += 1
        self._writers.discard(writer)
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
