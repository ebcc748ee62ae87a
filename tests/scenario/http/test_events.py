"""The event stream: resumed without holes, filtered, alive, honest about gaps (API-4, MSG-21)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from structlog.testing import capture_logs

from gateway.http.app import build_app
from gateway.http.events import HEARTBEAT_S, TICK_S, WAITING
from gateway.http.server import serve
from runtime.bus.memory import MemoryBus
from runtime.ports.bus import EVENTS, LIVE, Signal
from runtime.sessions.live_text import SNAPSHOT
from tests.conftest import FailAfter
from tests.fakes.clock import FakeClock, settle
from tests.fakes.model import Gate, Said
from tests.scenario.harness import ADMIN, Feed, Plan
from tests.scenario.http.conftest import ASKS, Sites

LONG = "Grüße, 世界 😀! " * 6 + "The end."


@pytest.mark.requirement("API-4")
async def test_a_reader_sees_the_run_the_text_and_the_delivery(sites: Sites) -> None:
    async with sites(LONG) as gateway:
        session = await gateway.session()
        async with gateway.feed(f"session_id={session}") as feed:
            ready = await feed.until("ready")
            assert ready.id == str(ready.data["position"])
            await gateway.says(session, "hi")
            assert await feed.text("The end.") == LONG
            await feed.until("delivery.sent")
            if all(one.kind != "message" for one in feed.seen):
                await feed.until("message")
        kinds = [one.kind for one in feed.seen]
        order = ["run.queued", "run.started", "delta", "run.completed", "delivery.sent"]
        assert list(dict.fromkeys(kind for kind in kinds if kind in order)) == order
        assert kinds.count("message") == 1
        for sent in feed.seen:
            durable = "." in sent.kind
            assert bool(sent.id) is (durable or sent.kind == "ready")
        positions = [int(one.id) for one in feed.seen if one.id]
        assert positions == sorted(set(positions))


@pytest.mark.requirement("API-4", "WEB-3")
async def test_a_page_gets_the_text_as_html_and_all_of_it_before_its_end(sites: Sites) -> None:
    text = "A **bold** word\n\n- one\n- <script>two</script>"
    async with sites(text) as gateway:
        session = await gateway.session()
        async with gateway.feed(f"session_id={session}&html=1") as feed:
            await feed.until("ready")
            await gateway.says(session, "hi")
            await feed.until("run.completed")
        blocks: list[str] = []
        for sent in feed.seen:
            if sent.kind == "prose":
                blocks[int(sent.data["since"]) :] = sent.data["blocks"]
        assert not any(one.kind == "delta" for one in feed.seen)
        (said,) = [
            one["html"]
            for one in await gateway.messages(session, html="1")
            if one["kind"] == "assistant"
        ]
        assert "\n".join(blocks) == said
        assert "<script>" not in said


@pytest.mark.requirement("API-4", "WEB-1")
async def test_a_reader_that_comes_back_misses_nothing_and_sees_nothing_twice(
    sites: Sites,
) -> None:
    async with sites(ASKS, "after") as gateway:
        session = await gateway.session()
        async with gateway.feed(f"session_id={session}&last_event_id=0") as feed:
            run = await gateway.says(session, "go")
            last = (await feed.until("approval.requested")).id
            before = [one.id for one in feed.seen if one.id]
        waiting = await gateway.state(run, "waiting_for_approval")
        resolution = {"request_id": waiting["waiting_for"][0], "behavior": "allow"}
        await gateway.ask("POST", f"/v1/runs/{run}/approvals", {"resolutions": [resolution]})
        await gateway.state(run, "completed")
        async with gateway.feed(f"session_id={session}", last=last) as feed:
            await feed.until("run.completed")
            after = [one.id for one in feed.seen if one.id]
        async with gateway.feed(f"session_id={session}&last_event_id=0") as feed:
            await feed.until("run.completed")
            whole = [one.id for one in feed.seen if one.id]
        assert before + after == whole


@pytest.mark.requirement("API-4", "MSG-21")
async def test_a_reader_that_joins_in_mid_stream_gets_the_text_so_far(sites: Sites) -> None:
    gate = Gate()
    async with sites(Said(LONG, middle=gate, at=3)) as gateway:
        session = await gateway.session()
        await gateway.says(session, "hi")
        await gate.reached.wait()
        async with gateway.feed(f"session_id={session}") as feed:
            first = await feed.until("delta")
            assert (first.data["offset"], first.data["text"]) == (0, LONG[:24])
            gate.open.set()
            assert await feed.text("The end.") == LONG


@pytest.mark.requirement("API-4")
@pytest.mark.parametrize(
    ("query", "seen"),
    [
        ("kinds=run", {"run.queued", "run.started", "run.completed"}),
        ("kinds=run.completed,delta", {"run.completed", "delta"}),
        ("kinds=delivery", {"delivery.sent"}),
    ],
)
async def test_kinds_are_filtered_by_word_or_whole(
    sites: Sites, query: str, seen: set[str]
) -> None:
    async with sites("hello") as gateway:
        session = await gateway.session()
        async with gateway.feed(f"session_id={session}&{query}&last_event_id=0") as feed:
            async with gateway.feed(f"session_id={session}&last_event_id=0") as other:
                await gateway.says(session, "hi")
                await other.until("delivery.sent")
            await feed.until("delivery.sent" if "delivery" in query else "run.completed")
        assert {one.kind for one in feed.seen} == seen


@pytest.mark.requirement("API-4")
async def test_sessions_and_runs_are_kept_apart(sites: Sites) -> None:
    async with sites("one", "two") as gateway:
        mine, other = await gateway.session(), await gateway.session()
        async with gateway.feed(f"session_id={mine}") as feed:
            await gateway.state(await gateway.says(other, "theirs"), "completed")
            run = await gateway.says(mine, "mine")
            await feed.until("run.completed")
        about = {one.data.get("session_id") for one in feed.seen if one.kind != "ready"}
        assert about == {mine}
        async with gateway.feed(f"run_id={run}&last_event_id=0") as feed:
            await feed.until("run.completed")
        assert {one.data.get("run_id") for one in feed.seen} == {run}


@pytest.mark.requirement("API-4")
async def test_a_reader_of_one_run_hears_nothing_live_of_another(sites: Sites) -> None:
    gate = Gate()
    async with sites(Said("mine", before=gate), "theirs") as gateway:
        mine, other = await gateway.session(), await gateway.session()
        run = await gateway.says(mine, "mine")
        await gate.reached.wait()
        async with gateway.feed(f"run_id={run}") as feed:
            await feed.until("ready")
            async with gateway.feed(f"session_id={other}") as others:
                await gateway.says(other, "theirs")
                await others.until("delta")
                await others.until("run.completed")
            gate.open.set()
            await feed.until("run.completed")
        about = {one.data.get("run_id") for one in feed.seen if one.kind != "ready"}
        assert about == {run}


@pytest.mark.requirement("API-4")
async def test_where_a_reader_goes_on_stands_in_the_header_before_the_query(sites: Sites) -> None:
    """A browser repeats the query of its first request and says in the header how far it came."""
    async with sites("hello") as gateway:
        session = await gateway.session()
        await gateway.state(await gateway.says(session, "hi"), "completed")
        async with gateway.feed(f"session_id={session}&last_event_id=0") as feed:
            first = (await feed.until("run.started")).id
            await feed.until("run.completed")
            later = [one.id for one in feed.seen if one.id and int(one.id) > int(first)]
        async with gateway.feed(f"session_id={session}&last_event_id=0", last=first) as feed:
            await feed.until("run.completed")
            assert [one.id for one in feed.seen if one.id] == later
        for wrong in ("abc", "-1", "1.5", "9" * 19):
            headers = {"Last-Event-ID": wrong}
            status, problem = await gateway.ask("GET", "/v1/events", headers=headers)
            assert (status, problem["field"]) == (422, "Last-Event-ID")


@pytest.mark.requirement("API-4")
async def test_a_reader_that_is_too_slow_is_told_of_the_gap(
    sites: Sites, fail_after: FailAfter
) -> None:
    async with fail_after(), sites("hello") as gateway:
        session = await gateway.session()
        run = await gateway.says(session, "hi")
        await gateway.state(run, "completed")
        async with gateway.feed(f"session_id={session}") as feed:
            await feed.until("ready")
            noise = {"type": "activity", "session_id": session, "run_id": run, "state": "output"}
            # More than the connection holds while nobody reads it, and as many as may wait.
            for number in range(2 * WAITING):
                gateway.bus.publish(LIVE, {**noise, "padding": "x" * 10_000})
                if number % 50 == 0:
                    await settle()
            gap = await feed.until("gap")
            assert gap.data["reason"] == "live events were dropped"


@pytest.mark.requirement("API-4")
async def test_a_silent_stream_beats(sites: Sites) -> None:
    clock = FakeClock()

    def timed(plan: Plan) -> None:
        plan.http_clock = clock

    async with sites(change=timed) as gateway, gateway.feed() as feed:
        await feed.until("ready")
        reading = asyncio.create_task(feed.until(":"), name="heartbeat")
        while not reading.done():
            # The reader's tick has to be armed before time can pass over it.
            await clock.advance(TICK_S)
            await gateway.database.read(lambda conn: None)
        assert (await reading).kind == ":"
        assert clock.monotonic() >= HEARTBEAT_S


@pytest.mark.requirement("API-1")
async def test_a_stream_ends_with_the_token_that_opened_it(sites: Sites) -> None:
    clock = FakeClock()

    def timed(plan: Plan) -> None:
        plan.http_clock = clock

    async with sites(change=timed) as gateway, gateway.feed() as feed:
        await feed.until("ready")
        gateway.admin_tokens[:] = ["another"]
        reading = asyncio.create_task(feed.until("nothing"), name="end of the stream")
        while not reading.done():
            await clock.advance(TICK_S)
            await gateway.database.read(lambda conn: None)
        assert isinstance(reading.exception(), EOFError)


class DeafBus(MemoryBus):
    """A bus that loses every word about durable events."""

    def publish(self, topic: str, data: dict[str, object]) -> None:
        if topic != EVENTS:
            super().publish(topic, data)


@pytest.mark.requirement("API-4", "MSG-21")
async def test_a_lost_signal_costs_a_tick_and_no_event(sites: Sites) -> None:
    def deaf(plan: Plan) -> None:
        plan.bus = DeafBus()

    async with sites("hello", change=deaf) as gateway:
        session = await gateway.session()
        async with gateway.feed(f"session_id={session}") as feed:
            await feed.until("ready")
            await gateway.says(session, "hi")
            await feed.until("run.completed")


class LateBus(DeafBus):
    """A bus on which live events wait until they are let go; `over` once a run told its end."""

    def __init__(self) -> None:
        super().__init__()
        self.held: list[dict[str, object]] = []
        self.over = asyncio.Event()

    def publish(self, topic: str, data: dict[str, object]) -> None:
        if topic == SNAPSHOT:
            # A stream that opens asks what runs then. A run that has begun by that time says
            # everything once more, and these tests count what is said.
            return
        if topic != LIVE:
            super().publish(topic, data)
            return
        self.held.append(data)
        if data.get("state") == "done":
            self.over.set()

    def let_go(self) -> None:
        for data in self.held:
            super().publish(LIVE, data)


@pytest.mark.requirement("API-4", "MSG-21")
async def test_what_a_run_did_is_told_before_its_end_however_short_it_was(
    sites: Sites, fail_after: FailAfter
) -> None:
    """The read that looks for the beginning of a short run finds its end too."""
    bus = LateBus()

    def late(plan: Plan) -> None:
        # No tick reads before the live events come.
        plan.bus, plan.http_clock = bus, FakeClock()

    async with fail_after(), sites("hello", change=late) as gateway:
        session = await gateway.session()
        async with gateway.feed(f"session_id={session}&kinds=activity,delta,run") as feed:
            await feed.until("ready")
            await gateway.says(session, "hi")
            await bus.over.wait()
            bus.let_go()
            await feed.until("run.completed")
        told = [str(one.data["state"] if one.kind == "activity" else one.kind) for one in feed.seen]
        assert told[-6:] == ["run.queued", "run.started", "thinking", "delta", "done", told[-1]]


@pytest.mark.requirement("API-4", "MSG-21")
async def test_what_a_run_did_is_not_told_after_its_end(
    sites: Sites, fail_after: FailAfter
) -> None:
    """Its live events come from another replica, later than the end in the database."""
    bus = LateBus()

    def late(plan: Plan) -> None:
        plan.bus = bus

    async with fail_after(), sites("hello", change=late) as gateway:
        session = await gateway.session()
        async with gateway.feed(f"session_id={session}&kinds=activity,run") as feed:
            await feed.until("ready")
            await gateway.says(session, "hi")
            await feed.until("run.completed")
            await bus.over.wait()
            bus.let_go()
            assert (await feed.until("activity")).data["state"] == "done"


@pytest.mark.requirement("API-4")
async def test_a_gap_is_said_and_the_text_comes_again(sites: Sites) -> None:
    gate = Gate()
    async with sites(Said(LONG, middle=gate, at=2)) as gateway:
        session = await gateway.session()
        run = await gateway.says(session, "hi")
        await gate.reached.wait()
        async with gateway.feed(f"session_id={session}") as feed:
            await feed.until("delta")
            noise = {"type": "activity", "session_id": session, "run_id": run, "state": "output"}
            for _ in range(WAITING + 10):
                gateway.bus.publish(LIVE, dict(noise))
            gap = await feed.until("gap")
            assert gap.data["reason"] == "live events were dropped"
            again = await feed.until("delta")
            assert (again.data["offset"], again.data["text"]) == (0, LONG[:16])
            gate.open.set()
            await feed.until("run.completed")


@pytest.mark.requirement("API-4")
async def test_a_position_of_another_database_is_a_gap(sites: Sites) -> None:
    async with sites() as gateway, gateway.feed(last="999999") as feed:
        gap = await feed.until("gap")
        assert int(gap.id) < 999999
        made = await gateway.session()
        created = await feed.until("session.created")
        assert created.data["session_id"] == made


@pytest.mark.requirement("API-4", "API-3")
async def test_a_stream_of_nothing_is_refused(sites: Sites) -> None:
    async with sites() as gateway:
        for query, status in (
            ("session_id=ses_none", 404),
            ("run_id=run_none", 404),
            ("last_event_id=abc", 422),
            ("session_id=%00", 422),
        ):
            assert (await gateway.ask("GET", f"/v1/events?{query}"))[0] == status


async def test_the_end_of_the_server_ends_its_streams(sites: Sites) -> None:
    async with sites() as gateway, aiohttp.ClientSession() as reader:
        async with (
            serve(build_app(gateway.services), gateway.services.settings) as port,
            reader.get(
                f"http://127.0.0.1:{port}/v1/events", headers={"Authorization": f"Bearer {ADMIN}"}
            ) as response,
        ):
            feed = Feed(response)
            await feed.until("ready")
            ending = asyncio.create_task(feed.next(), name="end of the stream")
        with pytest.raises((EOFError, aiohttp.ClientError)):
            await ending


class SlowBus(MemoryBus):
    """A bus on which readers of the event stream have to wait."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = Gate()
        self.left = asyncio.Event()

    @asynccontextmanager
    async def subscribe(
        self, *topics: str, limit: int = 1024
    ) -> AsyncIterator[AsyncIterator[Signal]]:
        async with super().subscribe(*topics, limit=limit) as signals:
            if topics != (EVENTS, LIVE):
                yield signals
                return
            try:
                await self.gate.wait()
                yield signals
            finally:
                self.left.set()


@pytest.mark.requirement("API-4")
async def test_a_reader_who_leaves_before_the_stream_begins_is_no_error(sites: Sites) -> None:
    bus = SlowBus()

    def slow(plan: Plan) -> None:
        plan.bus = bus

    async with sites(change=slow) as gateway:
        _, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        host, token = f"Host: 127.0.0.1:{gateway.port}", f"Authorization: Bearer {ADMIN}"
        writer.write(f"GET /v1/events HTTP/1.1\r\n{host}\r\n{token}\r\n\r\n".encode())
        await bus.gate.reached.wait()
        writer.close()
        await writer.wait_closed()
        with capture_logs() as lines:
            # The answer comes after the server has seen that the reader left.
            await gateway.ask("GET", "/v1/status")
            bus.gate.open.set()
            await bus.left.wait()
            await gateway.ask("GET", "/v1/status")
        assert [one for one in lines if one["log_level"] == "error"] == []
