"""Each time of a schedule fires once, whatever fails, and over all replicas (SCH-4)."""

import asyncio
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, func, select

from runtime.domain.errors import CommitUnknown
from runtime.domain.runs import RunKind
from runtime.features.schedules.tables import schedule_fires, schedules
from runtime.sessions import run_stop
from runtime.sessions.tables import runs
from tests.contract.store_support import postgres_server
from tests.fakes.model import ScriptedModel
from tests.scenario.replicas import Replica, beside
from tests.scenario.schedules.scheduling import HERE, Desk, again, answering, desk, held
from tests.scenario.schedules.test_reminders import House, house
from tests.scenario.test_faulty_units import Faults, Unforeseen

__all__ = ["house"]
pytestmark = pytest.mark.requirement("SCH-4")


async def scheduled_runs(table: Desk) -> int:
    query = select(func.count()).where(runs.c.kind == RunKind.SCHEDULED_INPUT.value)
    return await table.at.database.read(lambda conn: conn.execute(query).scalar_one())


@pytest.mark.parametrize("side", ["before", "behind"])
@pytest.mark.parametrize("unit", ["schedule-dispatch", "schedule-settle"])
async def test_a_unit_that_fails_at_either_side_of_its_commit_is_made_up_for(
    house: House, unit: str, side: str
) -> None:
    async with house.begins(answering("one", "two")) as at:
        table = await desk(at)
        await table.make(max_executions=1)
        faults = Faults(at)
        # The unit that settles gives nothing, so that its failing is said by the error alone.
        error = Unforeseen() if side == "before" else CommitUnknown("the line broke")
        getattr(faults, side)[unit] = error
        for _ in range(70):
            await table.passes(1)
        assert getattr(faults, side) == {}
        assert at.chat.texts(HERE) == ["hello", "one"]
        assert await scheduled_runs(table) == 1
        view = await table.view()
        assert (view.status, view.execution_count) == ("completed", 1)


@pytest.mark.requirement("SCH-5")
@pytest.mark.parametrize("unit", ["schedule-dispatch", "schedule-settle"])
async def test_where_one_fails_unforeseen_the_other_goes_on_in_the_same_round(
    house: House, unit: str
) -> None:
    async with house.begins(answering("one", "two")) as at:
        table = await desk(at)
        made = [await table.make(here=True, max_executions=1) for _ in range(2)]
        faults = Faults(at)
        faults.before[unit] = Unforeseen()
        await table.passes(60)
        assert faults.before == {}
        statuses = [(await table.statuses(one))[0] for one in made]
        assert "settled" in statuses
        await table.passes(2)
        assert [await table.statuses(one) for one in made] == [["settled"]] * 2


@pytest.mark.parametrize("state", ["claimed", "dispatched", "settling", "due"])
async def test_a_restart_in_each_state_of_a_fire_neither_loses_nor_doubles_it(
    house: House, state: str
) -> None:
    gate, long_answer = held()
    once = state != "claimed"
    async with house.begins(answering(long_answer)) as at:
        table = await desk(at)
        policy = "skip" if once else "queue_one"
        await table.make(overlap_policy=policy, max_executions=1 if once else 2)
        if state != "due":
            await table.passes(60)
            await gate.reached.wait()
        if state == "claimed":
            await table.passes(60)
            assert await table.statuses() == ["dispatched", "claimed"]
        if state == "settling":
            faults = Faults(at)
            faults.always["schedule-settle"] = Unforeseen()
            gate.open.set()
            await at.sees(2, HERE)
            assert await table.statuses() == ["dispatched"]
    if state == "due":
        await house.clock.advance(61)
    async with house.begins(answering("two", "three", hello="one")) as at:
        table = again(at, table.session_id, table.person_id)
        table.made.append((await table.control.listing()).items[0].schedule_id)
        for _ in range(40):
            await table.passes(1)
        expected = ["settled"] if once else ["settled", "settled"]
        assert await table.statuses() == expected
        assert await scheduled_runs(table) == len(expected)
        view = await table.view()
        assert (view.status, view.execution_count) == ("completed", len(expected))


async def test_runs_that_end_in_another_order_are_counted_each(house: House) -> None:
    gate, long_answer = held()
    async with house.begins(answering(long_answer)) as at:
        table = await desk(at)
        await table.make(overlap_policy="parallel", max_executions=2)
        await table.passes(60)
        await gate.reached.wait()
        await table.passes(60)
        _, second = await table.fires()
        stop = partial(run_stop.stop_run, run_id=second.run_id or "", by="owner", reason="test")
        await at.engine.units.run(stop, name="stop")
        await table.passes(2)
        assert await table.statuses() == ["dispatched", "settled"]
        view = await table.view()
        assert (view.execution_count, view.status) == (1, "active")
        gate.open.set()
        await at.sees(2, HERE)
        await table.passes(2)
        assert await table.statuses() == ["settled", "settled"]
        view = await table.view()
        assert (view.execution_count, view.status) == (2, "completed")


def counted(replica: Replica, ready: asyncio.Event, others: asyncio.Event) -> list[str]:
    """The runs that a replica dispatches from now on, once it is `ready` and the `others` are."""
    units, dispatched = replica.world.engine.units, []
    run = units.run

    async def told(work: Any, *, name: str) -> Any:
        if name == "schedule-dispatch":
            ready.set()
            await others.wait()
        outcome = await run(work, name=name)
        if name == "schedule-dispatch":
            dispatched.extend(outcome.dispatched)
        return outcome

    setattr(units, "run", told)  # noqa: B010 - of one object
    return dispatched


@pytest.mark.requirement("SCALE-1")
async def test_two_replicas_that_fire_together_fire_each_time_once(tmp_path: Path) -> None:
    total = 60
    async with (
        beside(tmp_path, postgres_server()) as place,
        place.replica("one", ScriptedModel(lambda _request: "fine")) as one,
        place.replica("two", ScriptedModel(lambda _request: "fine")) as two,
    ):
        table = await desk(one.world)
        first, second = asyncio.Event(), asyncio.Event()
        by_one, by_two = counted(one, first, second), counted(two, second, first)
        for number in range(total):
            await table.make(here=True, name=f"n{number}", max_executions=1)
        await place.clock.advance(60)
        for _ in range(10):
            await place.clock.advance(1)

        def look(conn: Connection) -> tuple[list[Any], Counter[str]]:
            fires = conn.execute(select(schedule_fires.c.schedule_id, schedule_fires.c.status))
            states = conn.execute(select(schedules.c.status)).scalars()
            return list(fires), Counter(states)

        fires, states = await one.world.database.read(look)
        assert [row.status for row in fires] == ["settled"] * total
        assert len({row.schedule_id for row in fires}) == total
        assert states == {"completed": total}
        assert await scheduled_runs(table) == total
        assert len({*by_one, *by_two}) == len(by_one) + len(by_two) == total
        assert by_one, "both had a part in it"
        assert by_two, "both had a part in it"
