"""Questions of the agent: shown with options, answered by button, word or reply (APR-6)."""

import asyncio
from dataclasses import replace

import pytest

from runtime.domain.messages import QuestionPart
from runtime.domain.runs import RunState
from runtime.ports.model import ModelRequest
from runtime.tools.builtin.ask import AskUser
from tests.fakes.clock import FakeClock
from tests.fakes.model import Said, ScriptedModel
from tests.scenario.cards import (
    GUEST,
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
    script,
    state,
)
from tests.scenario.conftest import Worlds, agent, engine, intake
from tests.scenario.engine import OPEN
from tests.scenario.tools import Note

QUESTION = Said(calls=(asks("Which branch?", "main", "next"),))
ASKING = offering(AskUser())
GROUP = {"chat_id": "G1", "kind": "group"}


@pytest.mark.requirement("APR-6")
async def test_a_question_parks_the_run_and_shows_its_options(worlds: Worlds) -> None:
    async with worlds(ScriptedModel([QUESTION]), change=ASKING) as world:
        accepted = await world.says("go")
        part = await card(world)
        assert isinstance(part, QuestionPart)
        assert (part.question, part.options) == ("Which branch?", ("main", "next"))
        await reaches(world, accepted.run_id, RunState.WAITING_FOR_USER_QUESTION)


@pytest.mark.requirement("APR-6")
@pytest.mark.parametrize("way", ["button", "word", "reply"])
async def test_a_question_is_answered_by_button_by_word_and_by_reply(
    worlds: Worlds, way: str
) -> None:
    model = ScriptedModel([QUESTION, "on it"])
    async with worlds(model, change=ASKING) as world:
        accepted = await world.says("go")
        part = await card(world)
        if way == "button":
            assert (await world.presses(part.open_call_id, "next")).accepted
        elif way == "word":
            await world.says(f"/answer {part.code} next")
        else:
            said = await world.says("next", reply_to=world.chat.sent[0].id)
            assert (said.disposition, said.run_id) == ("answer", accepted.run_id)
        await world.chat.until(lambda: "on it" in world.chat.texts())
        assert results(model.requests[1])[0].content == "next"
        assert (await outcome(world)).startswith("owner answered: next (")
        assert await state(world, accepted.run_id) is RunState.COMPLETED


@pytest.mark.requirement("APR-6")
async def test_free_text_is_an_answer_where_there_are_options_too(worlds: Worlds) -> None:
    model = ScriptedModel([QUESTION, "on it"])
    async with worlds(model, change=ASKING) as world:
        await world.says("go")
        code = (await card(world)).code
        await world.says(f"/answer {code} neither: make a\nnew one")
        await world.chat.until(lambda: "on it" in world.chat.texts())
        assert results(model.requests[1])[0].content == "neither: make a\nnew one"


@pytest.mark.requirement("APR-6", "MSG-4")
async def test_a_group_message_that_is_no_reply_waits_and_is_told_how_to_answer(
    worlds: Worlds,
) -> None:
    model = ScriptedModel([QUESTION, "on it", "later then"])
    async with worlds(model, change=ASKING) as world:
        await world.says("go", **GROUP)
        part = await card(world)
        await world.says("by the way", **GROUP)
        line = (await world.sees(2))[1]
        assert "Which branch?" in line
        assert f"/answer {part.code}" in line
        assert len(model.requests) == 1
        await world.says("next", reply_to=world.chat.sent[0].id, **GROUP)
        await world.chat.until(lambda: "later then" in world.chat.texts())
        assert world.chat.texts()[2:] == ["on it", "later then"]


@pytest.mark.requirement("APR-10", "MSG-4")
async def test_in_a_direct_chat_plain_words_answer_the_one_open_question(worlds: Worlds) -> None:
    model = ScriptedModel([QUESTION, "on it"])
    async with worlds(model, change=ASKING) as world:
        asked = await world.says("go")
        await card(world)
        said = await world.says("next")
        assert (said.disposition, said.run_id) == ("answer", asked.run_id)
        await world.chat.until(lambda: "on it" in world.chat.texts())
        assert results(model.requests[1])[0].content == "next"
        assert (await outcome(world)).startswith("owner answered: next (")


@pytest.mark.requirement("APR-10", "SLK-3")
@pytest.mark.parametrize(("asked_in", "said_in"), [("t1", "m9"), ("t1", None), (None, "m9")])
async def test_plain_words_answer_the_one_question_of_a_direct_chat_with_threads(
    worlds: Worlds, asked_in: str | None, said_in: str | None
) -> None:
    """A message whose thread is its own began it: each does so where every answer has a thread."""
    model = ScriptedModel([QUESTION, "on it"])
    async with worlds(model, change=ASKING) as world:
        asked = await world.says("go", thread=asked_in)
        await card(world)
        said = await world.says("next", thread=said_in, message_id="m9")
        assert (said.disposition, said.run_id) == ("answer", asked.run_id)
        await world.chat.until(lambda: "on it" in world.chat.texts())
        assert results(model.requests[1])[0].content == "next"


