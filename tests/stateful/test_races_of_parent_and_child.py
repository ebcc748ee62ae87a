"""Units about a child and about its parent at once: neither stands against the other (decision 23).

Lanes are locked from the child upwards, and a row of an agent is changed only where no lane above
it is to be locked any more. PostgreSQL alone can show where that is broken: it ends one of the two
units, which is then begun again.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import asyncpg
import pytest
from sqlalchemy import Connection

from runtime.domain.errors import Conflict
from runtime.domain.runs import RunState, Usage
from runtime.features.subagents import agent_messages
from runtime.features.subagents.agent_messages import Word
from runtime.features.subagents.ends import child_stop, parent_results
from runtime.features.subagents.rows import agents
from runtime.features.subagents.spawn import children
from runtime.sessions import claims, open_calls, run_stop
from runtime.sessions.run_steps import Finish, finish
from runtime.store import open_database
from tests.contract.store_support import Points, migrated_url, schema_templates
from tests.stateful.bench import LEASE_MS
from tests.stateful.children_bench import agent, spawning
from tests.stateful.test_children_known_defects import Play
from tests.stateful.test_races import Race
from tests.stateful.units import PostgresUnits
from tests.support.kinds import unit_of

__all__ = ["migrated_url", "schema_templates"]

Unit = Callable[[Connection], object]
_WAITING = (
    "SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted AND pid IN "
    "(SELECT pid FROM pg_stat_activity WHERE datname = current_database())"
)
STOP = "stop"


@pytest.fixture
def dialect() -> str:
    return "postgresql"


@dataclass
class Meeting:
    """Lets two units run into each other: both wait for one lane, and `first` has it first."""

    url: str
    server: asyncpg.Connection
    looks: asyncpg.Connection
    at: Play
    root: str

    async def of(self, *, first: Unit, second: Unit, lane: str | None = None) -> None:
        """They wait for the root's lane, if none is named. Raises `AssertionError` where one of
        them had to be begun again."""
        points = Points()
        store = open_database(self.url, clock=self.at.units.clock, points=points)
        await store.start()
        try:
            async with asyncio.timeout(180):
                held = self.server.transaction()
                await held.start()
                await self.server.execute(
                    "SELECT 1 FROM lanes WHERE session_id = $1 FOR UPDATE", lane or self.root
                )
                leading = asyncio.create_task(store.write(first, name="first"), name="first")
                await self._wait_for(1, leading)
                waiting = asyncio.create_task(store.write(second, name="second"), name="second")
                await self._wait_for(2, waiting)
                await held.rollback()
                await leading
                await waiting
        finally:
            await store.close()
        begun = [name for name in points.passed if name.endswith(":begin")]
        assert sorted(begun) == ["first:begin", "second:begin"], "one stood against the other"

    async def _wait_for(self, units: int, last: asyncio.Task[object]) -> None:
        """Until so many wait, or the last of them did its work without that lane."""
        while not last.done() and await self.looks.fetchval(_WAITING) != units:
            pass

    def stop(self, session: str) -> Unit:
        return unit_of(lambda unit: run_stop.stop_session(unit, session, by="Ada", reason=STOP))

    def end(self, name: str, end: Finish) -> Unit:
        run_id = self.at.at_work_on(self.at.session(name))
        return unit_of(lambda unit: finish(unit, self.at.holder, run_id, end, claim=None))


def _begun(url: str) -> tuple[Play, str]:
    """A root with a run at work, and slots enough."""
    at = Play(PostgresUnits(url), 5)
    root = at.asks(0)
    at.claims(1)
    return at, root


@pytest.fixture
async def meeting(migrated_url: str) -> AsyncIterator[Meeting]:
    server = await asyncpg.connect(migrated_url)
    # What is at work is told once a transaction, so the one that holds the lane cannot look.
    looks = await asyncpg.connect(migrated_url)
    at, root = await asyncio.to_thread(_begun, migrated_url)
    yield Meeting(migrated_url, server, looks, at, root)
    await asyncio.to_thread(at.units.close)
    await looks.close()
    await server.close()


async def played(meeting: Meeting, play: Callable[[Play, str], None]) -> None:
    """What happened before, on the play's own loop."""
    at = meeting.at
    await asyncio.to_thread(play, at, at.at_work_on(meeting.root))


async def rests(meeting: Meeting, *names: str) -> None:
    """Everything comes to its end, and nobody is left at work."""
    at = meeting.at
    at.doomed |= {at.session(name) for name in names}
    await asyncio.to_thread(at.look)
    await asyncio.to_thread(at.rests)


@pytest.mark.requirement("SUB-19", "SUB-23")
async def test_a_child_and_its_parent_are_stopped_at_once(meeting: Meeting) -> None:
    def play(at: Play, root: str) -> None:
        at.spawns(root, spawning(agent("a"), mode="await"))

    await played(meeting, play)
    child = meeting.at.session("a")
    await meeting.of(first=meeting.stop(meeting.root), second=meeting.stop(child))
    await rests(meeting, "a")


