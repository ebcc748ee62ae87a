"""The agent view, the assistant view and neither, told apart by the events that arrive (SLK-9)."""

from contextlib import AsyncExitStack

import pytest
from pydantic import JsonValue

from adapters.slack.event_intake import OPENED_S
from adapters.slack.experience import Viewed, description_of, viewed_in
from runtime.domain.messages import InboundMessage, OutboundMessage, TextPart
from runtime.domain.people import Sender
from runtime.sessions.keys import session_key
from tests.contract.chat.slack_support import Desk, desk_at, doors, installed, installed_as, reply
from tests.wire.slack import ANNA, GENERAL, Install, Said, SlackServer

pytestmark = pytest.mark.requirement("SLK-9")


def agent() -> Install:
    return installed("agent")


def plain() -> Install:
    """An application that was installed before either experience."""
    return installed_as("none")


def key_of(message: InboundMessage) -> str:
    return session_key(message.address, Sender(id=message.sender.id), scope="thread")


async def heard(desk: Desk, text: str, said: Said) -> InboundMessage:
    """What the engine was given of this message."""
    await desk.slack.wait_for_quiet()
    (message,) = (m for m in desk.gatehouse.messages if m.message_id == said.ts)
    assert message.text == text
    return message


async def test_in_the_agent_view_each_root_message_is_a_thread_and_a_session_of_its_own() -> None:
    async with SlackServer(agent()).running() as slack, desk_at(slack) as desk, desk.listening():
        direct = desk.direct(ANNA)
        one = await slack.user_says(direct, ANNA, "one")
        two = await slack.user_says(direct, ANNA, "two")
        more = await slack.user_says(direct, ANNA, "more", thread_ts=one.ts)
        first, second = await heard(desk, "one", one), await heard(desk, "two", two)
        third = await heard(desk, "more", more)
        assert (first.thread_id, second.thread_id) == (one.ts, two.ts)
        assert third.thread_id == one.ts
        assert key_of(first) == key_of(third) != key_of(second)
        for thread in (one.ts, two.ts):
            target = reply(chat=direct, thread=thread, kind="direct").target
            await desk.adapter.typing(target, "thinking")
        shown = [c.arguments["thread_ts"] for c in slack.calls_to("assistant.threads.setStatus")]
        assert shown == [one.ts, two.ts]
        titles = [
            slack.workspace.channels[direct].messages[s.ts].assistant_title for s in (one, two)
        ]
        assert titles == ["one", "two"]


async def test_without_either_experience_a_reply_in_a_thread_goes_on_with_the_direct_chat() -> None:
    async with SlackServer(plain()).running() as slack, desk_at(slack) as desk, desk.listening():
        direct = desk.direct(ANNA)
        said = await slack.user_says(direct, ANNA, "remember 42")
        answer = await desk.send(reply("Done.", chat=direct, kind="direct"))
        asked = await slack.user_says(direct, ANNA, "what number?", thread_ts=answer.message_ids[0])
        first, second = (
            await heard(desk, "remember 42", said),
            await heard(desk, "what number?", asked),
        )
        assert first.thread_id is None
        assert second.thread_id == answer.message_ids[0], "the answer goes into that thread"
        assert key_of(first) == key_of(second)
        assert not slack.calls_to("assistant.threads.setTitle")


@pytest.mark.parametrize("restarted", [False, True])
async def test_a_thread_of_the_assistant_view_has_its_own_session_also_after_a_restart(
    restarted: bool,
) -> None:
    async with SlackServer(installed("assistant")).running() as slack:
        async with desk_at(slack) as desk, desk.listening():
            thread = await slack.user_opens_assistant(ANNA)
            await slack.wait_for_quiet()
            if not restarted:
                said = await slack.user_says(thread.channel, ANNA, "hi", thread_ts=thread.ts)
                message = await heard(desk, "hi", said)
        if restarted:
            async with desk_at(slack) as desk, desk.listening():
                said = await slack.user_says(thread.channel, ANNA, "hi", thread_ts=thread.ts)
                message = await heard(desk, "hi", said)
        assert (message.thread_id, message.joins_chat) == (thread.ts, False)


async def test_an_app_that_is_switched_while_the_gateway_runs_gets_threads_at_once() -> None:
    async with SlackServer(installed("assistant")).running() as slack:
        async with desk_at(slack) as desk, desk.listening():
            thread = await slack.user_opens_assistant(ANNA)
            before = await slack.user_says(thread.channel, ANNA, "old", thread_ts=thread.ts)
            await slack.wait_for_quiet()
            slack.switch(agent())
            root = await slack.user_says(thread.channel, ANNA, "new")
            late = await slack.user_says(thread.channel, ANNA, "later", thread_ts=thread.ts)
            old, new = await heard(desk, "old", before), await heard(desk, "new", root)
            later = await heard(desk, "later", late)
        assert new.thread_id == root.ts
        assert key_of(later) == key_of(old) != key_of(new), "an old thread keeps its memory"


