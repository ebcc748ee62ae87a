"""A lookup that finds nothing is believed the second time only (MSG-11)."""

import asyncio

import pytest

from runtime.delivery.poster import IN_FLIGHT_S, believed
from tests.fakes.clock import FakeClock


@pytest.mark.requirement("MSG-11")
@pytest.mark.parametrize("arrives", [0, 1, 2])
async def test_what_is_still_on_its_way_is_asked_for_twice(arrives: int) -> None:
    clock, asked = FakeClock(), 0

    async def ask() -> str | None:
        nonlocal asked
        asked += 1
        return "there" if asked > arrives else None

    looking = asyncio.create_task(believed(clock, ask), name="looking")
    await clock.advance(IN_FLIGHT_S / 2)
    assert looking.done() is (arrives == 0)
    await clock.advance(IN_FLIGHT_S)
    assert await looking == ("there" if arrives < 2 else None)
    assert asked == min(arrives, 1) + 1
