"""Schedules that ask the model, as people meet them, on each database (SCH-1 to SCH-6, SCH-9)."""

import json
from dataclasses import replace

import pytest
from sqlalchemy import select

from runtime.domain.errors import InvalidInput, ModelRejected
from runtime.domain.runs import RunKind
from runtime.features.schedules.missed_times import (
    MOST_AT_ONCE,
    MOST_COUNTED,
    ONE_WAITS,
    STILL_AT_WORK,
    TOO_MANY,
)
from runtime.features.schedules.model import CancelRequest, ScheduleChange
from runtime.features.schedules.reminders import NOT_LET_IN
from runtime.features.schedules.tables import schedule_fires
from runtime.sessions import runs
from runtime.sessions.tables import messages, sessions
from tests.fakes.model import Said
from tests.scenario.schedules.scheduling import (
    HERE,
    MINUTE,
    Desk,
    answering,
    desk,
    held,
    in_a_minute,
)
from tests.scenario.schedules.test_reminders import TEAM, House, goes_on, hears, house, reminded
from tests.scenario.test_erasure import keeping

__all__ = ["house"]


@pytest.mark.requirement("SCH-1", "SCH-4", "RUN-2")
async def test_a_request_becomes_an_ordinary_run_of_its_session_and_is_settled(
    house: House,
) -> None:
    model = answering("42 sold")
    async with house.begins(model) as at:
        table = await desk(at)
        await table.make()
        await table.passes(59.9)
        assert await table.fires() == []
        await table.passes(0.1)
        assert at.chat.texts(HERE) == ["hello", "42 sold"]
        (fire,) = await table.fires()
        assert (fire.status, fire.run_status, fire.delivery_status, fire.attempt) == (
            "settled",
            "completed",
            "sent",
            1,
        )
        run = await at.database.read(lambda conn: runs.get(conn, fire.run_id or ""))
        assert (run.kind, run.session_id) == (RunKind.SCHEDULED_INPUT, table.session_id)
        name = (await table.view()).name
        assert run.summary == f"{name}: post the numbers"
        view = await table.view()
        assert (view.execution_count, view.consecutive_failures, view.status) == (1, 0, "active")
        assert (view.last_fire_at_ms, view.last_dispatched_run_id) == (
            fire.fire_at_ms,
            fire.run_id,
        )
    asked = model.requests[-1].messages[-1]
    assert "post the numbers" in asked.text


@pytest.mark.requirement("SCH-1")
async def test_its_times_are_those_of_the_clock(house: House) -> None:
    gate, long_answer = held()
    async with house.begins(answering(long_answer)) as at:
        table = await desk(at)
        made_ms = house.clock.now_ms()
        await table.make()
        view = await table.view()
        assert (view.created_at_ms, view.updated_at_ms) == (made_ms, made_ms)
        await table.passes(60)
        await gate.reached.wait()
        (fire,) = await table.fires()
        due_ms = made_ms + 60_000
        assert (fire.fire_at_ms, fire.claimed_at_ms, fire.dispatched_at_ms) == (due_ms,) * 3
        assert fire.settled_at_ms is None
        await table.passes(5)
        gate.open.set()
        await at.sees(2, HERE)
        await table.passes(0)
        (fire,) = await table.fires()
        assert fire.settled_at_ms == due_ms + 5_000
        assert (await table.view()).updated_at_ms == due_ms + 5_000


@pytest.mark.requirement("SCH-9")
async def test_in_a_lane_of_its_own_it_waits_for_no_conversation_and_leaves_a_line_there(
    house: House,
) -> None:
    gate, long_answer = held()
    async with house.begins(answering("42 sold", long_answer, "43 sold")) as at:
        table = await desk(at)
        await table.make(here=True)
        await table.passes(60)
        assert at.chat.texts(HERE) == ["hello", "42 sold"]
        own = (await table.view()).run_session_id
        assert own != table.session_id
        for session in (own, table.session_id):
            found = (await table.control.listing(session_id=session)).items
            assert [one.schedule_id for one in found] == table.made
        (line,) = await lines(table)
        assert line == "The schedule 'numbers' ran at its time and answered: 42 sold"
        await at.says("take your time")
        await gate.reached.wait()
        await table.passes(60)
        assert at.chat.texts(HERE)[2:] == ["43 sold"], "though the conversation is at work"
        assert len(await lines(table)) == 1, "a note waits for the run after that"
        gate.open.set()
        await at.sees(4, HERE)


