"""How often a schedule fires and when it is over, where some of its times come to nothing."""

import pytest

from runtime.domain.errors import Conflict
from runtime.features.schedules.dispatch import ALL_TAKEN
from runtime.features.schedules.model import ScheduleChange
from tests.scenario.schedules.scheduling import (
    HERE,
    MINUTE,
    Desk,
    answering,
    desk,
    held,
    in_a_minute,
)
from tests.scenario.schedules.test_gates import gated, printing
from tests.scenario.schedules.test_observations import watching
from tests.scenario.schedules.test_reminders import House, house
from tests.scenario.schedules.test_retries import fill, trying

__all__ = ["house"]
pytestmark = pytest.mark.requirement("SCH-1", "SCH-5")


async def ended(table: Desk) -> tuple[str, int]:
    view = await table.view()
    return view.status, view.execution_count


@pytest.mark.parametrize(
    ("most", "printed", "fires"),
    [
        (1, ("", "news"), ["skipped", "settled"]),
        (2, ("a", "", "b"), ["settled", "skipped", "settled"]),
    ],
)
async def test_a_time_whose_gate_has_nothing_new_is_no_execution(
    house: House, most: int, printed: tuple[str, ...], fires: list[str]
) -> None:
    gate = printing(*printed)
    async with house.begins(answering("first", "second"), change=gate.change) as at:
        table = await gated(at, max_executions=most)
        for _ in range(4):
            await table.passes(60)
        assert await ended(table) == ("completed", most)
        assert await table.statuses() == fires


async def test_nor_is_one_in_which_nothing_was_observed(house: House) -> None:
    async with house.begins(answering("a letter")) as at:
        table = await watching(at, max_executions=1, cadence=MINUTE)
        await table.passes(60)
        assert await ended(table) == ("active", 0)


async def test_a_run_at_work_is_shown_however_many_times_are_left_out_meanwhile(
    house: House,
) -> None:
    gate, long_answer = held()
    async with house.begins(answering(long_answer)) as at:
        table = await desk(at)
        await table.make(cadence={"type": "interval", "every_seconds": 5})
        await table.passes(5)
        await gate.reached.wait()
        before = await table.view()
        await table.passes(52 * 5)
        after = await table.view()
        assert {one.status for one in after.recent_executions} == {"skipped"}
        assert after.in_flight_run_id == before.in_flight_run_id is not None
        assert after.in_flight_fire_at_ms == before.in_flight_fire_at_ms
        gate.open.set()


async def test_more_executions_may_be_given_while_the_last_is_at_work(house: House) -> None:
    gate, long_answer = held()
    async with house.begins(answering(long_answer, "two")) as at:
        table = await desk(at)
        made = await table.make(max_executions=1)
        await table.passes(60)
        await gate.reached.wait()
        assert (await table.control.revise(made, ScheduleChange(max_executions=2))).next_fire_at_ms
        gate.open.set()
        await at.sees(2, HERE)
        await table.passes(120)
        assert await ended(table) == ("completed", 2)


async def test_what_is_triggered_while_all_are_at_work_is_left_out_with_the_reason(
    house: House,
) -> None:
    gate, long_answer = held()
    async with house.begins(answering(long_answer)) as at:
        table = await desk(at)
        made = await table.make(max_executions=1)
        await table.passes(60)
        await gate.reached.wait()
        await table.control.trigger(made)
        await table.passes(1)
        assert [one.error for one in await table.fires()] == [None, ALL_TAKEN]
        gate.open.set()
        await table.passes(1)
        assert await ended(table) == ("completed", 1)


async def test_a_second_trigger_is_refused_until_the_first_has_fired(house: House) -> None:
    async with house.begins(answering("one", "two")) as at:
        table = await desk(at)
        made = await table.make(overlap_policy="parallel")
        await table.control.trigger(made, idempotency_key="a")
        with pytest.raises(Conflict, match="a moment ago"):
            await table.control.trigger(made, idempotency_key="b")
        await table.passes(1)
        await table.control.trigger(made, idempotency_key="b")
        await table.passes(1)
        assert await table.statuses() == ["settled", "settled"]


@pytest.mark.parametrize("asked", ["once", "interval"])
async def test_one_that_gave_up_its_last_time_fires_when_it_is_resumed(
    house: House, asked: str
) -> None:
    gate, long_answer = held()
    said = [long_answer, *["x"] * 30]
    async with house.begins(answering(*said), change=trying(1)) as at:
        table = await desk(at)
        cadence = in_a_minute(house.clock) if asked == "once" else MINUTE
        made = await table.make(cadence=cadence, max_executions=1)
        await fill(table)
        await gate.reached.wait()
        await table.passes(60)
        assert (await table.view(made)).status == "paused"
        gate.open.set()
        await table.passes(10)
        await table.control.resume(made)
        await table.passes(61)
        view = await table.view(made)
        assert (view.status, view.execution_count) == ("completed", 1)
        assert await table.statuses(made) == ["rolled_back", "settled"]


@pytest.mark.requirement("SCH-9")
async def test_a_gate_that_works_again_leaves_no_error_behind(house: House) -> None:
    gate = printing(("oh", 1), ("oh", 2), ("oh", 3), "")
    async with house.begins(answering("first"), change=gate.change) as at:
        table = await gated(at)
        await table.passes(90)
        failed = await table.view()
        assert failed.last_scheduler_error == failed.last_error is not None
        assert failed.consecutive_failures == 1
        await table.passes(60)
        view = await table.view()
        assert (view.last_error, view.last_scheduler_error) == (None, None)
        assert view.consecutive_failures == 0
