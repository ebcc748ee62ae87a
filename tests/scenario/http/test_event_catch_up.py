"""Event streams that are behind: few of them read the database at once (API-4, SEC-7)."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass, field, replace

import aiohttp
import pytest

from gateway.http.app import build_app
from gateway.http.catch_up import MOST
from gateway.http.events import HEARTBEAT_S, TICK_S
from gateway.http.server import serve
from runtime.domain.events import Event
from runtime.views.reader import Views
from tests.conftest import FailAfter
from tests.fakes.clock import FakeClock
from tests.fakes.model import Gate
from tests.scenario.harness import ADMIN, Feed, Plan, Site
from tests.scenario.http.conftest import Sites


@dataclass
class Held:
    """Pages that are being read for streams of one session; they wait at the gate."""

    gate: Gate = field(default_factory=Gate)
    now: int = 0
    most: int = 0
    began: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def reads(self) -> None:
        self.now += 1
        self.most = max(self.most, self.now)
        async with self.began:
            self.began.notify_all()
        await self.gate.wait()

    async def begun(self, number: int) -> None:
        """Return once so many are being read."""
        async with self.began:
            await self.began.wait_for(lambda: self.now >= number)


@dataclass
class HeldViews(Views):
    """Reads like its parent. A stream of one session reads when the gate is open: what all streams
    share is read for every session."""

    held: Held = field(default_factory=Held)

    async def events_after(
        self,
        position: int,
        *,
        session_id: str | None = None,
        run_id: str | None = None,
        limit: int = 500,
    ) -> Sequence[Event]:
        read = super().events_after(position, session_id=session_id, run_id=run_id, limit=limit)
        if session_id is None:
            return await read
        with closing(read):
            await self.held.reads()
            try:
                return await read
            finally:
                self.held.now -= 1


@dataclass
class Server:
    """A second server on a gateway, and what it reads for its streams."""

    url: str
    held: Held
    client: aiohttp.ClientSession

    @asynccontextmanager
    async def feed(self, query: str = "") -> AsyncIterator[Feed]:
        headers = {"Authorization": f"Bearer {ADMIN}"}
        async with self.client.get(f"{self.url}/v1/events?{query}", headers=headers) as response:
            assert response.status == 200
            yield Feed(response)


@asynccontextmanager
async def holding(gateway: Site) -> AsyncIterator[Server]:
    held = Held()
    views = HeldViews(gateway.services.views.database, gateway.services.views.kinds, held)
    services = replace(gateway.services, views=views)
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as client,
        serve(build_app(services), services.settings) as port,
    ):
        yield Server(f"http://127.0.0.1:{port}", held, client)


@pytest.mark.requirement("API-4", "SEC-7")
async def test_few_streams_catch_up_at_once_and_those_that_are_live_stay_quick(
    sites: Sites, fail_after: FailAfter
) -> None:
    async with fail_after(), sites("hello") as gateway, holding(gateway) as server:
        session = await gateway.session()
        await gateway.state(await gateway.says(session, "hi"), "completed")
        async with AsyncExitStack() as stack:
            behind = f"session_id={session}&last_event_id=0"
            feeds = [
                await stack.enter_async_context(server.feed(behind)) for _ in range(3 * MOST + 1)
            ]
            await server.held.begun(MOST)
            # Who begins now gets what happens, while the others wait for their turn.
            async with server.feed() as live:
                await live.until("ready")
                other = await gateway.session()
                created = await live.until("session.created")
                assert created.data["session_id"] == other
            assert server.held.now == MOST
            server.held.gate.open.set()
            for feed in feeds:
                await feed.until("run.completed")
        assert server.held.most == MOST


@pytest.mark.requirement("API-4")
async def test_a_stream_that_waits_for_its_turn_beats(sites: Sites, fail_after: FailAfter) -> None:
    clock = FakeClock()

    def timed(plan: Plan) -> None:
        plan.http_clock = clock

    async with fail_after(), sites("hello", change=timed) as gateway, holding(gateway) as server:
        session = await gateway.session()
        await gateway.state(await gateway.says(session, "hi"), "completed")
        behind = f"session_id={session}&last_event_id=0"
        async with AsyncExitStack() as stack:
            for _ in range(MOST):
                await stack.enter_async_context(server.feed(behind))
            await server.held.begun(MOST)
            async with server.feed(behind) as feed:
                beat = asyncio.create_task(feed.until(":"), name="heartbeat")
                while not beat.done():
                    await clock.advance(TICK_S)
                    await gateway.database.read(lambda conn: None)
                await beat
                assert clock.monotonic() >= HEARTBEAT_S
                assert server.held.now == MOST
                server.held.gate.open.set()
                await feed.until("run.completed")