@pytest.mark.requirement("APR-10")
@pytest.mark.parametrize("asked", [("question", "question"), ("approval",), ("elsewhere",)])
async def test_plain_words_outside_of_threads_answer_none_of_two_and_no_approval(
    worlds: Worlds, asked: tuple[str, ...]
) -> None:
    def plays(request: ModelRequest) -> Said | str:
        if request.messages[-1].text not in ("question", "approval", "elsewhere"):
            return "well"
        approval = request.messages[-1].text == "approval"
        return Said(calls=(call("a") if approval else asks("Which?"),))

    tools = offering(AskUser(), Note(command=True))
    async with worlds(ScriptedModel(plays), change=tools) as world:
        for number, text in enumerate(asked, start=1):
            chat_id = "D-other" if text == "elsewhere" else None
            await world.says(text, thread=f"t{number}", chat_id=chat_id)
            await card(world, number)
        assert (await world.says("yes")).disposition == "queued"


@pytest.mark.requirement("APR-10")
async def test_what_is_said_in_another_thread_answers_no_question(worlds: Worlds) -> None:
    async with worlds(ScriptedModel([QUESTION, "well"]), change=ASKING) as world:
        await world.says("go", thread="t1")
        await card(world)
        assert (await world.says("and this?", thread="t2")).disposition == "queued"


@pytest.mark.requirement("APR-10")
async def test_plain_words_answer_none_of_two_questions_and_no_other_message(
    worlds: Worlds,
) -> None:
    two = Said(calls=(asks("Which branch?"), asks("Which day?")))
    model = ScriptedModel([two, "on it", "later then"])
    async with worlds(model, change=ASKING) as world:
        asked = await world.says("go")
        second = await card(world, 2)
        assert (await world.says("next")).disposition == "queued"
        await world.says(f"/answer {second.code} Monday")
        # A reply to another message is meant for that one.
        other = await world.says("well", reply_to="m-another")
        assert other.disposition == "queued"
        await reaches(world, asked.run_id, RunState.WAITING_FOR_USER_QUESTION)
        assert (await world.says("main")).disposition == "answer"


@pytest.mark.requirement("APR-10", "MSG-17")
async def test_words_from_before_a_question_do_not_answer_it(worlds: Worlds) -> None:
    model = ScriptedModel([QUESTION, "on it"])
    async with worlds(model, change=ASKING) as world:
        asked = await world.says("go")
        await card(world)
        old = world.engine.parts.clock.now_ms() - 3_600_000
        assert (await world.says("main", sent_ms=old)).disposition == "queued"
        await reaches(world, asked.run_id, RunState.WAITING_FOR_USER_QUESTION)


@pytest.mark.requirement("APR-10")
async def test_plain_words_never_answer_an_approval(worlds: Worlds) -> None:
    note = Note(command=True)
    model = ScriptedModel([Said(calls=(call("a"),)), "done"])
    async with worlds(model, change=both(ASKING, offering(note))) as world:
        asked = await world.says("go")
        await card(world)
        for words in ("yes", "approve", "once", "deny", "no", "ok, session"):
            assert (await world.says(words)).disposition == "queued", words
        await reaches(world, asked.run_id, RunState.WAITING_FOR_APPROVAL)
        posted = world.chat.sent[0].id
        assert (await world.says("yes, approve", reply_to=posted)).disposition == "queued"
        assert note.begun == 0
        assert (await world.says("no, not this", reply_to=posted)).disposition == "answer"
        assert note.begun == 0


@pytest.mark.requirement("APR-6")
async def test_in_a_group_only_the_asker_and_the_owner_answer(worlds: Worlds) -> None:
    access = replace(OPEN, allow_users=frozenset({MEMBER, "U-other"}))
    model = ScriptedModel(script(QUESTION, "on it"))
    change = both(ASKING, intake(access={"test": access}))
    async with worlds(model, change=change) as world:
        accepted = await world.says("go", user=MEMBER, **GROUP)
        part = await card(world)
        assert cards(world)[0][0].target.chat_id == "G1"
        posted = world.chat.sent[0].id
        refused = await world.says("main", user="U-other", reply_to=posted, **GROUP)
        assert refused.disposition == "answer"
        await world.says(f"/answer {part.code} main", user="U-other", **GROUP)
        assert not (await world.presses(part.open_call_id, "main", user="U-other")).accepted
        assert (await world.sees(3, "G1"))[1:] == [
            "Only an approver of this conversation may answer that."
        ] * 2
        assert len(await audited(world, "question.refused")) == 3
        await reaches(world, accepted.run_id, RunState.WAITING_FOR_USER_QUESTION)
        await world.says("next", user=MEMBER, reply_to=posted, **GROUP)
        await world.chat.until(lambda: "on it" in world.chat.texts())
        assert results(model.requests[1])[0].content == "next"


