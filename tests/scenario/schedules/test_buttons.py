"""The buttons of schedules: by whose right a press counts, and that it counts once."""

from itertools import count

import pytest
from sqlalchemy import select, update

from runtime.domain.messages import Button, ButtonPress, TextPart
from runtime.domain.people import Sender
from runtime.features.schedules.buttons import HEADING, NOT_YOURS, OVER, UNKNOWN
from runtime.features.schedules.commands import NOT_YET
from runtime.features.schedules.tables import schedules
from runtime.ports.gatehouse import Home, Pressed
from runtime.sessions.tables import sessions
from tests.scenario.cards import GUEST, MEMBER
from tests.scenario.engine import OWNER, World
from tests.scenario.schedules.test_reminders import (
    GROUP,
    HERE,
    House,
    code_in,
    goes_on,
    hears,
    house,
    reminded,
)

__all__ = ["house"]
pytestmark = pytest.mark.requirement("SCH-8")
NUMBERS = count(1)
THERE = {"chat_id": GROUP, "kind": "channel"}


async def presses(
    at: World, about: str, choice: str, *, user: str = OWNER, press_id: str = ""
) -> Pressed:
    press = ButtonPress(
        channel="test",
        account="A1",
        chat_id=HERE,
        sender=Sender(id=user, name=user.removeprefix("U-")),
        open_call_id=about,
        choice=choice,
        press_id=press_id or f"p{next(NUMBERS)}",
        received_at_ms=1,
    )
    return await at.engine.intake.press(press)


def below_last(at: World) -> list[Button]:
    """The buttons below the text that was posted last."""
    return [
        button
        for part in at.chat.sent[-1].message.parts
        if isinstance(part, TextPart)
        for button in part.buttons
    ]


async def states(at: World) -> dict[str, str]:
    query = select(schedules.c.id, schedules.c.status).order_by(schedules.c.deliver_text.desc())
    rows = await at.database.read(lambda conn: conn.execute(query).all())
    return {row.id: row.status for row in rows}


async def listed(at: World, **said: object) -> list[str]:
    """The choices below a list, each with the code of its schedule."""
    await hears(at, "/schedules", **said)
    return [f"{button.choice} {button.about[-6:]}" for button in below_last(at)]


async def test_a_list_has_buttons_that_do_what_the_words_do(house: House) -> None:
    async with house.begins() as at:
        await hears(at, "/timezone UTC")
        await hears(at, "/remind every day at noon: tea")
        ((one, _),) = (await states(at)).items()
        code = one[-6:]
        assert await listed(at) == [f"pause {code}", f"cancel {code}"]
        assert (await presses(at, one, "pause")).text.startswith("Paused.")
        assert await states(at) == {one: "paused"}
        assert await listed(at) == [f"resume {code}", f"cancel {code}"]
        assert (await presses(at, one, "pause")).text == "It is paused already."
        assert (await presses(at, one, "resume")).text.startswith("It goes on: next on Friday")
        assert await states(at) == {one: "active"}
        assert (await presses(at, one, "cancel")).text == "Cancelled: tea"
        assert await states(at) == {one: "cancelled"}
        assert await listed(at) == []
        for stale in ("pause", "resume", "cancel"):
            assert await presses(at, one, stale) == Pressed(accepted=False, text=OVER)
        assert await presses(at, f"{one}x", "pause") == Pressed(accepted=False, text=UNKNOWN)


async def test_a_press_that_comes_twice_counts_once(house: House) -> None:
    async with house.begins() as at:
        await hears(at, "/remind in 1 hour: tea")
        ((one, _),) = (await states(at)).items()
        assert (await presses(at, one, "pause", press_id="same")).accepted
        assert (await presses(at, one, "resume")).accepted
        again = await presses(at, one, "pause", press_id="same")
        assert again == Pressed(accepted=False, text="This was done already.")
        assert await states(at) == {one: "active"}


@pytest.mark.parametrize("choice", ["pause", "cancel", "snooze"])
async def test_a_press_counts_by_the_right_of_whoever_presses(house: House, choice: str) -> None:
    async with house.begins() as at:
        await hears(at, "/remind in 1 hour: tea", user=OWNER, **THERE)
        await hears(at, "/remind in 1 hour: cake", user=MEMBER, **THERE)
        mine, theirs = await states(at)
        if choice == "snooze":
            await goes_on(at, 3600)
        before = await states(at)
        assert await presses(at, mine, choice, user=MEMBER) == Pressed(
            accepted=False, text=NOT_YOURS
        )
        for user in (GUEST, "U-nobody"):
            assert not (await presses(at, mine, choice, user=user)).accepted
        assert await states(at) == before
        assert (await presses(at, theirs, choice, user=OWNER)).accepted
        assert await states(at) != before


