"""Budgets as people meet them: the last call, the line after it, the next day, crashes."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from runtime.domain.budgets import BudgetSettings, Limit, micro_usd
from runtime.domain.errors import ModelRejected, ModelRetry
from runtime.domain.runs import RunState, Usage
from runtime.domain.tools import Effect
from runtime.sessions import runs
from tests.fakes.clock import FakeClock
from tests.fakes.model import Gate, Said, ScriptedModel, ScriptedModels
from tests.scenario.conftest import Worlds
from tests.scenario.spending import CALL, both, figures, limits, reason_of_end, state, talking
from tests.scenario.tools import Note


@pytest.mark.requirement("MSG-20")
async def test_a_run_ends_with_what_it_has_when_its_budget_is_used_up(worlds: Worlds) -> None:
    note = Note(effect=Effect.READ)
    model = ScriptedModel(
        lambda request: Said("so far so good", calls=(("note", '{"text": "x"}'),))
    )
    change = both(limits(run=Limit(CALL + 1)), lambda setup: replace(setup, tools=(note,)))
    async with worlds(model, change=change) as world:
        accepted = await world.says("loop")
        (text,) = await world.sees(1)
        assert text.startswith("so far so good\n\n(I stopped here, because one request may use")
        assert "111 tokens" in text
        assert len(model.requests) == 2, "the call that crosses the limit is the last one"
        assert await state(world, accepted.run_id) is RunState.COMPLETED
        assert await reason_of_end(world, accepted.run_id) == "budget"
        await world.says("again")
        await world.sees(2)
        assert len(model.requests) == 4, "the next request has a budget of its own"


@pytest.mark.requirement("MSG-20")
@pytest.mark.parametrize(
    ("scope", "named", "answered"),
    [
        # Who else gets an answer once the owner has used up the budget in the room C1.
        ("session", "This session", ["owner elsewhere", "other in a direct chat"]),
        ("person_day", "You have used", ["other in the room", "other in a direct chat"]),
        ("room_day", "This room", ["owner elsewhere", "other in a direct chat"]),
        ("day", "for everybody", []),
    ],
)
async def test_over_a_budget_people_get_one_line_and_no_call(
    worlds: Worlds, scope: str, named: str, answered: list[str]
) -> None:
    model = talking()
    async with worlds(model, change=limits(**{scope: Limit(CALL + 1)})) as world:
        for number in range(3):
            await world.says("hello", chat_id="C1", kind="group")
            await world.sees(number + 1)
        texts = world.chat.texts()
        assert texts[:2] == ["an answer", "an answer"]
        assert named in texts[2]
        assert "111 tokens" in texts[2]
        assert len(model.requests) == 2, "at most one call goes beyond the limit"
        others = {
            "owner elsewhere": {"user": "U-owner"},
            "other in the room": {"user": "U-other", "chat_id": "C1", "kind": "group"},
            "other in a direct chat": {"user": "U-third", "chat_id": "C9", "kind": "group"},
        }
        got = []
        for number, (name, where) in enumerate(others.items(), 4):
            await world.says("me too", **where)
            if (await world.sees(number))[-1] == "an answer":
                got.append(name)
        assert got == answered


@pytest.mark.requirement("MSG-20")
async def test_a_budget_of_a_day_starts_afresh_at_midnight_of_the_operators_zone(
    worlds: Worlds,
) -> None:
    start = datetime(2026, 11, 20, 22, 59, 50, tzinfo=UTC)
    clock = FakeClock(int(start.timestamp() * 1000))
    model = talking()
    change = both(
        limits(person_day=Limit(CALL), timezone="Europe/Berlin"),
        lambda setup: replace(setup, clock=clock),
    )
    async with worlds(model, change=change) as world:

        async def answer(text: str) -> str:
            before = len(world.chat.sent)
            await world.says(text)
            while len(world.chat.sent) == before:
                await clock.advance(0.1)
            return world.chat.texts()[-1]

        assert await answer("today") == "an answer"
        refused = await answer("more")
        assert "You have used your budget of 110 tokens for today" in refused
        assert "midnight (Europe/Berlin)" in refused
        await clock.advance(10)
        assert await answer("tomorrow") == "an answer"
        assert await figures(world.database) == [("person", 110, 0), ("person", 110, 0)]


@pytest.mark.requirement("MSG-20")
async def test_a_budget_in_money_counts_what_the_responses_cost(worlds: Worlds) -> None:
    model = talking()
    change = limits(person_day=Limit(micro_usd=micro_usd(0.0015)))
    async with worlds(model, change=change) as world:
        for number in range(3):
            await world.says("hello")
            await world.sees(number + 1)
        assert "You have used your budget of $0.0015 for today" in world.chat.texts()[2]
    assert len(model.requests) == 2


@pytest.mark.requirement("MSG-20")
async def test_where_the_cost_is_unknown_only_tokens_count_and_usage_says_so(
    worlds: Worlds,
) -> None:
    unknown = Usage(input_tokens=100, output_tokens=10)
    model = ScriptedModel(lambda request: Said("an answer", usage=unknown))
    both_units = limits(day=Limit(tokens=CALL * 3, micro_usd=1))
    async with worlds(model, change=both_units) as world:
        for number in range(3):
            await world.says("hello")
            assert (await world.sees(number + 1))[-1] == "an answer"
        await world.says("/usage")
        told = (await world.sees(4))[-1]
        assert "cost unknown for 3 calls, only tokens count there" in told
        await world.says("hello")
        assert "330 tokens" in (await world.sees(5))[-1]
    assert len(model.requests) == 3


@pytest.mark.requirement("MSG-20")
async def test_usage_shows_the_limits_and_what_is_left(worlds: Worlds) -> None:
    change = limits(
        run=Limit(5000),
        session=Limit(tokens=1000),
        person_day=Limit(micro_usd=micro_usd(2)),
        room_day=Limit(10),
        day=Limit(10_000),
        timezone="Europe/Berlin",
    )
    async with worlds(talking(), change=change) as world:
        await world.says("hello")
        await world.sees(1)
        await world.says("/usage")
        lines = (await world.sees(2))[-1].splitlines()
    assert lines[0].startswith("This session used 100 tokens in")
    assert lines[1:] == [
        "- one request: at most 5,000 tokens",
        "- this session: 110 tokens of 1,000 tokens used, 890 tokens left",
        "- you, today: $0.0010 of $2.00 used, $1.9990 left, until midnight (Europe/Berlin)",
        "- everybody, today: 110 tokens of 10,000 tokens used, 9,890 tokens left, "
        "until midnight (Europe/Berlin)",
    ]


@pytest.mark.requirement("MSG-20")
async def test_without_a_limit_nothing_is_counted_and_no_unit_is_added(worlds: Worlds) -> None:
    units: list[str] = []
    async with worlds(talking(), change=lambda s: replace(s, point=units.append)) as world:
        await world.says("hello")
        await world.sees(1)
        assert await figures(world.database) == []
        await world.says("/usage")
        assert "\n" not in (await world.sees(2))[-1]
    assert "finish:commit" in units
    assert not [name for name in units if name.startswith(("reserve", "release"))]


@pytest.mark.requirement("MSG-20")
async def test_a_crash_during_a_call_leaks_no_reservation(worlds: Worlds) -> None:
    gate = Gate()
    change = limits(day=Limit(100_000))
    async with worlds(ScriptedModel([Said("never said", before=gate)]), change=change) as before:
        await before.says("hello")
        await gate.reached.wait()
        ((_, used, reserved),) = await figures(before.database)
        assert used == 0
        assert reserved > 8192, "the prompt and the longest response"
    async with worlds(talking(), change=change) as after:
        assert await after.sees(1) == ["an answer"]
        assert await figures(after.database) == [("day", CALL, 0)]


@pytest.mark.requirement("MSG-20")
async def test_what_a_crashed_call_held_stands_in_nobodys_way(worlds: Worlds) -> None:
    gate = Gate()
    change = limits(day=Limit(100))
    async with worlds(ScriptedModel([Said("never said", before=gate)]), change=change) as before:
        stopped = await before.says("hello")
        await gate.reached.wait()
        await before.database.write(
            lambda conn: runs.change(conn, stopped.run_id or "", {"cancel": "stopped"}), name="u"
        )
    async with worlds(talking(), change=change) as after:
        await after.says("hello", chat_id="D-2")
        assert await after.sees(1) == ["an answer"], "its reservation is gone with it"
        assert await state(after, stopped.run_id) is RunState.CANCELLED
        assert await figures(after.database) == [("day", CALL, 0)]


@pytest.mark.requirement("MSG-20")
async def test_retries_and_fallback_of_one_call_reserve_once(worlds: Worlds) -> None:
    clock, gate = FakeClock(), Gate()
    first = ScriptedModel(lambda request: ModelRetry("503"), name="a:down")
    second = ScriptedModel([Said("from the other one", before=gate)], name="b:up")
    models = ScriptedModels(first, second, fallback=["b:up"])
    change = both(limits(day=Limit(CALL)), lambda setup: replace(setup, clock=clock))
    async with worlds(models, change=change) as world:
        await world.says("hi")
        while not first.requests:
            await clock.advance(0)
        once = await figures(world.database)
        while not gate.reached.is_set():
            await clock.advance(1)
        assert len(first.requests) == 5
        assert await figures(world.database) == once
        gate.open.set()
        while not world.chat.sent:
            await clock.advance(0.1)
        assert world.chat.texts() == ["from the other one"]
        assert await figures(world.database) == [("day", CALL, 0)]


@pytest.mark.requirement("MSG-20")
async def test_a_call_that_failed_costs_nothing_and_one_that_was_stopped_does(
    worlds: Worlds,
) -> None:
    gate = Gate()
    model = ScriptedModel(
        [ModelRejected("401"), Said("half an answer", chunk=4, middle=gate, at=1)]
    )
    async with worlds(model, change=limits(day=Limit(100_000))) as world:
        await world.says("hi")
        await world.sees(1)
        assert await figures(world.database) == [("day", 0, 0)]
        accepted = await world.says("a long story")
        await gate.reached.wait()
        await world.says("/stop")
        while await state(world, accepted.run_id) is RunState.RUNNING:
            pass
        ((_, used, reserved),) = await figures(world.database)
        assert used > 100, "the prompt was paid for"
        assert reserved == 0


@pytest.mark.requirement("MSG-20")
async def test_a_response_that_nobody_sees_is_counted_too(worlds: Worlds) -> None:
    model = ScriptedModel(["", "an answer"])
    async with worlds(model, change=limits(day=Limit(100_000))) as world:
        await world.says("hi")
        await world.sees(1)
        assert await figures(world.database) == [("day", 2 * CALL, 0)]


@pytest.mark.requirement("MSG-20")
async def test_a_raised_limit_holds_for_the_next_message(worlds: Worlds) -> None:
    async with worlds(talking(), change=limits(session=Limit(1))) as world:
        await world.says("one")
        await world.says("two")
        assert "whoever runs me can raise it" in (await world.sees(2))[1]
        raised = BudgetSettings(session=Limit(100_000))
        world.engine.change(replace(world.engine.settings, budgets=raised))
        await world.says("three")
        assert (await world.sees(3))[2] == "an answer"
