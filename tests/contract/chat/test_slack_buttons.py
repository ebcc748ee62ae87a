"""What people do with a card's buttons and forms in Slack, over a socket and by HTTP."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from runtime.domain.messages import (
    ApprovalPart,
    Button,
    OutboundMessage,
    QuestionPart,
    TextPart,
)
from runtime.ports.gatehouse import Home, HomeItem, Pressed
from tests.contract.chat.slack_support import (
    Desk,
    Door,
    doors,
    reply,
    slack,
)
from tests.wire.slack import ANNA, BEN, GENERAL, Message, SlackServer, buttons_of

__all__ = ["slack"]

APPROVAL = ApprovalPart(
    open_call_id="apr_1",
    code="a1b2c3",
    tool="shell",
    arguments='{"command": "rm -rf /tmp/secret-place"}',
    reason="It deletes files.",
)
QUESTION = QuestionPart(
    open_call_id="que_1",
    code="q1w2e3",
    question="Which branch?",
    options=("main", "a branch whose name is long enough " * 4, "<!channel> *next*"),
)


@pytest_asyncio.fixture(params=["socket", "http"])
async def door(slack: SlackServer, request: pytest.FixtureRequest) -> AsyncIterator[Door]:
    async with doors(slack, request.param) as made:
        yield made


def card(part: ApprovalPart | QuestionPart, thread: str | None = None) -> OutboundMessage:
    return reply(thread=thread).model_copy(update={"parts": (part,)})


async def shown(desk: Desk, part: ApprovalPart | QuestionPart) -> Message:
    """The card, in the thread of a question."""
    asked = await desk.slack.user_says(GENERAL, ANNA, "do it", mention=True)
    await desk.slack.wait_for_quiet()
    receipt = await desk.send(card(part, asked.ts))
    return desk.slack.workspace.channels[GENERAL].messages[receipt.message_ids[-1]]


@pytest.mark.requirement("SLK-4", "APR-1")
@pytest.mark.parametrize("choice", ["once", "session", "deny"])
async def test_a_press_reaches_the_engine_and_only_the_presser_is_answered(
    door: Door, choice: str
) -> None:
    desk = door.desk
    desk.gatehouse.pressed = Pressed(accepted=True, text="Anna <!channel> allowed it.")
    post = await shown(desk, APPROVAL)
    delivery = await desk.slack.user_presses(GENERAL, post.ts, ANNA, f"gatehouse_press:{choice}")
    await desk.slack.wait_for_ack(delivery)
    (press,) = desk.gatehouse.presses
    assert (press.open_call_id, press.choice, press.text) == ("apr_1", choice, "")
    assert (press.channel, press.account, press.chat_id) == ("slack", "T0TEAM", GENERAL)
    assert (press.sender.id, press.sender.name) == (ANNA, "anna")
    (told,) = desk.slack.ephemerals(ANNA)
    assert "allowed it." in told.text
    assert "<!channel>" not in told.text
    assert told.thread_ts == post.thread_ts
    assert desk.slack.ephemerals(BEN) == []


@pytest.mark.requirement("SLK-4", "APR-3")
async def test_a_button_carries_the_call_and_the_choice_and_never_what_it_is_about(
    door: Door,
) -> None:
    post = await shown(door.desk, APPROVAL)
    row = next(block for block in post.blocks if block["type"] == "actions")
    assert "secret-place" not in str(row)
    assert "apr_1 once" in str(row)


@pytest.mark.requirement("SLK-4", "APR-2")
async def test_the_wrong_person_is_refused_in_private_and_the_card_stays(door: Door) -> None:
    desk = door.desk
    desk.gatehouse.pressed = Pressed(accepted=False, text="Only an approver may answer that.")
    post = await shown(desk, APPROVAL)
    delivery = await desk.slack.user_presses(GENERAL, post.ts, BEN, "gatehouse_press:once")
    await desk.slack.wait_for_ack(delivery)
    assert [m.text for m in desk.slack.ephemerals(BEN)] == ["Only an approver may answer that."]
    assert desk.slack.ephemerals(ANNA) == []
    assert buttons_of(post)


@pytest.mark.requirement("SLK-4")
async def test_a_press_on_a_card_that_was_deleted_meanwhile_is_still_answered(door: Door) -> None:
    desk = door.desk
    message = card(APPROVAL)
    receipt = await desk.send(message)
    (ts,) = receipt.message_ids
    delivery = await desk.slack.user_presses(GENERAL, ts, ANNA, "gatehouse_press:deny")
    desk.slack.workspace.channels[GENERAL].messages[ts].deleted = True
    await desk.slack.wait_for_ack(delivery)
    assert len(desk.gatehouse.presses) == 1
    decided = card(APPROVAL.model_copy(update={"outcome": "Anna denied it."}))
    for _ in range(2):
        # The card's change is no error that would be tried for ever: there is nothing to change.
        await desk.adapter.edit(decided, receipt)
    assert desk.slack.posts(GENERAL) == []


@pytest.mark.requirement("SLK-4")
async def test_a_press_after_a_restart_is_taken(slack: SlackServer) -> None:
    async with doors(slack, "socket") as before:
        post = await shown(before.desk, APPROVAL)
    delivery = await slack.user_presses(GENERAL, post.ts, ANNA, "gatehouse_press:once")
    async with doors(slack, "socket") as after:
        await slack.wait_for_ack(delivery)
    assert [p.open_call_id for p in after.desk.gatehouse.presses] == ["apr_1"]


@pytest.mark.requirement("SLK-4")
async def test_a_press_while_the_store_is_away_says_so_and_works_the_next_time(door: Door) -> None:
    desk = door.desk
    post = await shown(desk, APPROVAL)
    desk.gatehouse.break_store()
    first = await desk.slack.user_presses(GENERAL, post.ts, ANNA, "gatehouse_press:once")
    await desk.slack.wait_for_ack(first)
    assert desk.gatehouse.presses == []
    (told,) = desk.slack.ephemerals(ANNA)
    assert "Please do it again" in told.text
    again = await desk.slack.user_presses(GENERAL, post.ts, ANNA, "gatehouse_press:once")
    await desk.slack.wait_for_ack(again)
    assert len(desk.gatehouse.presses) == 1


@pytest.mark.requirement("SLK-4")
async def test_denying_with_a_reason_opens_a_form_and_sends_what_was_written(door: Door) -> None:
    desk = door.desk
    post = await shown(desk, APPROVAL)
    delivery = await desk.slack.user_presses(GENERAL, post.ts, ANNA, "gatehouse_write")
    await desk.slack.wait_for_ack(delivery)
    assert desk.gatehouse.presses == [], "opening the form decides nothing"
    (modal,) = desk.slack.open_modals(ANNA)
    assert modal.body["title"] == {
        "type": "plain_text",
        "text": "Deny with a reason",
        "emoji": False,
    }
    field = {"gatehouse_text": {"gatehouse_text": "  Not on a Friday. "}}
    sent = await desk.slack.user_submits(modal, field)
    assert await desk.slack.modal_answered(modal, sent) == {}
    (press,) = desk.gatehouse.presses
    assert (press.open_call_id, press.choice, press.text) == ("apr_1", "deny", "Not on a Friday.")
    assert press.chat_id == GENERAL
    assert desk.slack.open_modals(ANNA) == []


@pytest.mark.requirement("SLK-4", "APR-6")
async def test_a_question_is_answered_by_an_option_or_in_own_words(door: Door) -> None:
    desk = door.desk
    post = await shown(desk, QUESTION)
    labels = buttons_of(post)
    assert [labels[0], labels[2], labels[3]] == ["main", "<!channel> *next*", "Something else..."]
    assert len(labels[1]) == 75
    for number in range(3):
        name = f"gatehouse_press:{number}"
        await desk.slack.wait_for_ack(await desk.slack.user_presses(GENERAL, post.ts, ANNA, name))
    opened = await desk.slack.user_presses(GENERAL, post.ts, ANNA, "gatehouse_write")
    await desk.slack.wait_for_ack(opened)
    (modal,) = desk.slack.open_modals(ANNA)
    sent = await desk.slack.user_submits(modal, {"gatehouse_text": {"gatehouse_text": "neither"}})
    await desk.slack.modal_answered(modal, sent)
    answers = [(p.choice, p.text) for p in desk.gatehouse.presses]
    assert answers == [*((option, "") for option in QUESTION.options), ("", "neither")]


@pytest.mark.requirement("SLK-4")
async def test_a_form_that_is_refused_keeps_its_words_and_says_why(door: Door) -> None:
    desk = door.desk
    post = await shown(desk, APPROVAL)
    opened = await desk.slack.user_presses(GENERAL, post.ts, BEN, "gatehouse_write")
    await desk.slack.wait_for_ack(opened)
    (modal,) = desk.slack.open_modals(BEN)
    words = {"gatehouse_text": {"gatehouse_text": "no"}}
    desk.gatehouse.pressed = Pressed(accepted=False, text="This was approved already.")
    refused = await desk.slack.user_submits(modal, words)
    told = await desk.slack.modal_answered(modal, refused)
    assert told == {"gatehouse_text": "This was approved already."}
    assert desk.slack.open_modals(BEN) == [modal]
    desk.gatehouse.break_store()
    unkept = await desk.slack.user_submits(modal, words)
    told = await desk.slack.modal_answered(modal, unkept)
    assert "again" in told["gatehouse_text"]


@pytest.mark.requirement("SLK-4")
@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"type": "block_actions"},
        {"type": "block_actions", "actions": [{"action_id": "other_app", "value": "apr_1 once"}]},
        {"type": "block_actions", "user": {"id": ANNA}, "actions": "none"},
        {
            "type": "block_actions",
            "user": {"id": ANNA},
            "channel": {"id": GENERAL},
            "actions": [{"action_id": "gatehouse_press:once", "value": "../../etc once"}],
        },
        {"type": "view_submission", "view": {"callback_id": "gatehouse_form"}},
        {
            "type": "view_submission",
            "user": {"id": ANNA},
            "view": {"callback_id": "gatehouse_form", "private_metadata": '{"call": ["apr_1"]}'},
        },
        {"type": "view_submission", "view": {"callback_id": "another"}},
        {"type": "message_action", "callback_id": "shortcut"},
    ],
)
async def test_what_is_no_press_of_ours_is_acknowledged_and_dropped(
    door: Door, payload: dict[str, object]
) -> None:
    await door.desk.slack.wait_for_ack(await door.desk.slack.dispatch("interactive", payload))
    assert door.desk.gatehouse.presses == []
    assert door.desk.slack.calls_to("chat.postEphemeral") == []


PAUSE = Button(label="Pause x7k2m9", about="sch_01kb0z4k3nfp5s0v1r2q3w4e5t", choice="pause")
CANCEL = PAUSE.model_copy(update={"label": "Cancel x7k2m9", "choice": "cancel"})


@pytest.mark.requirement("SLK-4", "SCH-8")
async def test_a_text_has_buttons_that_say_what_they_are_about(door: Door) -> None:
    desk = door.desk
    asked = await desk.slack.user_says(GENERAL, ANNA, "list them", mention=True)
    await desk.slack.wait_for_quiet()
    text = TextPart(markdown="One of them", buttons=(PAUSE, CANCEL))
    receipt = await desk.send(reply(thread=asked.ts).model_copy(update={"parts": (text,)}))
    ts = receipt.message_ids[-1]
    desk.gatehouse.pressed = Pressed(accepted=True, text="Paused.")
    pressed = await desk.slack.user_presses(GENERAL, ts, ANNA, "gatehouse_press:pause")
    await desk.slack.wait_for_ack(pressed)
    (press,) = desk.gatehouse.presses
    assert (press.open_call_id, press.choice) == (PAUSE.about, "pause")
    assert [one.text for one in desk.slack.ephemerals(ANNA)] == ["Paused."]


@pytest.mark.requirement("SLK-4", "SCH-8")
async def test_the_home_lists_a_persons_own_things_with_their_buttons(door: Door) -> None:
    desk = door.desk
    item = HomeItem(heading="Reminders", text="x7k2m9 <!channel> tea", buttons=(PAUSE, CANCEL))
    desk.gatehouse.shown = Home(known=True, items=(item, item.model_copy(update={"buttons": ()})))
    await desk.slack.wait_for_ack((await desk.slack.user_opens_home(ANNA)).deliveries[0])
    home = desk.slack.home_of(ANNA)
    assert home is not None
    shown = str(home.body["blocks"])
    assert shown.count("Reminders") == 1
    assert shown.count("x7k2m9 <!channel> tea") == 2
    desk.gatehouse.pressed = Pressed(accepted=True, text="Cancelled: tea")
    await desk.slack.wait_for_ack(
        await desk.slack.user_presses_home(ANNA, "gatehouse_press:cancel")
    )
    (press,) = desk.gatehouse.presses
    assert (press.open_call_id, press.choice, press.sender.id) == (PAUSE.about, "cancel", ANNA)
    home = desk.slack.home_of(ANNA)
    assert home is not None
    assert "Cancelled: tea" in str(home.body["blocks"])


@pytest.mark.requirement("SLK-4", "TSK-1")
async def test_what_a_press_on_the_home_answers_is_formatted_and_calls_nobody(door: Door) -> None:
    desk = door.desk
    stop = Button(label="Stop x7k2m9", about="tsk_01kb0z4k3nfp5s0v1r2q3w4e5t", choice="stop")
    output = stop.model_copy(update={"label": "Output of x7k2m9", "choice": "output"})
    item = HomeItem(heading="Tasks", text="x7k2m9 · running\nmake", buttons=(stop, output))
    desk.gatehouse.shown = Home(known=True, items=(item,))
    await desk.slack.wait_for_ack((await desk.slack.user_opens_home(ANNA)).deliveries[0])
    lines = "\n".join(f"<!channel> line {number} &" for number in range(200))
    desk.gatehouse.pressed = Pressed(
        accepted=True, text=f"Task `x7k2m9` has 2 &#42; 3 in it.\n\n```\n{lines}\n```"
    )
    await desk.slack.wait_for_ack(
        await desk.slack.user_presses_home(ANNA, "gatehouse_press:output")
    )
    (press,) = desk.gatehouse.presses
    assert (press.open_call_id, press.choice) == (stop.about, "output")
    home = desk.slack.home_of(ANNA)
    assert home is not None
    shown = str(home.body["blocks"])
    assert "Task `x7k2m9` has 2 * 3 in it." in shown
    assert "<!channel>" not in shown
    assert "line 199" in shown
    assert desk.slack.ephemerals(ANNA) == []


@pytest.mark.requirement("SLK-4")
async def test_a_press_on_the_home_is_answered_there(door: Door) -> None:
    desk = door.desk
    desk.gatehouse.shown = Home(known=True, cards=(APPROVAL, QUESTION))
    await desk.slack.wait_for_ack((await desk.slack.user_opens_home(ANNA)).deliveries[0])
    desk.gatehouse.pressed = Pressed(accepted=True, text="Allowed once.")
    pressed = await desk.slack.user_presses_home(ANNA, "gatehouse_press:once")
    await desk.slack.wait_for_ack(pressed)
    home = desk.slack.home_of(ANNA)
    assert home is not None
    assert "Allowed once." in str(home.body["blocks"])
    (press,) = desk.gatehouse.presses
    assert (press.open_call_id, press.choice, press.sender.id) == ("apr_1", "once", ANNA)


@pytest.mark.requirement("SLK-4", "MSG-12")
async def test_a_button_below_a_text_names_its_message_and_its_number(door: Door) -> None:
    desk = door.desk
    desk.gatehouse.pressed = Pressed(accepted=True, text="")
    buttons = tuple(
        Button(label=f"Stop {number}", command=f"/tasks stop {number}") for number in range(30)
    )
    text = TextPart(markdown="- one: running", names_commands=True, buttons=buttons)
    message = reply().model_copy(update={"parts": (text,)})
    (ts,) = (await desk.send(message)).message_ids
    post = desk.slack.workspace.channels[message.target.chat_id].messages[ts]
    # Slack takes 25 buttons in a row.
    assert len(buttons_of(post)) == 25
    assert "/tasks stop" not in str(post.blocks)
    delivery = await desk.slack.user_presses(post.channel, ts, ANNA, "gatehouse_press:2")
    await desk.slack.wait_for_ack(delivery)
    (press,) = desk.gatehouse.presses
    assert (press.open_call_id, press.choice, press.option) == (message.outbox_id, "2", None)
    assert desk.slack.ephemerals(ANNA) == []