@pytest.mark.parametrize(
    ("choice", "label", "seconds"), [("snooze", "10 min", 600), ("snoozelong", "1 h", 3600)]
)
async def test_a_reminder_that_came_is_snoozed_once(
    house: House, choice: str, label: str, seconds: int
) -> None:
    async with house.begins() as at:
        await hears(at, "/remind in 5 minutes: tea")
        await goes_on(at, 300)
        assert reminded(at) == ["Reminder: tea"]
        (button,) = [one for one in below_last(at) if one.choice == choice]
        assert label in button.label
        pressed = await presses(at, button.about, choice)
        assert pressed.accepted
        assert pressed.text.startswith("It comes again on Friday 15 January 2027, ")
        for other in ("snooze", "snoozelong"):
            again = await presses(at, button.about, other)
            assert again == Pressed(accepted=False, text="It was snoozed already.")
        await goes_on(at, seconds - 1)
        assert len(reminded(at)) == 1
        await goes_on(at, 1)
        assert reminded(at, HERE) == ["Reminder: tea"] * 2
        # What came again may be snoozed again.
        (button,) = [one for one in below_last(at) if one.choice == choice]
        assert (await presses(at, button.about, choice)).accepted


async def test_a_snooze_that_was_refused_can_be_pressed_again(house: House) -> None:
    async with house.begins() as at:
        await hears(at, "/remind in 5 minutes: tea")
        await goes_on(at, 300)
        (button,) = [one for one in below_last(at) if one.choice == "snooze"]

        async def becomes(status: str) -> None:
            change = update(sessions).values(status=status)
            await at.database.write(lambda conn: conn.execute(change), name="test")

        await becomes("ended")
        for _ in range(2):
            refused = await presses(at, button.about, "snooze")
            assert not refused.accepted
            assert refused.text == "It cannot come again: the session has ended."
        await becomes("open")
        assert (await presses(at, button.about, "snooze")).accepted
        again = await presses(at, button.about, "snooze")
        assert again == Pressed(accepted=False, text="It was snoozed already.")


async def test_a_snooze_is_also_a_command(house: House) -> None:
    async with house.begins() as at:
        await hears(at, "/remind in 5 minutes: tea", **THERE)
        await hears(at, "/remind in 5 minutes: cake", user=MEMBER, **THERE)
        mine, theirs = (one[-6:] for one in await states(at))
        none = f"There is no reminder `{mine}` here. `/schedules` lists them."
        assert await hears(at, f"/schedules snooze {mine}", **THERE) == NOT_YET
        await goes_on(at, 300)
        commands = [one.command for one in below_last(at)]
        assert [one.partition(" snooze ")[2][6:] for one in commands] == [" 10 min", " 1 h"]
        assert await hears(at, f"/schedules snooze {mine}") == none
        said = await hears(at, f"/schedules snooze {mine} 1 h", user=MEMBER, **THERE)
        assert said == NOT_YOURS
        said = await hears(at, f"/schedules snooze {mine} 2 h", **THERE)
        assert said.startswith("I snooze by `10 min` or `1 h`")
        said = await hears(at, f"/schedules snooze {mine} 1 H", **THERE)
        assert said.startswith("It comes again on Friday 15 January 2027, 09:05")
        again = said.partition(" with the code ")[2].partition(":")[0]
        assert f"`{again}`" in await hears(at, "/schedules", **THERE)
        said = await hears(at, f"/schedules snooze {theirs}", user=MEMBER, **THERE)
        assert said.startswith("It comes again on Friday 15 January 2027, 08:15")
        for words in ("", " 10 min"):
            said = await hears(at, f"/schedules snooze {mine}{words}", **THERE)
            assert said == "It was snoozed already."
        await goes_on(at, 600)
        assert [text.endswith("cake") for text in reminded(at)][-1:] == [True]
        assert len(reminded(at)) == 3
        await goes_on(at, 3000)
        assert len(reminded(at)) == 4


async def home(at: World, user: str) -> Home:
    return await at.engine.intake.home(channel="test", account="A1", sender=Sender(id=user))


@pytest.mark.requirement("SLK-4")
async def test_a_home_page_lists_a_persons_own_schedules_with_their_buttons(
    house: House,
) -> None:
    async with house.begins() as at:
        await hears(at, "/remind in 1 hour: tea", user=OWNER, **THERE)
        await hears(at, "/remind in 2 hours: cake", user=MEMBER)
        mine, theirs = await states(at)
        (item,) = (await home(at, OWNER)).items
        assert item.heading == HEADING
        assert item.text == f"{mine[-6:]} · Friday 15 January 2027, 09:00 (UTC)\ntea"
        assert [one.choice for one in item.buttons] == ["pause", "cancel"]
        (item,) = (await home(at, MEMBER)).items
        assert {one.about for one in item.buttons} == {theirs}
        await presses(at, theirs, "cancel", user=MEMBER)
        assert (await home(at, MEMBER)).items == ()
        assert (await home(at, "U-nobody")).items == ()


@pytest.mark.requirement("SCH-6", "SCH-8")
async def test_it_is_said_how_often_one_comes(house: House) -> None:
    async with house.begins() as at:
        await hears(at, "/timezone UTC")
        code = code_in(await hears(at, "/remind every weekday at 9: post"))
        often = "every weekday at 09:00"
        listed = f"- `{code}` Friday 15 January 2027, 09:00 (UTC), {often}: post"
        assert listed in await hears(at, "/schedules")
        await hears(at, f"/schedules pause {code}")
        assert f"- `{code}` paused, {often}: post" in await hears(at, "/schedules")
        assert f"\n- times: {often}" in await hears(at, f"/schedules show {code}")
