"""A database that goes away while the gateway runs: it waits, says so, and comes back by itself."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import pytest
from sqlalchemy import make_url

from gateway.cli.answers import Refused
from gateway.cli.client import GatewayClient
from tests.conftest import FailAfter
from tests.contract.store_support import PostgresServer, postgres_server
from tests.scenario.process.program import ADMIN, SHORT_LEASE, Place, gateway
from tests.scenario.process.talk import conversation, finished


@dataclass
class Road:
    """The way to a database, which can be cut and mended."""

    host: str
    port: int
    listening: int = 0
    _server: asyncio.Server | None = None
    _open: set[asyncio.StreamWriter] = field(default_factory=set)

    async def mend(self) -> None:
        """Let connections through, on the same port as before."""
        self._server = await asyncio.start_server(self._carry, "127.0.0.1", self.listening)
        self.listening = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        """Break every connection, and let none through."""
        assert self._server is not None
        self._server.close()
        for writer in tuple(self._open):
            writer.transport.abort()
        await self._server.wait_closed()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            there, back = await asyncio.open_connection(self.host, self.port)
            self._open |= {writer, back}
            await asyncio.gather(_copy(reader, back), _copy(there, writer))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def road(server: PostgresServer) -> AsyncIterator[tuple[Road, str]]:
    """A fresh database on the server, and the URL that leads there by a road."""
    name = await server.create()
    try:
        url = make_url(server.url(name))
        way = Road(url.host or "127.0.0.1", url.port or 5432)
        await way.mend()
        url = url.set(drivername="postgresql+asyncpg", host="127.0.0.1", port=way.listening)
        yield way, url.render_as_string(hide_password=False)
        await way.cut()
    finally:
        await server.drop(name)


async def until_ready(url: str, *, ready: bool) -> None:
    """Ask until the gateway says that it is ready, or that it is not."""
    async with GatewayClient(url, ADMIN) as client:
        while True:
            try:
                await client.get("/readyz")
                answered = 200
            except Refused as error:
                answered = error.status
            if answered == (200 if ready else 503):
                return


@pytest.mark.requirement("API-5", "OPS-10")
async def test_it_is_not_ready_while_the_database_is_away_and_goes_on_afterwards(
    place: Place, fail_after: FailAfter
) -> None:
    async with fail_after(120), road(postgres_server()) as (way, database):
        place.variables |= {"GATEHOUSE_DATABASE__URL": database, **SHORT_LEASE}
        await way.cut()
        async with gateway(place) as program:
            # It was restarted while its database was: it says so, and waits.
            await program.says("database_awaited")
            await way.mend()
            url = await program.url()
            async with conversation(url) as talk:
                first = await talk.submit("hello")
                assert await finished(talk, first.run_id) == "completed"
                await way.cut()
                await until_ready(url, ready=False)
                with pytest.raises(Refused, match="try again"):
                    await talk.submit("is anybody there?")
                await way.mend()
                await until_ready(url, ready=True)
                second = await talk.submit("hello again")
                assert await finished(talk, second.run_id) == "completed"
            program.process.terminate()
            assert await program.ended() == 0
            assert "Traceback" not in program.transcript