async def test_prompts_stand_at_the_top_of_the_chat_and_the_app_home_stays() -> None:
    async with SlackServer(agent()).running() as slack, desk_at(slack) as desk, desk.listening():
        direct = desk.direct(ANNA)
        await slack.user_opens_home(ANNA, "messages")
        await slack.wait_for_quiet()
        (prompts,) = slack.workspace.prompts.items()
        assert prompts[0] == (direct, "")
        assert not slack.calls_to("views.publish")
        await slack.user_opens_home(ANNA, "home")
        await slack.wait_for_quiet()
        assert len(slack.calls_to("views.publish")) == 1
        assert len(slack.calls_to("assistant.threads.setSuggestedPrompts")) == 1


async def test_a_messages_tab_of_an_app_without_the_agent_view_gets_no_prompts() -> None:
    async with SlackServer(plain()).running() as slack, desk_at(slack) as desk, desk.listening():
        await slack.user_opens_home(ANNA, "messages")
        await slack.wait_for_quiet()
        assert not slack.calls_to("assistant.threads.setSuggestedPrompts")


@pytest.mark.parametrize(
    ("tab", "method"),
    [("home", "views.publish"), ("messages", "assistant.threads.setSuggestedPrompts")],
)
async def test_ten_openings_in_a_second_cost_one_call_and_a_later_one_another(
    tab: str, method: str
) -> None:
    async with SlackServer(agent()).running() as slack, desk_at(slack) as desk, desk.listening():
        for _ in range(10):
            await slack.user_opens_home(ANNA, tab)
        await slack.wait_for_quiet()
        assert len(slack.calls_to(method)) == 1
        desk.clock.advance(OPENED_S)
        await slack.user_opens_home(ANNA, tab)
        await slack.wait_for_quiet()
        assert len(slack.calls_to(method)) == 2


async def test_an_opening_that_could_not_be_shown_counts_for_nothing() -> None:
    async with SlackServer(agent()).running() as slack, desk_at(slack) as desk, desk.listening():
        desk.gatehouse.break_store()
        await slack.user_opens_home(ANNA)
        await desk.gatehouse.until(lambda: not desk.gatehouse.is_broken)
        await slack.redeliver_unacked()
        await slack.wait_for_quiet()
        assert len(slack.calls_to("views.publish")) == 1


async def test_slacks_own_stop_is_the_stop_of_whoever_pressed_it_in_that_thread() -> None:
    async with SlackServer(agent()).running() as slack, desk_at(slack) as desk, desk.listening():
        direct = desk.direct(ANNA)
        root = await slack.user_says(direct, ANNA, "work")
        pressed = await slack.user_stops(direct, ANNA, root.ts)
        await slack.duplicate(pressed.deliveries[0])
        await slack.wait_for_quiet()
        asked, stop = desk.gatehouse.messages
        assert (stop.text, stop.sender.id) == ("/stop", ANNA)
        assert key_of(stop) == key_of(asked)
        ended = slack.calls_to("agents.sessions.setStatus")
        assert {(c.arguments["thread_ts"], c.arguments["status"]) for c in ended} == {
            (root.ts, "active")
        }


async def test_what_a_person_looks_at_comes_with_the_message_of_that_thread_once() -> None:
    async with SlackServer(agent()).running() as slack, desk_at(slack) as desk, desk.listening():
        direct = desk.direct(ANNA)
        await slack.user_looks_at(ANNA, GENERAL)
        one = await slack.user_says(direct, ANNA, "one")
        again = await slack.user_says(direct, ANNA, "again", thread_ts=one.ts)
        two = await slack.user_says(direct, ANNA, "two")
        await slack.user_looks_at(ANNA)
        three = await slack.user_says(direct, ANNA, "three")
        seen = f"channel #general ({GENERAL})"
        assert (await heard(desk, "one", one)).viewing == seen
        assert (await heard(desk, "again", again)).viewing == "", "its thread was told"
        assert (await heard(desk, "two", two)).viewing == seen, "another thread knows nothing"
        assert (await heard(desk, "three", three)).viewing == ""


async def test_the_name_of_a_private_channel_is_not_told_only_because_it_is_named() -> None:
    async with SlackServer(agent()).running() as slack, desk_at(slack) as desk, desk.listening():
        secret = slack.workspace.add_channel("merger", members=(), private=True)
        await slack.user_looks_at(ANNA, secret)
        said = await slack.user_says(desk.direct(ANNA), ANNA, "hello")
        viewing = (await heard(desk, "hello", said)).viewing
        assert viewing == f"channel {secret}"


async def test_a_context_of_a_megabyte_is_cut_and_says_no_line_of_its_own() -> None:
    async with SlackServer(agent()).running() as slack, desk_at(slack) as desk, desk.listening():
        entity = {"type": "slack#/types/channel_id", "value": "x\n" * 2_000}
        await slack.user_looks_at(ANNA, entities=[entity] * 200)
        said = await slack.user_says(desk.direct(ANNA), ANNA, "hello")
        viewing = (await heard(desk, "hello", said)).viewing
        assert len(viewing) <= 600
        assert len(viewing.splitlines()) == 5


