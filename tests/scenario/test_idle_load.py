"""What an idle gateway asks of its database: one look a tick, and the renewal of its leases."""

from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

import pytest

from runtime.process.lease_keeper import LeaseSettings
from runtime.process.wakeup import TICK_S
from tests.contract.store_support import BOTH, postgres_server
from tests.fakes.clock import FakeClock
from tests.fakes.model import ScriptedModel, ScriptedModels
from tests.scenario.engine import World, setup_at, world
from tests.scenario.heard import Heard
from tests.scenario.replicas import beside
from tests.support.templates import make_database

TICKS = 60


@pytest.fixture
def heard() -> Iterator[Heard]:
    made = Heard()
    yield made
    made.close()


@pytest.fixture(params=BOTH)
async def idle(request: pytest.FixtureRequest, tmp_path: Path, heard: Heard) -> Any:
    """A world in which nobody says anything, on each database, under a clock that stands still."""
    model = ScriptedModel([])
    async with AsyncExitStack() as stack:
        if request.param == "postgresql":
            place = await stack.enter_async_context(beside(tmp_path, postgres_server()))
            replica = await stack.enter_async_context(place.replica("one", model))
            yield replica.world
            return
        url = f"sqlite:///{tmp_path}/gatehouse.db"
        await make_database(url)
        setup = setup_at(tmp_path, url, ScriptedModels(model), clock=FakeClock())
        yield await stack.enter_async_context(world(setup))


HOURLY: Final = ("outbox.kind = 'file'", "FROM assets", "FROM idempotency")


def clock_of(running: World) -> FakeClock:
    clock = running.engine.parts.clock
    assert isinstance(clock, FakeClock)
    return clock


@pytest.mark.requirement("SCALE-3")
async def test_an_idle_gateway_looks_once_a_tick_and_renews_its_leases_together(
    idle: World, heard: Heard
) -> None:
    clock = clock_of(idle)
    await clock.advance(LeaseSettings().ttl_s)
    heard.clear()
    await clock.advance(TICKS * TICK_S)
    renewals = TICKS * TICK_S / (LeaseSettings().ttl_s / 3)
    # What is cleaned once an hour: files that were sent, unused uploads, old keys of requests.
    every_tick = [one for one in heard if not any(name in one for name in HOURLY)]
    looks = [one for one in every_tick if one.lstrip().upper().startswith(("SELECT", "WITH"))]
    others = [one for one in every_tick if one not in looks]
    assert len(heard) - len(every_tick) <= len(HOURLY)
    assert TICKS - 1 <= len(looks) <= TICKS + 1, looks
    assert renewals - 1 <= len(others) <= renewals + 1, others
    assert all("leases" in one for one in others)
