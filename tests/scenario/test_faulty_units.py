"""A unit of work of a long-lived task fails as nobody expected: nothing else stops with it."""

from collections.abc import Awaitable, Callable
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

from runtime.domain.errors import CommitUnknown
from runtime.process.lease_keeper import LeaseSettings
from runtime.process.supervisor import FIRST_DELAY_S, SETTLED_S
from tests.conftest import FailAfter
from tests.fakes.clock import FakeClock
from tests.fakes.model import Gate, Said, ScriptedModel, ScriptedModels
from tests.scenario.engine import World, setup_at, world
from tests.support.templates import make_database

LIMIT_S = 60.0


class Unforeseen(Exception):
    """An error that no part of the product knows."""


class Faults:
    """Units of a database that fail, by name: once before they begin or after they are committed,
    or each time."""

    def __init__(self, running: World) -> None:
        self.before: dict[str, Exception] = {}
        self.behind: dict[str, Exception] = {}
        self.always: dict[str, Exception] = {}
        database = running.database
        setattr(database, "write", self._faulty(database.write))  # noqa: B010 - of one object

    def _faulty(self, unit: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        @wraps(unit)
        async def faulty(work: Any, *, name: str, urgent: bool = False) -> Any:
            if name in self.always:
                raise self.always[name]
            if name in self.before:
                raise self.before.pop(name)
            result = await unit(work, name=name, urgent=urgent)
            if name in self.behind and result not in ((), ([], False)):
                raise self.behind.pop(name)
            return result

        return faulty


async def moved(clock: FakeClock, done: Callable[[], bool]) -> None:
    """Until it is done."""
    while not done():
        await clock.advance(0.25)


@pytest.fixture
async def url(tmp_path: Path) -> str:
    made = f"sqlite:///{tmp_path}/gatehouse.db"
    await make_database(made)
    return made


@pytest.mark.requirement("SCALE-5", "OPS-8")
async def test_a_turn_goes_on_while_the_loop_that_claims_runs_is_down(
    url: str, tmp_path: Path, fail_after: FailAfter
) -> None:
    gate, clock = Gate(), FakeClock()
    model = ScriptedModel([Said("slow", before=gate), "quick"])
    setup = setup_at(tmp_path, url, ScriptedModels(model), clock=clock)
    async with fail_after(LIMIT_S), world(setup) as running:
        faults = Faults(running)
        await running.says("first", chat_id="G1", kind="group")
        await gate.reached.wait()
        faults.before["claim"] = Unforeseen("a defect")
        await running.says("second", chat_id="G2", kind="group")
        while running.engine.turns.running != 1 or faults.before:
            await clock.advance(0)
        await clock.advance(0)
        assert running.engine.supervisor.trouble == "claims: Unforeseen: a defect"
        assert running.engine.turns.running == 1
        gate.open.set()
        await moved(clock, lambda: sorted(running.chat.texts()) == ["quick", "slow"])
        await clock.advance(FIRST_DELAY_S + SETTLED_S)
        assert running.engine.supervisor.trouble == ""
        assert len(model.requests) == 2, "nothing was asked twice"


@pytest.mark.requirement("MSG-7", "MSG-9")
@pytest.mark.parametrize("error", [CommitUnknown("the line broke"), Unforeseen("a defect")])
async def test_a_run_whose_claim_was_kept_and_not_heard_of_is_answered_once(
    url: str, tmp_path: Path, fail_after: FailAfter, error: Exception
) -> None:
    """The rows say that this worker has it, and its lease lives: nobody else would look."""
    clock, model = FakeClock(), ScriptedModel(["done"])
    setup = setup_at(tmp_path, url, ScriptedModels(model), clock=clock)
    async with fail_after(LIMIT_S), world(setup) as running:
        faults = Faults(running)
        faults.behind["claim"] = error
        await running.says("hello")
        await moved(clock, lambda: bool(running.chat.sent))
        assert not faults.behind
        await clock.advance(10.0)
        assert running.chat.texts() == ["done"]


@pytest.mark.requirement("SCALE-2")
async def test_leases_are_kept_when_a_renewal_fails_as_nobody_expected(
    url: str, tmp_path: Path, fail_after: FailAfter
) -> None:
    clock = FakeClock()
    setup = setup_at(tmp_path, url, ScriptedModels(ScriptedModel([])), clock=clock)
    async with fail_after(LIMIT_S), world(setup) as running:
        faults, before = Faults(running), running.engine.worker
        faults.before["lease-renewal"] = Unforeseen("a defect")
        await moved(clock, lambda: not faults.before)
        await clock.advance(2 * LeaseSettings().ttl_s)
        assert running.engine.ready
        assert running.engine.worker == before
        assert running.engine.supervisor.trouble == ""
