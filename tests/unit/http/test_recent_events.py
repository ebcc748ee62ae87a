"""The newest events are read once for all streams that are up to date (API-4)."""

import asyncio
from collections.abc import Sequence

import pytest

from gateway.http.recent_events import BATCH, KEPT_S, MOST, News, RecentEvents
from gateway.http.stream import Filter
from runtime.domain.errors import Unavailable
from runtime.domain.events import Event, EventKind
from tests.conftest import FailAfter
from tests.fakes.clock import FakeClock
from tests.fakes.model import Gate

EVERY = Filter()


class Feed:
    """The feed of a database, which counts how often it is read."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.reads = 0
        self.gate: Gate | None = None
        self.away = False

    def add(self, session: str = "ses_1", run: str = "run_1") -> int:
        place = len(self.events) + 1
        self.events.append(
            Event(
                position=place,
                session_id=session,
                seq=place,
                run_id=run,
                kind=EventKind.RUN_QUEUED,
                at_ms=0,
                data={},
            )
        )
        return place

    async def events_after(self, position: int, *, limit: int) -> Sequence[Event]:
        self.reads += 1
        found = [one for one in self.events if one.position > position][:limit]
        if self.gate is not None:
            await self.gate.wait()
        if self.away:
            raise Unavailable("away")
        return found

    async def last_position(self) -> int:
        return len(self.events)


def places(news: News | None) -> list[int]:
    assert news is not None
    return [one.event.position for one in news.told]


@pytest.mark.requirement("API-4", "SCALE-5")
async def test_a_thousand_streams_share_one_reading(fail_after: FailAfter) -> None:
    feed, clock = Feed(), FakeClock()
    feed.add()
    recent = RecentEvents(feed, clock)
    assert places(await recent.after(1, EVERY)) == []
    feed.add()
    reads, feed.gate = feed.reads, Gate()
    async with fail_after(), asyncio.TaskGroup() as group:
        first = group.create_task(recent.after(1, EVERY), name="first")
        await feed.gate.reached.wait()
        # Committed while the first reads: none of those who ask now may miss it.
        feed.add()
        many = [group.create_task(recent.after(1, EVERY), name=f"{n}") for n in range(1_000)]
        await clock.advance(0)
        feed.gate.open.set()
    assert places(first.result())[0] == 2
    assert {tuple(places(one.result())) for one in many} == {(2, 3)}
    assert feed.reads == reads + 2


@pytest.mark.requirement("API-4")
async def test_what_nothing_woke_may_know_what_another_read_a_moment_ago() -> None:
    feed, clock = Feed(), FakeClock()
    recent = RecentEvents(feed, clock)
    await recent.after(0, EVERY)
    feed.add()
    for _ in range(100):
        assert places(await recent.after(0, EVERY, max_age_s=1.0)) == []
    assert feed.reads == 1
    await clock.advance(1)
    assert places(await recent.after(0, EVERY, max_age_s=1.0)) == [1]


@pytest.mark.requirement("API-4")
async def test_each_stream_gets_what_it_asked_for_and_goes_on_behind_all_of_it() -> None:
    feed = Feed()
    recent = RecentEvents(feed, FakeClock())
    await recent.after(0, EVERY)
    feed.add("ses_1", "run_1"), feed.add("ses_2", "run_2"), feed.add("ses_1", "run_3")
    for wanted, found in (
        (Filter(session_id="ses_1"), [1, 3]),
        (Filter(run_id="run_2"), [2]),
        (Filter(session_id="ses_1", run_id="run_2"), []),
    ):
        news = await recent.after(0, wanted)
        assert places(news) == found
        assert news is not None
        assert news.position == 3
    ahead = await recent.after(9, EVERY)
    assert ahead == News([], 9)


@pytest.mark.requirement("API-4")
async def test_more_than_a_batch_is_read_to_its_end() -> None:
    feed = Feed()
    recent = RecentEvents(feed, FakeClock())
    await recent.after(0, EVERY)
    for _ in range(2 * BATCH + 1):
        feed.add()
    assert len(places(await recent.after(0, EVERY))) == 2 * BATCH + 1


@pytest.mark.requirement("API-4", "RUN-6")
async def test_events_are_forgotten_soon_and_an_older_position_is_for_the_database() -> None:
    feed, clock = Feed(), FakeClock()
    recent = RecentEvents(feed, clock)
    feed.add()
    assert places(await recent.after(1, EVERY)) == []
    assert await recent.after(0, EVERY) is None
    feed.add()
    assert places(await recent.after(1, EVERY)) == [2]
    await clock.advance(KEPT_S)
    assert await recent.after(1, EVERY) is None
    assert places(await recent.after(2, EVERY)) == []
    for _ in range(MOST + 1):
        feed.add()
    assert await recent.after(2, EVERY) is None
    assert len(places(await recent.after(3, EVERY))) == MOST


@pytest.mark.requirement("API-4", "API-3")
async def test_while_the_database_is_away_nothing_is_told_and_nothing_is_lost() -> None:
    feed = Feed()
    recent = RecentEvents(feed, FakeClock())
    await recent.after(0, EVERY)
    feed.add()
    feed.away = True
    assert places(await recent.after(0, EVERY)) == []
    feed.away = False
    assert places(await recent.after(0, EVERY)) == [1]


@pytest.mark.requirement("API-4")
async def test_a_stream_that_ends_amid_the_reading_takes_nobody_along(
    fail_after: FailAfter,
) -> None:
    feed = Feed()
    recent = RecentEvents(feed, FakeClock())
    await recent.after(0, EVERY)
    feed.add()
    feed.gate = Gate()
    async with fail_after():
        first = asyncio.create_task(recent.after(0, EVERY), name="first")
        await feed.gate.reached.wait()
        second = asyncio.create_task(recent.after(0, EVERY), name="second")
        first.cancel()
        await asyncio.wait([first])
        feed.gate.open.set()
        assert places(await second) == [1]