@pytest.mark.requirement("SUB-7", "SUB-19")
async def test_a_child_is_stopped_while_it_is_awaited_no_longer(meeting: Meeting) -> None:
    def play(at: Play, root: str) -> None:
        at.spawns(root, spawning(agent("a"), mode="await"))

    await played(meeting, play)
    (row,) = meeting.at.now.all.open_calls

    def let_go(unit: Unit) -> None:
        call = open_calls.get(unit.conn, row["id"])
        assert call is not None
        parent_results.let_go(unit, call)

    child = meeting.at.session("a")
    await meeting.of(first=unit_of(let_go), second=meeting.stop(child))
    await rests(meeting, "a")
    assert meeting.at.statuses() == {"a": "cancelled"}


@pytest.mark.requirement("SUB-11", "SUB-19")
async def test_a_child_ends_with_what_it_depends_on_while_its_parent_is_stopped(
    meeting: Meeting,
) -> None:
    def play(at: Play, root: str) -> None:
        at.spawns(root, spawning(agent("a"), agent("b", "a"), mode="background"))
        at.turns()
        at.child_ends("a", RunState.FAILED)

    await played(meeting, play)
    child = meeting.at.session("b")
    await meeting.of(
        first=meeting.stop(meeting.root),
        second=unit_of(lambda unit: children.start(unit, child)),
    )
    await rests(meeting, "b")
    assert meeting.at.statuses() == dict.fromkeys("ab", "failed")


@pytest.mark.requirement("SUB-19", "SUB-21")
async def test_an_idle_child_ends_while_its_parent_is_stopped(meeting: Meeting) -> None:
    def play(at: Play, root: str) -> None:
        at.spawns(root, spawning(agent("a"), mode="background"))
        at.turns()

    await played(meeting, play)
    idle = Finish(RunState.CANCELLED, Usage(), 1, reason="no progress", over=True)
    await meeting.of(first=meeting.stop(meeting.root), second=meeting.end("a", idle))
    await rests(meeting, "a")
    assert meeting.at.statuses() == {"a": "timed_out"}


@pytest.mark.requirement("SUB-19", "SUB-23")
async def test_a_grandchild_is_stopped_while_its_parent_fails(meeting: Meeting) -> None:
    def play(at: Play, root: str) -> None:
        at.spawns(root, spawning(agent("a"), mode="background"))
        at.turns()
        at.spawns(at.at_work_on(at.session("a")), spawning(agent("b"), mode="background"))

    await played(meeting, play)
    failed = Finish(RunState.FAILED, Usage(), 1, error="broken")
    grandchild = meeting.at.session("b")
    await meeting.of(first=meeting.end("a", failed), second=meeting.stop(grandchild))
    await rests(meeting, "a", "b")
    assert meeting.at.statuses() == {"a": "failed", "b": "cancelled"}


@pytest.mark.requirement("SUB-19", "SUB-23")
async def test_a_child_settles_while_its_parent_is_stopped(meeting: Meeting) -> None:
    """The keeper ends it: nothing of it ran, and its own child was at work."""

    def play(at: Play, root: str) -> None:
        at.spawns(root, spawning(agent("a"), mode="background"))
        at.turns()
        at.spawns(at.at_work_on(at.session("a")), spawning(agent("b"), mode="background"))
        at.turns()
        at.child_ends("a")
        at.run(lambda conn: agents.ask_to_stop(conn, at.session("a"), STOP))

    await played(meeting, play)
    child = meeting.at.session("a")
    await meeting.of(
        first=meeting.stop(meeting.root),
        second=unit_of(lambda unit: child_stop.stop(unit, child)),
    )
    await rests(meeting, "a", "b")
    assert meeting.at.statuses() == dict.fromkeys("ab", "cancelled")


@pytest.mark.requirement("SUB-23", "SCALE-1")
async def test_a_child_is_stopped_while_its_worker_and_its_parents_are_found_dead(
    meeting: Meeting,
) -> None:
    def play(at: Play, root: str) -> None:
        at.spawns(root, spawning(agent("a"), mode="background"))
        at.turns()
        at.units.clock.advance(LEASE_MS)

    await played(meeting, play)
    child = meeting.at.session("a")
    await meeting.of(first=meeting.stop(child), second=unit_of(claims.recover), lane=child)
    await asyncio.to_thread(meeting.at.dies)
    await rests(meeting, "a")
    assert meeting.at.statuses() == {"a": "cancelled"}


@pytest.mark.requirement("SUB-19", "SUB-24")
async def test_nobody_goes_on_by_a_word_of_who_is_stopped_at_that_moment(meeting: Meeting) -> None:
    def play(at: Play, root: str) -> None:
        at.spawns(root, spawning(agent("a"), mode="background"))
        at.turns()
        at.child_ends("a")

    await played(meeting, play)
    at = meeting.at
    word = Word(at.session("a"), at.at_work_on(meeting.root), "c1", "root", "Go on.")
    store = open_database(meeting.url, clock=at.units.clock)
    await store.start()
    try:
        with pytest.raises(Conflict, match="is being stopped"):
            await Race(store, meeting.server).run(
                meeting.stop(meeting.root), unit_of(lambda unit: agent_messages.tell(unit, word))
            )
    finally:
        await store.close()
    await rests(meeting)
    assert at.statuses() == {"a": "completed"}
