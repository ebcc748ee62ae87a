"""Replicas that die one after another: each fault is over within two lease periods of its own.

No lease stands between a dead worker and whoever takes its runs over, so no fault makes another
one longer. Each replica has a bus of its own: all signals between them are lost.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from runtime.process.lease_keeper import LeaseSettings
from tests.conftest import FailAfter
from tests.contract.store_support import BOTH, postgres_server
from tests.fakes.model import Gate, Said, ScriptedModel
from tests.scenario.replicas import STEP_S, Beside, Replica, beside, hands
from tests.support.templates import make_database

TTL_S = LeaseSettings().ttl_s
APART_S = 1.25
LIMIT_S = 240.0
ROOMS = tuple(f"G{number}" for number in range(6))
SINGLETONS = {"timers", "deliver:test:A1", "listen:test:A1"}


@pytest.fixture(params=BOTH)
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Beside]:
    """A database under a clock that moves on command. Two processes never share a SQLite file, but
    the rules of its leases are the same."""
    if request.param == "postgresql":
        async with beside(tmp_path, postgres_server()) as made:
            yield made
        return
    url = f"sqlite:///{tmp_path}/gatehouse.db"
    await make_database(url)
    yield Beside(tmp_path, url)


async def at_work(place: Beside, stack: AsyncExitStack, amount: int) -> list[Replica]:
    """Replicas whose models do not answer; the first has every singleton, the second all runs."""
    gate, made = Gate(), list[Replica]()
    for number in range(amount):
        model = ScriptedModel(lambda request: Said("late", before=gate))
        made.append(await stack.enter_async_context(place.replica(f"r{number}", model)))
        # Each renews its leases, and asks for those of others, a little later than the one before.
        await place.clock.advance(APART_S)
    for room in ROOMS:
        await made[1].world.says("hello", chat_id=room, kind="group")
    while len((await hands(made[1])).runs) < len(ROOMS):
        pass
    await place.clock.advance(2 * TTL_S + APART_S - place.clock.monotonic())
    now = await hands(made[1])
    assert set(now.runs.values()) == {made[1].worker}
    assert now.leases["timers"] == made[0].worker
    return made


@pytest.mark.requirement("SCALE-2", "MSG-9", "MSG-21")
@pytest.mark.parametrize("faults", [2, 3])
async def test_runs_are_taken_over_within_two_leases_when_those_who_could_do_so_die_too(
    place: Beside, fail_after: FailAfter, faults: int
) -> None:
    """The first dies right after a renewal; the others soon after one of theirs, and before they
    can see that it is dead."""
    async with fail_after(LIMIT_S), AsyncExitStack() as stack:
        timers, worker, *others = await at_work(place, stack, faults + 1)
        last, died = others[-1], place.clock.monotonic()
        await worker.dies()
        await place.clock.advance(TTL_S - STEP_S)
        assert set((await hands(last)).runs.values()) == {worker.worker}, "its lease lives"
        for one in (timers, *others[:-1]):
            await one.dies()

        async def taken_over() -> bool:
            return set((await hands(last)).runs.values()) == {last.worker}

        await place.until(taken_over, within=died + 2 * TTL_S - place.clock.monotonic())
        assert len((await hands(last)).runs) == len(ROOMS)


@pytest.mark.requirement("SCALE-2", "MSG-9")
async def test_whoever_takes_runs_over_and_dies_is_followed_within_two_leases(
    place: Beside, fail_after: FailAfter
) -> None:
    async with fail_after(LIMIT_S), AsyncExitStack() as stack:
        living = await at_work(place, stack, 4)
        while len(living) > 1:
            victims = set((await hands(living[0])).runs.values())
            (victim,) = [one for one in living if victims == {one.worker}] or living[1:2]
            living.remove(victim)
            await victim.dies()
            died = place.clock.monotonic()

            async def taken_over(gone: str = victim.worker) -> bool:
                now = await hands(living[0])
                held = {*now.runs.values(), *now.leases.values()}
                return gone not in held and set(now.leases) == SINGLETONS

            await place.until(taken_over, within=died + 2 * TTL_S - place.clock.monotonic())
        now = await hands(living[0])
        assert len(now.runs) == len(ROOMS)
        assert now.all_of(living[0].worker)
