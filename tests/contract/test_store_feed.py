"""The feed of events on PostgreSQL: who reads on misses nothing that is committed late."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import pytest

from runtime.sessions import events
from runtime.store import Connection, Database
from tests.contract.store_support import StillClock

OLD_MS = 2 * events.HOLE_MS
_OWN = "SELECT pg_current_xact_id()::text::bigint"
_NOW = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint"
_INSERT = (
    "INSERT INTO events (session_id, seq, kind, data, at_ms, xid) "
    "VALUES ('ses', $1, 'run.queued', '{}', $2, $3)"
)


@pytest.fixture
def dialect() -> str:
    return "postgresql"


class Writer:
    """A unit of another replica, step by step."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection
        self._transaction = connection.transaction()
        self._xid = 0

    async def begins(self) -> None:
        """It has written something else before, so that its transaction has its number."""
        await self._transaction.start()
        self._xid = await self._connection.fetchval(_OWN)

    async def adds(self, seq: int, *, age_ms: int = 0) -> None:
        """It draws a position for an event."""
        now = await self._connection.fetchval(_NOW)
        await self._connection.execute(_INSERT, seq, now - age_ms, self._xid)

    async def commits(self) -> None:
        await self._transaction.commit()

    async def rolls_back(self) -> None:
        await self._transaction.rollback()


@asynccontextmanager
async def writer(url: str) -> AsyncIterator[Writer]:
    """One that has begun."""
    connection = await asyncpg.connect(url)
    try:
        made = Writer(connection)
        await made.begins()
        yield made
    finally:
        await connection.close()


async def read(store: Database, position: int) -> list[int]:
    """The numbers of the events past a position."""

    def work(conn: Connection) -> list[int]:
        return [event.seq for event in events.after(conn, position)]

    return await store.read(work)


async def next_of(store: Database, position: int) -> list[int]:
    """The same, once there is something: a unit of any database on the server holds the feed up."""
    async with asyncio.timeout(300):
        while not (found := await read(store, position)):
            pass
    return found


@pytest.mark.requirement("API-4", "SCALE-1")
async def test_an_event_that_an_older_transaction_wrote_first_is_not_skipped(
    store: Database, migrated_url: str, clock: StillClock
) -> None:
    """The younger transaction draws the lower position and is committed later."""
    async with writer(migrated_url) as older, writer(migrated_url) as younger:
        await younger.adds(1)
        await older.adds(2)
        await older.commits()
        assert await read(store, 0) == [], "the first one may still come"
        assert await store.read(events.last_position) == 0
        await younger.commits()
        assert await next_of(store, 0) == [1, 2]
        assert await store.read(events.last_position) == 2


@pytest.mark.requirement("API-4")
async def test_a_unit_that_was_rolled_back_holds_the_feed_up_for_seconds_only(
    store: Database, migrated_url: str, clock: StillClock
) -> None:
    async with writer(migrated_url) as lost:
        await lost.adds(1)
        await lost.rolls_back()
    async with writer(migrated_url) as kept:
        await kept.adds(2)
        await kept.commits()
    assert await read(store, 0) == [], "nobody knows yet that the first one never comes"
    clock.advance(OLD_MS)
    assert await next_of(store, 0) == [2]
    assert await store.read(events.last_position) == 2


async def test_a_reader_that_is_far_behind_gets_everything_at_once(
    store: Database, migrated_url: str
) -> None:
    async with writer(migrated_url) as lost:
        await lost.adds(1, age_ms=OLD_MS)
        await lost.rolls_back()
    async with writer(migrated_url) as kept:
        for seq in (2, 3):
            await kept.adds(seq, age_ms=OLD_MS)
        await kept.commits()
    assert await next_of(store, 0) == [2, 3]
    assert await next_of(store, 2) == [3]


async def test_an_event_that_is_there_is_not_passed_because_an_older_unit_still_runs(
    store: Database, migrated_url: str
) -> None:
    """Whoever wrote last may have begun first: the order of the feed is that of the positions."""
    async with writer(migrated_url) as first, writer(migrated_url) as running:
        async with writer(migrated_url) as younger:
            await younger.adds(1)
            await younger.commits()
        await first.adds(2)
        await first.commits()
        assert await next_of(store, 0) == [1, 2], "never the second without the first"
        await running.rolls_back()
