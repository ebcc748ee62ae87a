"""Rate limits as people meet them: answers, then one line, then answers again (POL-8)."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from runtime.domain.rates import Rate, RateSettings
from tests.fakes.clock import FakeClock
from tests.fakes.model import Gate, Said, ScriptedModel
from tests.scenario.cards import call, card, offering
from tests.scenario.conftest import Worlds
from tests.scenario.engine import Setup
from tests.scenario.spending import both, talking
from tests.scenario.tools import Note

GUEST = "U-guest"


def rates(queue_mode: str = "followup", **given: Rate) -> Callable[[Setup], Setup]:
    """A setup with these limits, for owners too."""

    def change(setup: Setup) -> Setup:
        intake = setup.settings.intake
        commands = replace(intake.commands, rates=RateSettings(owners=True, **given))
        changed = replace(intake, commands=commands, queue_mode=queue_mode)
        return replace(setup, settings=replace(setup.settings, intake=changed))

    return change


@pytest.mark.requirement("POL-8")
async def test_a_flood_gets_its_answers_one_line_and_later_answers_again(worlds: Worlds) -> None:
    clock, model = FakeClock(), talking()
    change = both(rates(person=Rate(minute=2)), lambda setup: replace(setup, clock=clock))
    async with worlds(model, change=change) as world:

        async def flood(amount: int) -> list[str]:
            before = len(world.chat.sent)
            for _ in range(amount):
                await world.says("me again", user=GUEST, chat_id="G", kind="group")
            while len(world.chat.sent) < before + 3:
                await clock.advance(0.1)
            await clock.advance(1)
            return sorted(world.chat.texts()[before:])

        line, *answers = await flood(9)
        assert answers == ["an answer"] * 2
        assert "That is more than 2 requests of yours in a minute" in line
        assert "I continue at 08:01:00 (UTC)" in line
        await world.says("and me", user="U-other", chat_id="G", kind="group")
        while len(world.chat.sent) == 3:
            await clock.advance(0.1)
        assert world.chat.texts()[-1] == "an answer"
        await clock.advance(60)
        _, *answers = await flood(3)
        assert answers == ["an answer"] * 2
    assert len(model.requests) == 5, "no model ever reads what was left"


@pytest.mark.requirement("POL-8", "MSG-5")
async def test_what_is_refused_interrupts_nothing(worlds: Worlds) -> None:
    gate = Gate()
    model = ScriptedModel([Said("the whole answer", before=gate)])
    async with worlds(model, change=rates("interrupt", person=Rate(hour=1))) as world:
        await world.says("first")
        await gate.reached.wait()
        assert (await world.says("second")).disposition == "limited"
        gate.open.set()
        line, answer = await world.sees(2)
        assert "requests of yours in an hour" in line
        assert answer == "the whole answer"


@pytest.mark.requirement("POL-8", "MSG-4")
async def test_messages_behind_a_card_are_told_so_only_as_often_as_may_be(worlds: Worlds) -> None:
    model = ScriptedModel([Said(calls=(call("x"),)), "denied", "done"])
    change = both(rates("collect", words=Rate(minute=2)), offering(Note(command=True)))
    async with worlds(model, change=change) as world:
        await world.says("note x")
        part = await card(world)
        for _ in range(6):
            await world.says("and?")
        texts = (await world.sees(4))[1:]
        assert [part.code in text for text in texts] == [True, True, False]
        assert "I answered you 2 times in a minute" in texts[2]
        await world.says(f"/deny {part.code}")
        await world.chat.until(lambda: "done" in world.chat.texts())
        assert len(model.requests) == 3, "all that waited were heard, by one run"