@pytest.mark.parametrize(
    ("context", "viewed"),
    [
        ({}, ()),
        ({"entities": None}, ()),
        ({"entities": ["C1", 3, {}]}, ()),
        (
            {"entities": [{"type": "slack#/types/canvas_id", "value": "F1"}]},
            (Viewed("canvas", "F1"),),
        ),
        ({"entities": [{"type": "new", "value": "X1"}]}, (Viewed("item", "X1"),)),
        ({"entities": [{"type": "slack#/types/message_context", "value": None}]}, ()),
        (
            {
                "entities": [
                    {
                        "type": "slack#/types/message_context",
                        "value": {"channel_id": "C1", "message_ts": "1.2"},
                    }
                ]
            },
            (Viewed("message", "C1", "1.2"),),
        ),
    ],
)
def test_a_context_of_any_shape_is_read(
    context: dict[str, JsonValue], viewed: tuple[Viewed, ...]
) -> None:
    assert viewed_in({"type": "message", "app_context": context}) == viewed
    assert description_of(viewed, {}).count("\n") == max(0, len(viewed) - 1)


@pytest.mark.parametrize("install", [agent(), installed("assistant"), plain()])
async def test_a_slash_command_in_the_direct_chat_is_the_chats_and_is_answered_there(
    install: Install,
) -> None:
    async with SlackServer(install).running() as slack, desk_at(slack) as desk, desk.listening():
        direct = desk.direct(ANNA)
        await slack.user_says(direct, ANNA, "hello")
        await slack.wait_for_quiet()
        await slack.wait_for_ack(await slack.user_commands(direct, ANNA, "status"))
        command = desk.gatehouse.messages[-1]
        assert (command.text, command.thread_id) == ("/status", None)
        told = OutboundMessage(
            outbox_id="out_1", target=command.address, parts=(TextPart(markdown="Fine."),)
        )
        await desk.send(told)
        assert [post.visible_text for post in slack.posts(direct)] == ["Fine."]


async def test_prompts_that_slack_refuses_change_nothing_else() -> None:
    async with SlackServer(agent()).running() as slack, desk_at(slack) as desk, desk.listening():
        slack.fail("assistant.threads.setSuggestedPrompts", "internal_error", times=9)
        opened = await slack.user_opens_home(ANNA, "messages")
        await slack.wait_for_quiet()
        assert opened.deliveries[0] not in slack.unacked
        root = await slack.user_says(desk.direct(ANNA), ANNA, "hello")
        assert (await heard(desk, "hello", root)).thread_id == root.ts
        assert desk.adapter.status().kind == "agent view"


async def test_one_gateway_serves_an_app_of_each_view_at_the_same_time() -> None:
    installs = {"agent": agent(), "assistant": installed("assistant"), "none": plain()}
    places = {}
    async with AsyncExitStack() as stack:
        for name, install in installs.items():
            slack = await stack.enter_async_context(SlackServer(install).running())
            desk = await stack.enter_async_context(desk_at(slack))
            await stack.enter_async_context(desk.listening())
            places[name] = desk
        for name, desk in places.items():
            root = await desk.slack.user_says(desk.direct(ANNA), ANNA, "hello")
            message = await heard(desk, "hello", root)
            assert message.thread_id == (root.ts if name == "agent" else None)
        await places["assistant"].slack.user_opens_assistant(ANNA)
        await places["assistant"].slack.wait_for_quiet()
    kinds = {name: desk.adapter.status().kind for name, desk in places.items()}
    assert kinds == {"agent": "agent view", "assistant": "assistant view", "none": ""}


@pytest.mark.parametrize("by", ["socket", "http"])
async def test_a_context_of_more_than_a_megabyte_costs_that_message_nothing_else(by: str) -> None:
    """By HTTP its request is refused whole, for its size; the next message is heard as ever."""
    async with SlackServer(agent()).running() as slack, doors(slack, by) as door:
        desk, direct = door.desk, door.desk.direct(ANNA)
        entity = {"type": "slack#/types/canvas_id", "value": "</untrusted>\n" * 100_000}
        await slack.user_looks_at(ANNA, entities=[entity])
        large = await slack.user_says(direct, ANNA, "large")
        await slack.user_looks_at(ANNA)
        small = await slack.user_says(direct, ANNA, "small")
        await desk.gatehouse.until(lambda: "small" in desk.gatehouse.texts)
        by_text = {m.text: m for m in desk.gatehouse.messages}
        assert (by_text["small"].thread_id, by_text["small"].viewing) == (small.ts, "")
        if by == "socket":
            assert by_text["large"].thread_id == large.ts
            assert len(by_text["large"].viewing) < 200
            assert "\n" not in by_text["large"].viewing
