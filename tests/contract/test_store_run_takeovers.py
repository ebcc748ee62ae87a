"""Runs whose worker died: hundreds go back in a few units, and what it still writes is refused."""

from functools import partial

import pytest
from sqlalchemy import Connection

from runtime.bus.memory import MemoryBus
from runtime.domain.errors import StaleLease
from runtime.domain.runs import Holder, RunState
from runtime.intake.accept import Accepting
from runtime.sessions import claims, due_work, events, runs
from runtime.sessions.claims import AT_ONCE, MAX_ATTEMPTS
from runtime.sessions.due_work import Wanted
from runtime.sessions.unit import Units, in_unit
from runtime.sessions.window import WindowCache
from runtime.store import Database, leases
from tests.contract.store_support import StillClock
from tests.contract.test_store_chats import RULES, said
from tests.support.kinds import COMMANDS, KINDS

MANY = AT_ONCE + 50
TTL_MS = 15_000
DEAD, LIVING = Holder("dead", 1), Holder("living", 1)


def lease(conn: Connection, holder: Holder) -> None:
    """A process is there for one lease."""
    name = f"{leases.PROCESS}{holder.worker}"
    assert leases.acquire(conn, name=name, holder=holder.worker, ttl_ms=TTL_MS) == holder.fence


def claim(conn: Connection, holder: Holder, most: int) -> list[str]:
    """The runs that a worker gets."""
    taken = in_unit(
        conn, KINDS, lambda unit: claims.claim(unit, holder, most=most, cache=WindowCache())
    )
    return [one.run.id for one in taken.runs]


def arrive(conn: Connection, amount: int) -> None:
    """A message in each of so many rooms."""
    for number in range(amount):
        message = said("hello", str(number), chat=f"-{number}")
        in_unit(conn, KINDS, partial(Accepting(RULES, COMMANDS).accept, message=message))


async def take_over(store: Database) -> int:
    """One unit of taking over; how many runs."""
    return await Units(store, MemoryBus(), KINDS).run(claims.recover, name="take-over")


def is_found(conn: Connection) -> bool:
    """Whether a look finds runs that lost their worker."""
    return due_work.look(conn, Wanted(abandoned=True)).abandoned


def _resumed_by(conn: Connection, run_id: str) -> list[object]:
    """What let a run go on, each time."""
    told = events.after(conn, 0, run_id=run_id)
    return [one.data["resumed_by"] for one in told if "resumed_by" in one.data]


@pytest.mark.requirement("SCALE-2", "MSG-9", "RUN-2")
async def test_hundreds_of_runs_of_a_dead_worker_go_back_in_a_few_units(
    store: Database, clock: StillClock
) -> None:
    def begin(conn: Connection) -> tuple[list[str], list[str]]:
        arrive(conn, MANY + 1)
        lease(conn, DEAD)
        lease(conn, LIVING)
        return claim(conn, LIVING, 1), claim(conn, DEAD, MANY)

    kept, lost = await store.write(begin, name="begin")
    assert not await store.read(is_found)
    assert await take_over(store) == 0, "its lease lives"
    clock.advance(TTL_MS - 1000)
    await store.write(lambda conn: lease(conn, LIVING), name="renew")
    clock.advance(1000)
    assert await store.read(is_found)
    taken = [await take_over(store) for _ in range(3)]
    assert taken == [AT_ONCE, MANY - AT_ONCE, 0]
    assert not await store.read(is_found)

    def look(conn: Connection) -> list[tuple[RunState, int]]:
        found = [runs.get(conn, one) for one in lost]
        return [(run.state, run.attempt) for run in found]

    assert await store.read(look) == [(RunState.QUEUED, 1)] * MANY
    with pytest.raises(StaleLease):
        await store.read(lambda conn: runs.owned(conn, lost[0], DEAD))
    told = await store.read(lambda conn: [_resumed_by(conn, one) for one in lost])
    assert told == [[{"kind": "takeover"}]] * MANY
    again = await store.write(lambda conn: claim(conn, LIVING, MANY), name="claim")
    assert sorted(again) == sorted(lost), "each is ready, and once"
    assert not set(kept) & set(again)


@pytest.mark.requirement("SCALE-2", "MSG-13")
async def test_what_is_not_to_go_on_is_ended_beside_what_is(
    store: Database, clock: StillClock
) -> None:
    def begin(conn: Connection) -> list[str]:
        arrive(conn, 4)
        lease(conn, DEAD)
        found = claim(conn, DEAD, 4)
        runs.change(conn, found[0], {"cancel": "stopped"})
        runs.change(conn, found[1], {"attempt": MAX_ATTEMPTS - 1})
        return found

    lost = await store.write(begin, name="begin")
    clock.advance(TTL_MS)
    taken = [await take_over(store) for _ in range(4)]
    assert taken == [2, 1, 1, 0]
    states = await store.read(lambda conn: [runs.get(conn, one).state for one in lost])
    queued = [RunState.QUEUED] * 2
    assert states == [RunState.CANCELLED, RunState.INTERRUPTED, *queued]


@pytest.mark.requirement("SCALE-2", "MSG-9")
async def test_a_run_that_somebody_has_again_is_not_taken_from_him(
    store: Database, clock: StillClock
) -> None:
    """What was found before the lanes were locked is read again behind the locks."""

    def begin(conn: Connection) -> list[str]:
        arrive(conn, 3)
        lease(conn, DEAD)
        return claim(conn, DEAD, 3)

    lost = await store.write(begin, name="begin")
    clock.advance(TTL_MS)

    def moved(conn: Connection) -> list[str]:
        lease(conn, LIVING)
        found = [runs.get(conn, one).session_id for one in lost]
        runs.change(conn, lost[0], {"worker": LIVING.worker, "fence": LIVING.fence})
        runs.change(conn, lost[1], {"state": RunState.COMPLETED.value})
        return [run.id for run in runs.abandoned(conn, found).values()]

    assert await store.write(moved, name="moved") == [lost[2]]