async def lines(table: Desk) -> list[str]:
    """What the machinery told the conversation."""
    query = (
        select(messages.c.payload)
        .where(messages.c.session_id == table.session_id, messages.c.role == "notice")
        .order_by(messages.c.seq)
    )
    found = await table.at.database.read(lambda conn: list(conn.execute(query).scalars()))
    return [json.loads(one)["text"] for one in found]


@pytest.mark.requirement("SCH-2")
@pytest.mark.parametrize(
    ("policy", "while_busy", "behind"),
    [
        ("skip", ["dispatched", "skipped", "skipped"], ["settled", "skipped", "skipped"]),
        (
            "queue_one",
            ["dispatched", "claimed", "skipped"],
            ["settled", "settled", "skipped"],
        ),
        ("parallel", ["dispatched"] * 3, ["settled"] * 3),
    ],
)
async def test_what_an_overlap_does(
    house: House, policy: str, while_busy: list[str], behind: list[str]
) -> None:
    gate, first = held()
    async with house.begins(answering(first, "two", "three")) as at:
        table = await desk(at)
        await table.make(overlap_policy=policy)
        await table.passes(60)
        await gate.reached.wait()
        await table.passes(60)
        await table.passes(60)
        assert await table.statuses() == while_busy
        view = await table.view()
        found = await table.fires()
        assert view.in_flight_fire_at_ms == found[0].fire_at_ms
        assert view.in_flight_run_id == found[0].run_id
        queued = found[1].fire_at_ms if policy == "queue_one" else None
        assert view.queued_fire_at_ms == queued
        reason = {"skip": STILL_AT_WORK, "queue_one": ONE_WAITS}.get(policy)
        assert found[2].error == reason
        gate.open.set()
        await at.sees(2, HERE)
        for _ in behind:
            await table.passes(1)
        assert await table.statuses() == behind
        assert len(at.chat.texts(HERE)) == 1 + behind.count("settled")
        view = await table.view()
        assert view.execution_count == behind.count("settled")
        assert (view.queued_fire_at_ms, view.in_flight_run_id) == (None, None)
        assert [one.from_queued_fire for one in await table.fires()][1] is (policy == "queue_one")


@pytest.mark.requirement("SCH-3")
@pytest.mark.parametrize(
    ("misfire", "settled", "skipped"),
    [
        ({"type": "coalesce_once"}, 1, 1),
        ({"type": "skip_missed"}, 2, 1),
        ({"type": "skip_missed", "grace_ms": 150_000}, 3, 1),
        ({"type": "skip_missed", "grace_ms": 3_600_000}, 5, 0),
        ({"type": "skip_missed", "grace_ms": 0}, 1, 1),
    ],
)
async def test_what_was_missed_while_nothing_ran(
    house: House, misfire: object, settled: int, skipped: int
) -> None:
    async with house.begins(answering()) as at:
        table = await desk(at)
        made = await table.make(misfire_policy=misfire, overlap_policy="parallel")
    await house.clock.advance(300)
    async with house.begins(answering(*"abcde", hello="a0")) as at:
        table = replace(table, at=at, control=replace(table.control, units=at.engine.units))
        await table.passes(1)
        statuses = await table.statuses(made)
        assert (statuses.count("settled"), statuses.count("skipped")) == (settled, skipped)
        await table.passes(60)
        assert (await table.statuses(made)).count("settled") == settled + 1, "and goes on"


@pytest.mark.requirement("SCH-3", "SCH-4")
@pytest.mark.parametrize("words", [{}, {"deliver_text": "stretch"}])
async def test_of_an_hour_of_seconds_each_has_its_row_or_is_counted_in_one(
    house: House, words: dict[str, str]
) -> None:
    each_second = {"type": "cron", "expression": "* * * * * *"}
    grace = {"type": "skip_missed", "grace_ms": 3_600_000}
    async with house.begins(answering()) as at:
        table = await desk(at)
        made = await table.make(cadence=each_second, misfire_policy=grace, **words)
        rows = select(schedule_fires).where(schedule_fires.c.schedule_id == made)
        rows = rows.order_by(schedule_fires.c.slot_ms)
        first_ms = (await table.view()).next_fire_at_ms
    await house.clock.advance(601)
    async with house.begins(answering("one", hello="a0")) as at:
        await goes_on(at, 0)
        found = await at.database.read(lambda conn: conn.execute(rows).all())
    (counted, *kept) = found[: MOST_AT_ONCE + 1]
    assert (counted.slot_ms, counted.status) == (first_ms, "skipped")
    count = (kept[0].slot_ms - first_ms) // 1000
    assert counted.reason == f"{count} times did not fire: {TOO_MANY}"
    slots = [one.slot_ms for one in kept]
    assert slots == list(range(slots[0], slots[0] + MOST_AT_ONCE * 1000, 1000))
    # One is at work, and the others overlap it.
    assert kept[0].status != "skipped"
    assert {one.status for one in kept[1:]} == {"skipped"}