@pytest.mark.requirement("APR-6")
@pytest.mark.parametrize("way", ["button", "reply"])
async def test_a_guest_may_answer_the_question_that_they_were_asked(
    worlds: Worlds, way: str
) -> None:
    model = ScriptedModel([QUESTION, "on it"])
    async with worlds(model, change=ASKING) as world:
        await world.says("go", user=GUEST, **GROUP)
        part = await card(world)
        if way == "button":
            assert (await world.presses(part.open_call_id, "main", user=GUEST)).accepted
        else:
            await world.says("main", user=GUEST, reply_to=world.chat.sent[0].id, **GROUP)
        await world.chat.until(lambda: "on it" in world.chat.texts())
        assert results(model.requests[1])[0].content == "main"


@pytest.mark.requirement("APR-6")
async def test_the_owner_may_answer_for_the_asker(worlds: Worlds) -> None:
    model = ScriptedModel([QUESTION, "on it"])
    async with worlds(model, change=ASKING) as world:
        await world.says("go", user=GUEST, **GROUP)
        assert (await world.presses((await card(world)).open_call_id, "main")).accepted
        await world.chat.until(lambda: "on it" in world.chat.texts())


@pytest.mark.requirement("APR-6")
async def test_an_answer_that_is_delivered_again_is_given_once(worlds: Worlds) -> None:
    second = Said(calls=(asks("And then?"),))
    model = ScriptedModel([QUESTION, second])
    async with worlds(model, change=ASKING) as world:
        await world.says("go")
        await card(world)
        posted = world.chat.sent[0].id
        first = await world.says("main", reply_to=posted, message_id="m-answer")
        assert first.disposition == "answer"
        await card(world, 2)
        again = await world.says("main", reply_to=posted, message_id="m-answer")
        assert again.disposition == "duplicate"
        assert len(model.requests) == 2


@pytest.mark.requirement("APR-6")
async def test_a_question_survives_a_restart(worlds: Worlds) -> None:
    async with worlds(ScriptedModel([QUESTION]), change=ASKING) as before:
        await before.says("go")
        part = await card(before)
    model = ScriptedModel(script("", "on it"))
    async with worlds(model, change=ASKING) as after:
        assert (await after.presses(part.open_call_id, "main")).accepted
        await after.chat.until(lambda: "on it" in after.chat.texts())


@pytest.mark.requirement("APR-6", "APR-5")
async def test_a_question_that_nobody_answers_ends_and_the_run_goes_on(worlds: Worlds) -> None:
    clock = FakeClock()
    model = ScriptedModel([QUESTION, "I guessed"])
    change = both(ASKING, agent(approval_expiry_ms=30_000))
    async with worlds(model, change=lambda s: replace(change(s), clock=clock)) as world:
        await world.says("go")
        await card(world)
        async with asyncio.timeout(120):
            while "I guessed" not in world.chat.texts():
                await clock.advance(2.0)
        assert results(model.requests[1])[0].content == "Nobody answered in time."


@pytest.mark.requirement("MSG-4")
async def test_a_run_with_a_question_takes_no_place(worlds: Worlds) -> None:
    model = ScriptedModel(
        lambda request: QUESTION if request.messages[-1].text == "ask" else "at once"
    )
    async with worlds(model, change=both(ASKING, engine(turns=1))) as world:
        accepted = await world.says("ask")
        await reaches(world, accepted.run_id, RunState.WAITING_FOR_USER_QUESTION)
        await world.says("hello", chat_id="D2")
        await world.chat.until(lambda: bool(world.chat.texts("D2")))
        assert world.chat.texts("D2") == ["at once"]


@pytest.mark.requirement("APR-6", "APR-1")
async def test_a_reply_to_an_approvals_card_is_no_approval(worlds: Worlds) -> None:
    note = Note(command=True)
    async with worlds(ScriptedModel([Said(calls=(call("a"),))]), change=offering(note)) as world:
        accepted = await world.says("go")
        await card(world)
        said = await world.says("yes, allow it", reply_to=world.chat.sent[0].id)
        assert said.disposition == "queued"
        assert await state(world, accepted.run_id) is RunState.WAITING_FOR_APPROVAL
        assert note.begun == 0
