"""Buttons, forms and home pages: strangers let in by the owner, reasons, answers (ACC-1, APR-6)."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from sqlalchemy import update

from runtime.domain.messages import ApprovalPart, ButtonPress
from runtime.domain.people import Sender
from runtime.domain.runs import RunState
from runtime.intake import pairing
from runtime.intake.settings import MAX_FORM_TEXT
from runtime.ports.gatehouse import Home, Pressed
from runtime.sessions import people
from runtime.sessions.people import Pairing
from runtime.sessions.tables import pairings
from runtime.store import Connection
from tests.fakes.model import Said, ScriptedModel
from tests.scenario.cards import (
    MEMBER,
    asks,
    audited,
    both,
    call,
    card,
    cards,
    offering,
    outcome,
    reaches,
    results,
)
from tests.scenario.conftest import Worlds, intake
from tests.scenario.engine import OPEN, OWNER, World
from tests.scenario.tools import Note

STRANGER = "U-stranger"
WITH_MEMBER = replace(OPEN, allow_users=frozenset({MEMBER}))


async def presses(world: World, call_id: str, *, user: str = OWNER, **form: object) -> Pressed:
    press = ButtonPress(
        channel="test",
        account="A1",
        chat_id=f"D-{user}",
        sender=Sender(id=user, name=user.removeprefix("U-")),
        open_call_id=call_id,
        choice="",
        press_id=f"p{next(world.ids)}",
        received_at_ms=1,
    )
    return await world.engine.intake.press(press.model_copy(update=form))


async def stranger_writes(world: World, user: str = STRANGER) -> ApprovalPart:
    """The owner is known, a stranger writes; the card that the owner gets."""
    if not world.chat.sent:
        await world.says("/help")
    before = len(cards(world))
    await world.says("hello, let me in", user=user)
    part = await card(world, before + 1)
    assert isinstance(part, ApprovalPart)
    return part


@pytest.mark.requirement("ACC-1")
async def test_the_owner_lets_a_stranger_in_by_a_button(worlds: Worlds) -> None:
    async with worlds(ScriptedModel(["welcome"])) as world:
        part = await stranger_writes(world)
        assert cards(world)[0][0].target.chat_id == f"D-{OWNER}"
        assert part.arguments == "stranger (U-stranger)"
        assert part.choices == ("approve", "deny")
        assert not (await presses(world, part.open_call_id, choice="session")).accepted
        pressed = await presses(world, part.open_call_id, choice="approve")
        assert pressed.accepted
        assert "Let in by owner" in await outcome(world)
        await world.chat.until(lambda: len(world.chat.texts(f"D-{STRANGER}")) == 2)
        await world.says("thanks", user=STRANGER)
        await world.chat.until(lambda: world.chat.texts(f"D-{STRANGER}")[-1] == "welcome")


@pytest.mark.requirement("ACC-1", "POL-4")
async def test_nobody_but_an_owner_lets_anybody_in(worlds: Worlds) -> None:
    change = intake(access={"test": WITH_MEMBER})
    async with worlds(ScriptedModel([]), change=change) as world:
        part = await stranger_writes(world)
        for user in (MEMBER, STRANGER):
            pressed = await presses(world, part.open_call_id, user=user, choice="approve")
            assert not pressed.accepted
        await world.says(f"/approve {part.code}", user=MEMBER)
        await world.chat.until(lambda: "Only an owner" in "".join(world.chat.texts(f"D-{MEMBER}")))
        assert len(await audited(world, "pairing.refused")) == 3
        assert (await world.says("let me", user=STRANGER)).disposition == "pairing"


async def _waiting(world: World) -> Sequence[Pairing]:
    return await world.database.read(people.pairings_pending)


def _an_hour_passes(conn: Connection) -> None:
    conn.execute(update(pairings).values(expires_ms=pairings.c.expires_ms - pairing.CODE_LIFE_MS))


@pytest.mark.requirement("ACC-1")
@pytest.mark.parametrize("word", ["approve", "deny"])
async def test_the_code_works_as_a_word_too_and_once(worlds: Worlds, word: str) -> None:
    async with worlds(ScriptedModel([])) as world:
        part = await stranger_writes(world)
        await world.says(f"/{word} {part.code.lower()}")
        said = {"approve": "Let in by", "deny": "Turned away by"}[word]
        assert said in await outcome(world)
        pressed = await presses(world, part.open_call_id, choice="approve")
        assert not pressed.accepted
        assert "this pairing code is" in pressed.text.lower()


@pytest.mark.requirement("ACC-1")
async def test_the_button_expires_after_an_hour_and_three_wait_at_most(worlds: Worlds) -> None:
    async with worlds(ScriptedModel([])) as world:
        part = await stranger_writes(world)
        for number in (2, 3):
            await stranger_writes(world, f"U-stranger{number}")
        dropped = await world.says("and I?", user="U-stranger4")
        assert dropped.disposition == "dropped"
        again = await world.says("hello?", user=STRANGER)
        assert again.disposition == "pairing"
        assert len(cards(world)) == 3, "who asks twice has one card"
        hour_ms = {pairing.CODE_LIFE_MS}
        assert hour_ms == {one.expires_ms - one.created_ms for one in await _waiting(world)}
        await world.database.write(_an_hour_passes, name="age")
        pressed = await presses(world, part.open_call_id, choice="approve")
        assert (pressed.accepted, "expired" in pressed.text) == (False, True)


@pytest.mark.requirement("APR-3")
async def test_a_denial_carries_its_reason_to_the_model(worlds: Worlds) -> None:
    model = ScriptedModel([Said(calls=(call("rm"),)), "I see"])
    async with worlds(model, change=offering(Note(command=True))) as world:
        await world.says("do it")
        part = await card(world)
        long = "not on a Friday " + "x" * MAX_FORM_TEXT
        await presses(world, part.open_call_id, choice="deny", text=long)
        await world.chat.until(lambda: "I see" in world.chat.texts())
        (told,) = results(model.requests[1])
        assert "not on a Friday" in told.content
        assert len(told.content) < MAX_FORM_TEXT + 100


@pytest.mark.requirement("APR-3")
async def test_words_in_a_form_allow_nothing_else(worlds: Worlds) -> None:
    note = Note(command=True)
    async with worlds(ScriptedModel([Said(calls=(call("rm"),))]), change=offering(note)) as world:
        await world.says("do it")
        part = await card(world)
        for form in ({"text": "once"}, {"choice": "all", "text": "once"}, {"option": 1}):
            assert not (await presses(world, part.open_call_id, **form)).accepted
        assert note.begun == 0


@pytest.mark.requirement("APR-6")
@pytest.mark.parametrize(
    ("form", "answer"),
    [
        ({"choice": "red"}, "red"),
        ({"option": 2}, "blue"),
        ({"text": " neither of them "}, "neither of them"),
    ],
)
async def test_a_question_is_answered_by_a_button_or_a_form(
    worlds: Worlds, form: dict[str, object], answer: str
) -> None:
    model = ScriptedModel([Said(calls=(asks("Which?", "red", "blue"),)), "fine"])
    async with worlds(model) as world:
        accepted = await world.says("go")
        part = await card(world)
        wrong = ({"option": 3}, {"option": 0}, {"choice": "green", "text": "x"}, {"text": " "})
        for bad in wrong:
            assert not (await presses(world, part.open_call_id, **bad)).accepted
        assert (await presses(world, part.open_call_id, **form)).accepted
        await reaches(world, accepted.run_id, RunState.COMPLETED)
        assert answer in results(model.requests[1])[0].content


@pytest.mark.requirement("APR-4")
async def test_a_reply_to_an_approval_denies_it_and_never_allows_it(worlds: Worlds) -> None:
    note = Note(command=True)
    model = ScriptedModel([Said(calls=(call("rm"),)), "left it", "more", "more"])
    async with worlds(model, change=offering(note)) as world:
        accepted = await world.says("do it")
        await card(world)
        posted = world.chat.sent[0].id
        for words in ("yes, do it", "once", "approve"):
            said = await world.says(words, reply_to=posted)
            assert said.disposition == "queued"
        denied = await world.says("No, that is my work", reply_to=posted)
        assert denied.disposition == "answer"
        await reaches(world, accepted.run_id, RunState.COMPLETED)
        assert note.begun == 0
        assert "that is my work" in results(model.requests[1])[0].content


async def home(world: World, user: str) -> Home:
    return await world.engine.intake.home(
        channel="test", account="A1", sender=Sender(id=user, name=user)
    )


@pytest.mark.requirement("SLK-4")
async def test_a_home_page_shows_a_person_their_own_and_a_stranger_nothing(
    worlds: Worlds,
) -> None:
    model = ScriptedModel(
        lambda request: (
            Said(calls=(call("rm"),)) if request.messages[-1].text == "do it" else "hello"
        )
    )
    change = both(offering(Note(command=True)), intake(access={"test": WITH_MEMBER}))
    async with worlds(model, change=change) as world:
        await world.says("good morning", user=OWNER)
        await world.says("my own business", user=MEMBER)
        await world.says("in the room", user=MEMBER, chat_id="G1", kind="group")
        await world.sees(3)
        await world.says("do it", user=MEMBER, chat_id="G1", kind="group")
        await card(world)
        assert await home(world, STRANGER) == Home(known=False)
        member, owner = await home(world, MEMBER), await home(world, OWNER)
        assert {one.title for one in member.sessions} == {"my own business", "in the room"}
        assert [one.title for one in owner.sessions] == ["good morning"]
        assert "waiting_for_approval" in [one.state for one in member.sessions]
        assert (len(member.cards), len(owner.cards)) == (0, 1)
        await world.says("let me in", user=STRANGER)
        assert len((await home(world, OWNER)).cards) == 2
