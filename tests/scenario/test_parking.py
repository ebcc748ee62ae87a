"""Waiting for a person: no place is taken, and who writes meanwhile is told why (MSG-4)."""

import pytest

from runtime.domain.runs import RunState
from tests.fakes.model import Said, ScriptedModel
from tests.scenario.cards import both, call, card, offering, reaches, results, state
from tests.scenario.conftest import Worlds, engine
from tests.scenario.tools import Note


def asking() -> Note:
    """A tool that policy asks about."""
    return Note(command=True)


@pytest.mark.requirement("MSG-4")
async def test_a_parked_run_takes_no_place_and_holds_its_own_lane_only(worlds: Worlds) -> None:
    model = ScriptedModel(
        lambda request: (
            Said(calls=(call("a"),)) if request.messages[-1].text == "wait" else "at once"
        )
    )
    change = both(offering(asking()), engine(turns=1))
    async with worlds(model, change=change) as world:
        accepted = await world.says("wait")
        await card(world)
        await reaches(world, accepted.run_id, RunState.WAITING_FOR_APPROVAL)
        await world.says("hello", chat_id="D2")
        await world.chat.until(lambda: bool(world.chat.texts("D2")))
        assert world.chat.texts("D2") == ["at once"]


@pytest.mark.requirement("MSG-4")
async def test_a_message_behind_a_card_gets_one_line_that_names_it_and_waits(
    worlds: Worlds,
) -> None:
    note = asking()
    model = ScriptedModel([Said(calls=(call("a"),)), "did it", "and now that"])
    async with worlds(model, change=offering(note)) as world:
        await world.says("do it")
        part = await card(world)
        await world.says("and then?")
        line = (await world.sees(2))[1]
        assert part.code in line
        assert "`note`" in line
        assert len(model.requests) == 1
        await world.presses(part.open_call_id, "once")
        assert (await world.sees(4))[2:] == ["did it", "and now that"]


@pytest.mark.requirement("MSG-4", "APR-1")
async def test_all_calls_of_a_step_that_need_a_person_are_shown_at_once(worlds: Worlds) -> None:
    note = asking()
    model = ScriptedModel([Said(calls=(call("a"), call("b"), call("c"))), "done"])
    async with worlds(model, change=offering(note)) as world:
        accepted = await world.says("go")
        await card(world, 3)
        for number, choice in ((2, "once"), (3, "deny")):
            await world.presses((await card(world, number)).open_call_id, choice)
            assert await state(world, accepted.run_id) is RunState.WAITING_FOR_APPROVAL
        assert note.begun == 0
        await world.presses((await card(world, 1)).open_call_id, "once")
        await world.sees(4)
        assert note.kept == ["a", "b"]
        assert [one.status for one in results(model.requests[1])] == ["ok", "ok", "denied"]
