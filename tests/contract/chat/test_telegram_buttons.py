"""A person presses a button of a card, or a changed client pretends to."""

import copy

import pytest

from runtime.domain.messages import ApprovalPart, Button, QuestionPart, TextPart
from runtime.ports.gatehouse import Pressed
from tests.contract.chat.telegram_support import ACCOUNT, Desk, desk, to
from tests.wire.telegram import Message

__all__ = ["desk"]

APPROVAL = "apr_01jd8w2k3m4n5p6q7r8s9t0v1w"
QUESTION = "que_01jd8w2k3m4n5p6q7r8s9t0v1w"
LONG_OPTION = "the one with the very long name that no phone shows in one line " * 3
LABELS = ["Allow once", "Allow for this session", "Deny"]


def approval(**more: object) -> ApprovalPart:
    return ApprovalPart(
        open_call_id=APPROVAL, code="8s9t0v", tool="exec", arguments="make deploy", reason=""
    ).model_copy(update=more)


async def card(desk: Desk, **more: object) -> Message:
    """The card as Ann sees it."""
    await desk.send(to(desk.chat, approval(**more)))
    return desk.server.from_bot(desk.chat)[-1]


def labels(message: Message) -> list[str]:
    return [str(button["text"]) for button in message.buttons]


@pytest.mark.requirement("TEL-3", "APR-1")
async def test_a_pressed_button_reaches_the_engine_and_only_the_presser_is_told(
    desk: Desk,
) -> None:
    desk.gatehouse.pressed = Pressed(accepted=True, text="Allowed by Ann.")
    async with desk.listening():
        shown = await card(desk)
        assert labels(shown) == LABELS
        press = desk.server.user_presses(shown, "Allow for this session")
        await desk.until(lambda: press.answer is not None)
    (pressed,) = desk.gatehouse.presses
    assert (pressed.open_call_id, pressed.choice) == (APPROVAL, "session")
    assert (pressed.channel, pressed.account) == ("telegram", ACCOUNT)
    assert (pressed.chat_id, pressed.sender.id) == (str(desk.chat.id), str(desk.ann.id))
    assert pressed.press_id == press.query_id
    assert press.answer == {"text": "Allowed by Ann.", "show_alert": False}
    assert desk.server.from_bot(desk.chat) == [shown], "nothing is said aloud"


@pytest.mark.requirement("TEL-3", "SCH-8")
async def test_a_text_has_its_buttons_in_rows_and_each_says_what_it_is_about(desk: Desk) -> None:
    one, other = "sch_01kb0z4k3nfp5s0v1r2q3w4e5t", "sch_01kb0z4k3nfp5s0v1r2q3w4e5u"
    choices = ("pause", "cancel", "resume", "snooze", "snoozelong")
    buttons = [Button(label=f"{choice} it", about=one, choice=choice) for choice in choices]
    last = Button(label="Pause the other", about=other, choice="pause")
    text = TextPart(markdown="Two of them", buttons=(*buttons, last))
    async with desk.listening():
        await desk.send(to(desk.chat, text))
        shown = desk.server.from_bot(desk.chat)[-1]
        assert labels(shown) == [one.label for one in text.buttons]
        for number, choice in enumerate(choices, start=1):
            press = desk.server.user_presses(shown, f"{choice} it")
            await desk.until(lambda press=press: press.answer is not None)
            assert len(desk.gatehouse.presses) == number
            pressed = desk.gatehouse.presses[-1]
            assert (pressed.open_call_id, pressed.choice) == (one, choice)


@pytest.mark.requirement("TEL-3")
async def test_only_the_choices_that_the_card_offers_have_buttons(desk: Desk) -> None:
    shown = await card(desk, choices=("once", "deny"))
    assert labels(shown) == ["Allow once", "Deny"]


@pytest.mark.requirement("TEL-3", "ACC-1")
async def test_a_card_that_lets_somebody_in_says_so_on_its_buttons(desk: Desk) -> None:
    pairing = {"open_call_id": "pair_QZX7", "code": "QZX7", "choices": ("approve", "deny")}
    async with desk.listening():
        shown = await card(desk, **pairing)
        assert labels(shown) == ["Approve", "Deny"]
        assert "Press a button, or send /approve QZX7, or /deny QZX7." in shown.text
        assert "once" not in shown.text
        press = desk.server.user_presses(shown, "Approve")
        await desk.until(lambda: press.answer is not None)
    (pressed,) = desk.gatehouse.presses
    assert (pressed.open_call_id, pressed.choice) == ("pair_QZX7", "approve")


@pytest.mark.requirement("TEL-3", "APR-6")
async def test_an_option_of_a_question_is_pressed_by_its_number(desk: Desk) -> None:
    question = QuestionPart(
        open_call_id=QUESTION, code="8s9t0v", question="Which?", options=("blue", LONG_OPTION)
    )
    async with desk.listening():
        await desk.send(to(desk.chat, question))
        (shown,) = desk.server.from_bot(desk.chat)
        first, second = labels(shown)
        assert (first, len(second) < 50) == ("1. blue", True)
        assert LONG_OPTION.strip() in shown.text, "all of it can be read"
        press = desk.server.user_presses(shown, second)
        await desk.until(lambda: press.answer is not None)
    (pressed,) = desk.gatehouse.presses
    assert (pressed.open_call_id, pressed.choice, pressed.option) == (QUESTION, "", 2)


