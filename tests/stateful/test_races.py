"""Two replicas at one run: the unit that waited for the lane sees what became of it.

PostgreSQL alone can show this, where units run side by side. The first unit is held in front of
its COMMIT, the second is let go only once the server says that it waits for the first.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import asyncpg
import pytest
from sqlalchemy import Connection, text

from runtime.domain.decisions import SessionMode
from runtime.domain.errors import StaleLease
from runtime.domain.events import EventKind
from runtime.domain.people import Trust
from runtime.domain.runs import Holder, RunState
from runtime.sessions import claims, run_stop, runs, sessions
from runtime.sessions.run_steps import finish
from runtime.sessions.sessions import Session
from runtime.sessions.unit import Unit
from runtime.sessions.window import WindowCache
from runtime.store import Database, leases
from tests.contract.store_support import clock, migrated_url, points, schema_templates, store
from tests.stateful.arriving import deliver
from tests.stateful.bench import LEASE_MS, Held
from tests.stateful.working import ending, write_step
from tests.support.kinds import unit_of

__all__ = ["clock", "migrated_url", "points", "schema_templates", "store"]

T = TypeVar("T")
FIRST, SECOND = "w0", "w1"
_WAITING = "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'"
_HELD = "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'advisory'"
_OF_THIS = " AND pid IN (SELECT pid FROM pg_stat_activity WHERE datname = current_database())"


@pytest.fixture
def dialect() -> str:
    return "postgresql"


@dataclass
class Race:
    """Runs two units so that the second starts inside the first, and waits for its end or passes
    over what it holds."""

    store: Database
    server: asyncpg.Connection

    async def run(
        self, first: Callable[[Connection], object], second: Callable[[Connection], T]
    ) -> T:
        def held(conn: Connection) -> None:
            first(conn)
            conn.execute(text("SELECT pg_advisory_xact_lock(1)"))

        async with asyncio.timeout(180):
            await self.server.execute("SELECT pg_advisory_lock(1)")
            leading = asyncio.create_task(self.store.write(held, name="first"), name="first")
            await self._until(_HELD)
            waiting = asyncio.create_task(self.store.write(second, name="second"), name="second")
            while not waiting.done() and not await self.server.fetchval(_WAITING + _OF_THIS):
                pass
            await self.server.execute("SELECT pg_advisory_unlock_all()")
            await leading
            return await waiting

    async def _until(self, query: str) -> None:
        while not await self.server.fetchval(query + _OF_THIS):
            pass


@pytest.fixture
async def race(store: Database, migrated_url: str) -> AsyncIterator[Race]:
    server = await asyncpg.connect(migrated_url)
    yield Race(store, server)
    await server.close()


async def begun(store: Database) -> tuple[str, Holder]:
    """A run in the hands of the first worker, whose lease has run out since."""

    def work(conn: Connection) -> str:
        for name in (FIRST, SECOND):
            leases.acquire(conn, name=f"{leases.PROCESS}{name}", holder=name, ttl_ms=LEASE_MS)
        queued = deliver(conn, 0, 1, Trust.OWNER, queue_mode="followup")
        assert queued is not None
        claim(conn, Holder(FIRST, 1))
        leases.release(conn, name=f"{leases.PROCESS}{FIRST}", holder=FIRST, fence=1)
        return queued.run_id

    return await store.write(work, name="begun"), Holder(FIRST, 1)


def claim(conn: Connection, holder: Holder) -> None:
    take = unit_of(lambda unit: claims.claim(unit, holder, most=1, cache=WindowCache()))
    (taken,) = take(conn).runs
    assert taken.run.worker == holder.worker


@pytest.mark.requirement("MSG-9", "SCALE-2")
@pytest.mark.parametrize("attempt", [0, claims.MAX_ATTEMPTS - 1])
async def test_a_run_that_ends_while_it_is_taken_over_stays_ended(race: Race, attempt: int) -> None:
    """One that would go on is passed over; one that would be given up is waited for."""
    run_id, holder = await begun(race.store)
    end = ending(RunState.COMPLETED)
    await race.store.write(
        lambda conn: runs.change(conn, run_id, {"attempt": attempt}), name="attempt"
    )
    taken = await race.run(
        unit_of(lambda unit: finish(unit, holder, run_id, end, claim=None)),
        unit_of(claims.recover),
    )
    assert taken == (1 if attempt else 0)
    run = await race.store.read(lambda conn: runs.get(conn, run_id))
    assert run.state is RunState.COMPLETED
    assert await race.store.write(unit_of(claims.recover), name="again") == 0


@pytest.mark.requirement("MSG-4")
@pytest.mark.parametrize("unit", ["model", "start", "results", "park", "finish", "end"])
async def test_a_worker_that_waited_while_its_run_was_given_away_writes_nothing(
    race: Race, unit: str
) -> None:
    run_id, holder = await begun(race.store)

    def given_away(conn: Connection) -> None:
        unit_of(claims.recover)(conn)
        claim(conn, Holder(SECOND, 1))

    with pytest.raises(StaleLease):
        await race.run(given_away, partial(write_step, unit, holder=holder, held=Held(run_id)))
    run = await race.store.read(lambda conn: runs.get(conn, run_id))
    assert (run.state, run.worker, run.step) == (RunState.RUNNING, SECOND, 0)


@pytest.mark.requirement("POL-2")
@pytest.mark.parametrize("by_key", [False, True])
async def test_a_unit_that_waited_for_a_lane_reads_the_session_as_it_is_by_then(
    race: Race, by_key: bool
) -> None:
    run_id, holder = await begun(race.store)

    def session(conn: Connection) -> Session:
        return sessions.get(conn, runs.get(conn, run_id).session_id)

    key = (await race.store.read(session)).key

    def changed(conn: Connection) -> None:
        found = session(conn)
        unit_of(lambda unit: unit.lane(found.id).record(EventKind.SESSION_CHANGED, None))(conn)
        sessions.change(conn, found.id, {"mode": SessionMode.PLAN.value})

    def mode(unit: Unit) -> SessionMode | None:
        if not by_key:
            return unit.owned_in_session(run_id, holder)[2].mode
        found = unit.session_by_key(key)
        return None if found is None else found[1].mode

    assert await race.store.write(unit_of(mode), name="before") is not SessionMode.PLAN
    assert await race.run(changed, unit_of(mode)) is SessionMode.PLAN


@pytest.mark.requirement("MSG-6")
async def test_a_stop_that_waits_for_the_end_of_a_run_changes_nothing(race: Race) -> None:
    run_id, holder = await begun(race.store)
    end = ending(RunState.COMPLETED)
    stopped = await race.run(
        unit_of(lambda unit: finish(unit, holder, run_id, end, claim=None)),
        unit_of(lambda unit: run_stop.stop_run(unit, run_id, by="Ada", reason="stop")),
    )
    assert stopped.ended == stopped.running == ()


async def test_a_lease_that_two_want_at_once_goes_to_one(race: Race) -> None:
    take = partial(leases.acquire, name="timers", ttl_ms=LEASE_MS)
    second = await race.run(
        lambda conn: take(conn, holder=FIRST), lambda conn: take(conn, holder=SECOND)
    )
    assert second is None
    assert await race.store.read(lambda conn: leases.listing(conn)[0].holder) == FIRST