@pytest.mark.requirement("SCH-3")
async def test_with_no_grace_at_all_it_still_fires_on_time(house: House) -> None:
    async with house.begins(answering("one", "two")) as at:
        table = await desk(at)
        await table.make(misfire_policy={"type": "skip_missed", "grace_ms": 60_000})
        await table.passes(60)
        await table.passes(60)
        assert await table.statuses() == ["settled", "settled"]


@pytest.mark.requirement("SCH-4")
async def test_a_failed_run_is_counted_and_told_and_the_next_one_heals_it(house: House) -> None:
    async with house.begins(answering(Said(error=ModelRejected("no")), "fine")) as at:
        table = await desk(at)
        await table.make()
        await table.passes(60)
        (fire,) = await table.fires()
        assert (fire.status, fire.run_status) == ("settled", "failed")
        view = await table.view()
        assert (view.execution_count, view.consecutive_failures) == (1, 1)
        assert view.last_error
        await table.passes(60)
        view = await table.view()
        assert (view.execution_count, view.consecutive_failures, view.last_error) == (2, 0, None)


@pytest.mark.requirement("SCH-1")
async def test_it_ends_after_as_many_executions_as_it_may_have(house: House) -> None:
    async with house.begins(answering("one", "two", "three")) as at:
        table = await desk(at)
        made = await table.make(max_executions=2)
        await table.passes(60)
        with pytest.raises(InvalidInput, match="must be more than the 1 executions so far"):
            await table.control.revise(made, ScheduleChange(max_executions=1))
        for _ in range(3):
            await table.passes(60)
        assert at.chat.texts(HERE) == ["hello", "one", "two"]
        view = await table.view()
        assert (view.status, view.execution_count, view.next_fire_at_ms) == ("completed", 2, None)


@pytest.mark.requirement("SCH-1")
async def test_one_that_is_due_once_is_over_when_its_run_is(house: House) -> None:
    gate, long_answer = held()
    async with house.begins(answering(long_answer)) as at:
        table = await desk(at)
        await table.make(cadence=in_a_minute(house.clock))
        await table.passes(60)
        await gate.reached.wait()
        assert (await table.view()).status == "active"
        gate.open.set()
        await at.sees(2, HERE)
        await table.passes(1)
        assert (await table.view()).status == "completed"


@pytest.mark.requirement("SCH-6")
async def test_a_trigger_fires_now_and_the_next_time_stays(house: House) -> None:
    async with house.begins(answering("one", "two")) as at:
        table = await desk(at)
        made = await table.make()
        before = (await table.view()).next_fire_at_ms
        await table.passes(10)
        await table.control.trigger(made)
        await at.sees(2, HERE)
        await table.passes(1)
        assert await table.statuses() == ["settled"]
        assert (await table.view()).next_fire_at_ms == before
        await table.passes(49)
        assert await table.statuses() == ["settled", "settled"]


@pytest.mark.requirement("SCH-6", "RUN-4")
async def test_a_trigger_that_is_repeated_under_its_key_fires_once(house: House) -> None:
    async with house.begins(answering("one", "two")) as at:
        table = await desk(at)
        made = await table.make()
        for _ in range(2):
            await table.control.trigger(made, idempotency_key="k")
            await table.passes(1)
        assert at.chat.texts(HERE) == ["hello", "one"]
        await table.control.trigger(made, idempotency_key="other")
        await table.passes(1)
        assert at.chat.texts(HERE) == ["hello", "one", "two"]


@pytest.mark.requirement("SCH-6")
async def test_a_trigger_is_under_the_overlap_policy(house: House) -> None:
    gate, long_answer = held()
    async with house.begins(answering(long_answer)) as at:
        table = await desk(at)
        made = await table.make()
        await table.passes(60)
        await gate.reached.wait()
        await table.control.trigger(made)
        await table.passes(1)
        assert await table.statuses() == ["dispatched", "skipped"]
        gate.open.set()
        await at.sees(2, HERE)