@pytest.mark.requirement("TEL-3")
async def test_a_refused_press_is_an_alert_for_the_presser(desk: Desk) -> None:
    group = desk.server.world.supergroup("Team", desk.ann)
    mallory = desk.server.world.user("Mallory")
    desk.gatehouse.pressed = Pressed(accepted=False, text="Only an approver may. " * 20)
    async with desk.listening():
        await desk.send(to(group, approval()))
        (shown,) = desk.server.from_bot(group)
        press = desk.server.user_presses(shown, "Allow once", mallory)
        await desk.until(lambda: press.answer is not None)
    assert [one.sender.name for one in desk.gatehouse.presses] == ["Mallory"]
    assert press.answer is not None
    assert press.answer["show_alert"] is True
    assert len(str(press.answer["text"])) == 200, "Telegram takes no more"
    assert len(desk.server.from_bot(group)) == 1


@pytest.mark.requirement("TEL-3")
@pytest.mark.parametrize("change", ["choice", "card", "mark", "shape", "empty", "other bot's"])
async def test_forged_callback_data_is_refused_and_never_reaches_the_engine(
    desk: Desk, change: str
) -> None:
    async with desk.listening():
        shown = await card(desk)
        data = str(shown.buttons[2]["callback_data"])
        call, choice, mark = data.split(":")
        forged = {
            "choice": f"{call}:o:{mark}",
            "card": f"{call[:-1]}x:{choice}:{mark}",
            "mark": f"{call}:{choice}:{mark[::-1]}",
            "shape": "approve everything",
            "empty": "",
            "other bot's": f"{call}:{choice}:AAAAAAAAAAAAAAAA",
        }[change]
        press = desk.server.user_forges(shown, forged)
        await desk.until(lambda: press.answer is not None)
    assert desk.gatehouse.presses == []
    assert press.answer is not None
    assert press.answer["show_alert"] is True
    assert "do not know this button" in str(press.answer["text"])


@pytest.mark.requirement("TEL-3", "APR-4")
async def test_a_card_from_before_a_restart_still_works(desk: Desk) -> None:
    shown = await card(desk)
    await desk.adapter.close()
    desk.adapter = desk.another_adapter()
    async with desk.listening():
        press = desk.server.user_presses(shown, "Deny")
        await desk.until(lambda: press.answer is not None)
    assert [one.choice for one in desk.gatehouse.presses] == ["deny"]


@pytest.mark.requirement("TEL-3")
async def test_a_press_on_a_deleted_card_and_one_too_old_to_answer_are_heard(desk: Desk) -> None:
    async with desk.listening():
        shown = await card(desk)
        shown.deleted = True
        old = desk.server.user_presses(shown, "Deny")
        old.expired = True
        await desk.gatehouse.until(lambda: len(desk.gatehouse.presses) == 1)
        again = desk.server.user_presses(shown, "Deny")
        await desk.until(lambda: again.answer is not None)
    assert old.answer is None
    assert {one.chat_id for one in desk.gatehouse.presses} == {str(desk.chat.id)}


@pytest.mark.requirement("TEL-3", "APR-4")
async def test_a_decided_card_loses_its_buttons_and_one_that_is_gone_is_left_alone(
    desk: Desk,
) -> None:
    message = to(desk.chat, approval())
    receipt = await desk.send(message)
    (shown,) = desk.server.from_bot(desk.chat)
    seen = copy.copy(shown)
    decided = to(desk.chat, approval(outcome="Denied by **Ann** [x](https://evil.example)."))
    await desk.adapter.edit(decided, receipt)
    assert shown.buttons == []
    # A name is not Markdown: nobody gets a link into a card by being called so.
    assert shown.text.endswith("Denied by **Ann** [x](https://evil.example).")
    assert "text_link" not in {entity.type for entity in shown.content.entities}
    shown.deleted = True
    await desk.adapter.edit(decided, receipt)
    async with desk.listening():
        press = desk.server.user_presses(seen, "Allow once")
        await desk.until(lambda: press.answer is not None)
    assert len(desk.gatehouse.presses) == 1


@pytest.mark.requirement("MSG-1", "TEL-3")
async def test_while_the_store_is_down_a_press_comes_again(desk: Desk) -> None:
    async with desk.listening():
        shown = await card(desk)
        desk.gatehouse.break_store()
        press = desk.server.user_presses(shown, "Deny")
        await desk.clock.until_naps(1)
        assert press.answer is None
        await desk.clock.advance(1)
        await desk.until(lambda: press.answer is not None)
    assert len(desk.gatehouse.presses) == 1


async def test_a_press_whose_answer_fails_holds_nothing_back(desk: Desk) -> None:
    desk.server.rate_limit("answerCallbackQuery", retry_after=30)
    async with desk.listening():
        shown = await card(desk)
        desk.server.user_presses(shown, "Deny")
        desk.server.user_says(desk.chat, desk.ann, "and now?")
        await desk.hears(1)
    assert len(desk.gatehouse.presses) == 1


@pytest.mark.requirement("TEL-3", "MSG-12")
async def test_a_button_below_a_text_names_its_message_and_its_number(desk: Desk) -> None:
    desk.gatehouse.pressed = Pressed(accepted=True, text="")
    buttons = tuple(Button(label=f"Stop {one}", command=f"/tasks stop {one}") for one in "abc")
    text = TextPart(markdown="word " * 1_000, names_commands=True, buttons=buttons)
    message = to(desk.chat, text).model_copy(update={"outbox_id": "out_01jd8w2k3m4n5p6q7r8s9t0v1w"})
    async with desk.listening():
        await desk.send(message)
        *first, last = desk.server.from_bot(desk.chat)
        assert [labels(one) for one in first] == [[]]
        assert labels(last) == ["Stop a", "Stop b", "Stop c"]
        press = desk.server.user_presses(last, "Stop b")
        await desk.until(lambda: press.answer is not None)
    (pressed,) = desk.gatehouse.presses
    assert (pressed.open_call_id, pressed.choice, pressed.option) == (message.outbox_id, "", 2)
    assert press.answer == {"text": "", "show_alert": False}
