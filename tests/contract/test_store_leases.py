"""Leases by the store's time: whose one is, until when, and under which fence."""

import asyncio

import pytest
from sqlalchemy import Connection

from runtime.domain.runs import Holder
from runtime.process.lease_keeper import BodyEnded, LeaseKeeper, LeaseSettings
from runtime.store import Database, leases
from tests.contract.store_support import Points, StillClock
from tests.fakes.clock import FakeClock

NAME, OTHER = "listen:test:A1", "timers"
TTL_MS = 10_000


async def take(store: Database, holder: str, *, name: str = NAME) -> int | None:
    """The fence, or None while another holds it."""
    return await store.write(
        lambda conn: leases.acquire(conn, name=name, holder=holder, ttl_ms=TTL_MS), name="take"
    )


async def keep(store: Database, holder: str) -> frozenset[tuple[str, int]]:
    """Renew both leases, as far as they are this holder's."""
    return await store.write(
        lambda conn: leases.renew(conn, [NAME, OTHER], holder=holder, ttl_ms=TTL_MS), name="keep"
    )


async def give_back(store: Database, holder: str, fence: int) -> None:
    """Release the lease, as far as it is this holder's under this fence."""
    await store.write(
        lambda conn: leases.release(conn, name=NAME, holder=holder, fence=fence), name="give-back"
    )


async def holds(store: Database, holder: str, fence: int) -> bool:
    """Whether the lease is theirs at this moment."""

    def ask(conn: Connection) -> bool:
        return leases.holds(conn, NAME, Holder(holder, fence))

    return await store.read(ask)


@pytest.mark.requirement("SCALE-1")
async def test_a_lease_is_one_holders_until_it_runs_out(store: Database, clock: StillClock) -> None:
    assert await take(store, "a") == 1
    assert await take(store, "b") is None
    assert await take(store, "a") == 1, "whoever has it keeps it, under the same fence"
    clock.advance(TTL_MS + 60_000)
    assert await take(store, "b") == 2
    assert await take(store, "a") is None


@pytest.mark.requirement("SCALE-1", "SCALE-2")
async def test_a_holder_that_came_too_late_gets_a_new_fence(
    store: Database, clock: StillClock
) -> None:
    """What it had may have been given away meanwhile, and its old writes are on their way."""
    assert await take(store, "a") == 1
    clock.advance(TTL_MS + 60_000)
    assert await take(store, "a") == 2


@pytest.mark.requirement("SCALE-1")
async def test_a_lease_that_is_renewed_does_not_run_out(store: Database, clock: StillClock) -> None:
    await take(store, "a")
    await take(store, "b", name=OTHER)
    for _ in range(3):
        clock.advance(TTL_MS // 2)
        assert await keep(store, "a") == {(NAME, 1)}
    assert await holds(store, "a", 1)
    assert await take(store, "b") is None


@pytest.mark.requirement("SCALE-1", "SCALE-2")
async def test_a_lease_is_not_renewed_by_whoever_lost_it(
    store: Database, clock: StillClock
) -> None:
    await take(store, "a")
    clock.advance(TTL_MS + 60_000)
    assert await keep(store, "a") == frozenset(), "another may take it at this moment"
    assert not await holds(store, "a", 1)
    assert await take(store, "b") == 2
    assert await keep(store, "a") == frozenset()
    assert await keep(store, "b") == {(NAME, 2)}


@pytest.mark.requirement("SCALE-1")
@pytest.mark.parametrize(("holder", "fence"), [("b", 2), ("a", 1)])
async def test_a_lease_is_given_back_by_whoever_has_it_under_its_fence(
    store: Database, clock: StillClock, holder: str, fence: int
) -> None:
    await take(store, "a")
    clock.advance(TTL_MS + 60_000)
    assert await take(store, "a") == 2
    await give_back(store, holder, fence)
    assert await holds(store, "a", 2)
    assert await take(store, "b") is None
    await give_back(store, "a", 2)
    assert not await holds(store, "a", 2)
    assert await take(store, "b") == 3, "the row stayed, and its fence grew"


@pytest.mark.requirement("SCALE-2")
async def test_a_lease_is_held_by_one_under_one_fence_and_until_its_end(
    store: Database, clock: StillClock
) -> None:
    assert not await holds(store, "a", 1), "nobody took it yet"
    await take(store, "a")
    assert await holds(store, "a", 1)
    assert not await holds(store, "b", 1)
    assert not await holds(store, "a", 2)
    clock.advance(TTL_MS + 60_000)
    assert not await holds(store, "a", 1)


@pytest.mark.requirement("OPS-10", "SCALE-2")
async def test_a_lease_that_comes_together_with_a_stop_is_given_back(
    store: Database, points: Points
) -> None:
    """Nobody waits until it runs out."""
    keeper = LeaseKeeper(store, FakeClock(), "a", LeaseSettings())
    loop = asyncio.get_running_loop()

    async def never(_fence: int) -> None:
        raise AssertionError

    holding = asyncio.create_task(keeper.hold(NAME, never), name="hold")

    def stop(name: str) -> None:
        if name == "lease:commit":
            loop.call_soon_threadsafe(holding.cancel)

    points.then = stop
    with pytest.raises(asyncio.CancelledError):
        await holding
    assert "lease:commit" in points.passed
    assert await take(store, "b") == 2


@pytest.mark.requirement("OPS-8", "SCALE-2")
@pytest.mark.parametrize("way", ["returns", "raises"])
async def test_a_lease_under_which_nothing_runs_any_more_is_given_back(
    store: Database, way: str
) -> None:
    """Its holder does not keep it for nothing, and does not take it again at once in silence."""
    keeper, fences = LeaseKeeper(store, FakeClock(), "a", LeaseSettings()), list[int]()

    async def ends(fence: int) -> None:
        fences.append(fence)
        if way == "raises":
            raise KeyError("a defect")

    with pytest.raises(ExceptionGroup) as caught:
        await keeper.hold(NAME, ends)
    expected = KeyError if way == "raises" else BodyEnded
    assert caught.group_contains(expected)
    assert fences == [1]
    assert await take(store, "b") == 2