@pytest.mark.requirement("SCH-6")
@pytest.mark.parametrize("stop_run", [False, True])
async def test_a_cancel_leaves_the_run_at_work_alone_unless_it_is_asked_for(
    house: House, stop_run: bool
) -> None:
    gate, long_answer = held()
    async with house.begins(answering(long_answer)) as at:
        table = await desk(at)
        made = await table.make(overlap_policy="queue_one")
        await table.passes(60)
        await gate.reached.wait()
        await table.passes(60)
        assert await table.statuses() == ["dispatched", "claimed"]
        await table.control.cancel(made, CancelRequest(stop_run=stop_run))
        await table.passes(1)
        gate.open.set()
        if not stop_run:
            await at.sees(2, HERE)
        await table.passes(120)
        first, second = await table.fires()
        assert first.run_status == ("cancelled" if stop_run else "completed")
        assert (first.status, second.status) == ("settled", "rolled_back")
        view = await table.view()
        assert (view.status, view.queued_fire_at_ms) == ("cancelled", None)


@pytest.mark.requirement("SCH-6")
async def test_a_pause_keeps_what_was_left_and_what_is_queued(house: House) -> None:
    gate, long_answer = held()
    async with house.begins(answering(long_answer, "two", "three")) as at:
        table = await desk(at)
        made = await table.make(overlap_policy="queue_one")
        await table.passes(60)
        await gate.reached.wait()
        await table.passes(60)
        await table.passes(20)
        await table.control.pause(made)
        assert (await table.view()).remaining_ms == 40_000
        gate.open.set()
        await at.sees(2, HERE)
        await table.passes(300)
        assert await table.statuses() == ["settled", "claimed"]
        await table.control.resume(made)
        await at.sees(3, HERE)
        await table.passes(39)
        assert await table.statuses() == ["settled", "settled"]
        await table.passes(1)
        assert await table.statuses() == ["settled"] * 3


@pytest.mark.requirement("SCH-1")
async def test_its_owner_has_an_account_where_it_speaks(house: House) -> None:
    async with house.begins(answering()) as at:
        table = await desk(at)
        with pytest.raises(InvalidInput, match="must be a person with an account on test"):
            await table.make(place={"channel": "test", "account": "A2", "chat": HERE})
        assert (await table.control.listing()).items == ()


async def test_an_owner_who_is_no_longer_let_in_pauses_it(house: House) -> None:
    async with house.begins(answering("one")) as at:
        table = await desk(at)
        await table.make()
        settings = at.engine.settings
        nobody = replace(TEAM, owners=frozenset(), allow_users=frozenset(), dm_policy="allowlist")
        changed = replace(settings.intake, access={"test": nobody})
        at.engine.change(replace(settings, intake=changed))
        await table.passes(60)
        view = await table.view()
        assert (view.status, view.last_error) == ("paused", NOT_LET_IN)
        assert await table.statuses() == ["skipped"]
        assert at.chat.texts(HERE) == ["hello"]


@pytest.mark.requirement("SCH-9")
async def test_the_lane_of_a_schedule_goes_with_its_conversation(house: House) -> None:
    async with house.begins(answering("42 sold")) as at:
        table = await desk(at)
        await table.make(here=True)
        await table.passes(60)
        lane = (await table.view()).run_session_id
        await keeping(at).delete(table.session_id)
        await table.passes(2)
        states = select(sessions.c.id, sessions.c.status)
        found = await at.database.read(lambda conn: dict(conn.execute(states).all()))
        assert found[lane] == "deleted"
        words = select(messages.c.payload).where(messages.c.payload.contains("42 sold"))
        assert await at.database.read(lambda conn: conn.execute(words).first()) is None


@pytest.mark.requirement("SCH-9")
async def test_words_alone_are_delivered_by_the_same_service(house: House) -> None:
    async with house.begins(answering()) as at:
        table = await desk(at)
        made = await table.make(deliver_text="stretch", cadence=MINUTE)
        await table.passes(60)
        await table.control.trigger(made)
        await table.passes(1)
        assert at.chat.texts(HERE)[1:] == ["Reminder: stretch"] * 2
        first, second = await table.fires()
        assert (first.status, first.delivery_status, first.run_id) == ("settled", "sent", None)
        assert second.fire_at_ms > first.fire_at_ms
        assert [one.attempt for one in (first, second)] == [1, 1]


@pytest.mark.requirement("SCH-3")
async def test_after_a_long_downtime_times_of_the_calendar_are_not_counted_to_the_end(
    house: House,
) -> None:
    async with house.begins() as at:
        await hears(at, "/remind every 5 minutes: stretch")
        await hears(at, "/timezone UTC")
        await hears(at, "/remind every day at noon: lunch")
    await house.clock.advance((MOST_COUNTED + 1) * 24 * 3600)
    async with house.begins() as at:
        await goes_on(at, 1)
        first, second = sorted(reminded(at))
        assert first.endswith("It was due at least 1,000 times more; I say it once.")
        # Those of an interval need not be gone through.
        assert "It was due 288,287 times more, last on " in second
