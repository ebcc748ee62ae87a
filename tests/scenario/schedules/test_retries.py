"""A dispatch that fails is tried again, and one broken schedule delays no other (SCH-5)."""

from dataclasses import replace

import pytest
from sqlalchemy import Connection, update

from runtime.features.schedules import rows
from runtime.features.schedules.dispatch import MOST_WAITING
from runtime.features.schedules.missed_times import STILL_AT_WORK
from runtime.features.schedules.model import CancelRequest
from runtime.features.schedules.retry import RetryPolicy
from runtime.features.schedules.tables import schedules
from runtime.store.database import now_ms
from tests.fakes.model import Said
from tests.scenario.engine import Setup
from tests.scenario.schedules.scheduling import HERE, Desk, again, answering, desk, held
from tests.scenario.schedules.test_reminders import Change, House, house

__all__ = ["house"]
pytestmark = pytest.mark.requirement("SCH-5")
FULL = f"{MOST_WAITING} runs wait in its session already"


def trying(most: int | None) -> Change:
    """So many attempts, without jitter."""

    def change(setup: Setup) -> Setup:
        return replace(setup, retry=RetryPolicy(jitter_ms=0, max_attempts=most))

    return change


async def fill(table: Desk) -> None:
    """Let as much wait in the conversation as a schedule may find there."""
    for number in range(MOST_WAITING + 1):
        await table.at.says(f"question {number}")


async def test_the_waits_grow_and_the_state_survives_a_restart(house: House) -> None:
    gate, long_answer = held()
    async with house.begins(answering(long_answer), change=trying(None)) as at:
        table = await desk(at)
        made = await table.make(cadence={"type": "interval", "every_seconds": 600})
        await fill(table)
        await gate.reached.wait()
        await table.passes(600)
        attempts = []
        for seconds in (0.499, 0.001, 0.999, 0.001, 1.999, 0.001):
            await table.passes(seconds)
            attempts.append((await table.view()).scheduler_retry_attempt)
        assert attempts == [1, 2, 2, 3, 3, 4]
        view = await table.view()
        assert view.last_scheduler_error == FULL
        assert view.scheduler_retry_after_ms == house.clock.now_ms() + 4000
        (fire,) = await table.fires()
        assert (fire.status, fire.attempt, fire.error) == ("retrying", 4, FULL)
        assert fire.retry_after_ms == view.scheduler_retry_after_ms
    answers: list[Said | str] = ["done"] * (MOST_WAITING + 2)
    async with house.begins(answering(*answers), change=trying(None)) as at:
        table = again(at, table.session_id, table.person_id)
        view = await table.view(made)
        assert (view.scheduler_retry_attempt, view.status) == (4, "active")
        # The lane empties meanwhile.
        for _ in range(20):
            await table.passes(2)
        (fire,) = await table.fires(made)
        assert (fire.status, fire.run_status) == ("settled", "completed")
        assert fire.attempt > 4
        view = await table.view(made)
        assert (view.scheduler_retry_attempt, view.scheduler_retry_after_ms) == (0, None)
        assert view.last_scheduler_error is None


async def test_exhausted_it_is_paused_with_the_error_and_others_come_in_time(
    house: House,
) -> None:
    gate, long_answer = held()
    async with house.begins(answering(long_answer, "42 sold"), change=trying(3)) as at:
        table = await desk(at)
        broken = await table.make()
        sound = await table.make(here=True, max_executions=1)
        await fill(table)
        await gate.reached.wait()
        await table.passes(60)
        assert at.chat.texts(HERE)[-1] == "42 sold", "the other one waits for nothing"
        await table.passes(0.5)
        assert (await table.view(broken)).status == "active"
        await table.passes(1)
        view = await table.view(broken)
        assert (view.status, view.last_error, view.next_fire_at_ms) == ("paused", FULL, None)
        assert view.remaining_ms == 58_500
        (fire,) = await table.fires(broken)
        assert (fire.status, fire.attempt, fire.error) == ("rolled_back", 3, FULL)
        assert fire.settled_at_ms == house.clock.now_ms()
        assert (await table.view(sound)).execution_count == 1


@pytest.mark.requirement("SCH-2")
async def test_a_time_beside_one_that_is_tried_again_is_skipped_even_in_parallel(
    house: House,
) -> None:
    gate, long_answer = held()
    async with house.begins(answering(long_answer), change=trying(None)) as at:
        table = await desk(at)
        await table.make(overlap_policy="parallel")
        await fill(table)
        await gate.reached.wait()
        await table.passes(60)
        await table.passes(60)
        tried, skipped = await table.fires()
        assert (tried.status, tried.attempt > 1) == ("retrying", True)
        assert (skipped.status, skipped.error) == ("skipped", STILL_AT_WORK)


async def test_what_no_retry_would_mend_is_paused_at_once(house: House) -> None:
    async with house.begins(answering()) as at:
        table = await desk(at)
        made = await table.make()
        await at.database.write(
            lambda conn: conn.exec_driver_sql("UPDATE schedules SET misfire = '{}x'"),
            name="spoil",
        )
        await table.passes(60)
        found = await at.database.read(
            lambda conn: conn.exec_driver_sql(
                f"SELECT status, last_error FROM schedules WHERE id = '{made}'"
            ).one()
        )
        assert found[0] == "paused"
        assert found[1]


@pytest.mark.requirement("OPS-8")
async def test_how_many_are_due_paused_and_failed_is_counted(house: House) -> None:
    async with house.begins(answering()) as at:
        home = await desk(at)

        async def standing() -> dict[str, int]:
            return dict(await at.database.read(rows.standing))

        assert await standing() == {"active": 0, "due": 0, "paused": 0, "failed": 0}
        ids = [await home.make() for _ in range(4)]
        await home.control.pause(ids[0])
        await home.control.cancel(ids[1], CancelRequest())

        def broken(conn: Connection) -> None:
            mine = schedules.c.id == ids[2]
            conn.execute(update(schedules).where(mine).values(consecutive_failures=2))
            mine = schedules.c.id == ids[1]
            conn.execute(update(schedules).where(mine).values(consecutive_failures=1))
            soon = now_ms(conn)
            mine = schedules.c.id == ids[3]
            # Nobody is told of it, so that it stays due while it is looked at.
            conn.execute(update(schedules).where(mine).values(next_fire_ms=soon))

        await home.passes(0)
        await at.database.write(broken, name="broken")
        assert await standing() == {"active": 2, "due": 1, "paused": 1, "failed": 1}
