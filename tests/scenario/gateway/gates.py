"""A gate inside a command that the agent runs: the test knows when it runs, and lets it go on.

The command talks to the test over a socket, so that neither waits by the clock, and a command that
dies is seen to die.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Self


@dataclass
class CommandGate:
    """`began` counts the commands that came, by name."""

    began: Counter[str] = field(default_factory=Counter)
    _port: int = 0
    _news: asyncio.Condition = field(default_factory=asyncio.Condition)
    _open: asyncio.Event = field(default_factory=asyncio.Event)
    _gone: Counter[str] = field(default_factory=Counter)

    def command(self, name: str, effect: str) -> str:
        """A shell command: has its effect, says that it is there, waits, says that it ends."""
        inner = (
            f"{effect}; exec 3<>/dev/tcp/127.0.0.1/{self._port}; echo {name} >&3; read line <&3; "
            f"echo {name} went on"
        )
        return f"bash -c '{inner}'"

    async def arrived(self, *names: str) -> None:
        """Until each of these commands waits at the gate."""
        async with self._news:
            await self._news.wait_for(lambda: all(self.began[name] for name in names))

    async def left(self, *names: str) -> None:
        """Until the commands of these names are dead or done."""
        async with self._news:
            await self._news.wait_for(lambda: all(self._gone[name] for name in names))

    def open(self) -> None:
        """Let everything through from now on."""
        self._open.set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        """Listen while the block runs."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            self.open()
            server.close()
            await server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        name = (await reader.readline()).decode().strip()
        async with self._news:
            self.began[name] += 1
            self._news.notify_all()
        hung_up = asyncio.create_task(reader.read(), name=f"gate {name} hung up")
        opened = asyncio.create_task(self._open.wait(), name=f"gate {name} opened")
        try:
            await asyncio.wait([hung_up, opened], return_when=asyncio.FIRST_COMPLETED)
            if opened.done():
                writer.write(b"go\n")
            await asyncio.wait([hung_up])
        finally:
            opened.cancel()
            writer.close()
        async with self._news:
            self._gone[name] += 1
            self._news.notify_all()
