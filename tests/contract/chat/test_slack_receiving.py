"""What a person says in Slack, and what reaches the engine."""

import pytest

from runtime.domain.messages import InboundMessage
from tests.contract.chat.slack_support import Desk, desk, desk_at, in_every_view, reply, slack
from tests.wire.slack import ANNA, BEN, GENERAL, Delivery, JsonObject, SlackServer, Upload

__all__ = ["desk", "slack"]


@in_every_view
@pytest.mark.requirement("MSG-1", "SLK-2", "SLK-9")
async def test_a_direct_message_is_stored_before_slack_is_acknowledged(desk: Desk) -> None:
    stored_at_ack: list[list[str]] = []

    async def look(_: Delivery) -> None:
        stored_at_ack.append(list(desk.gatehouse.texts))

    desk.slack.on_ack(look)
    async with desk.listening():
        said = await desk.slack.user_says(desk.direct(ANNA), ANNA, "hello")
        await desk.slack.wait_for_quiet()
    # In the agent view, what the person looks at comes behind the message.
    assert stored_at_ack
    assert all(stored == ["hello"] for stored in stored_at_ack)
    (message,) = desk.gatehouse.messages
    assert message.identity == f"slack:T0TEAM:{said.channel}:{said.ts}"
    thread = said.ts if desk.slack.install.experience == "agent" else None
    assert (message.chat_kind, message.thread_id) == ("direct", thread)
    assert (message.sender.id, message.sender.name, message.sender.is_bot) == (ANNA, "anna", False)
    assert message.sent_at_ms == int(float(said.ts) * 1000)


@pytest.mark.requirement("MSG-1")
async def test_while_the_store_is_busy_slack_gets_no_acknowledgement(desk: Desk) -> None:
    desk.gatehouse.gate.clear()
    async with desk.listening():
        said = await desk.slack.user_says(desk.direct(ANNA), ANNA, "hello")
        await desk.gatehouse.until(lambda: len(desk.gatehouse.offered) == 1)
        assert desk.slack.unacked == list(said.deliveries)
        desk.gatehouse.gate.set()
        await desk.slack.wait_for_quiet()
    assert desk.gatehouse.texts == ["hello"]


@pytest.mark.requirement("MSG-1", "MSG-2")
async def test_a_store_that_is_down_makes_slack_deliver_again_and_the_message_counts_once(
    desk: Desk,
) -> None:
    desk.gatehouse.break_store()
    async with desk.listening():
        said = await desk.slack.user_says(desk.direct(ANNA), ANNA, "hello")
        await desk.gatehouse.until(lambda: len(desk.gatehouse.offered) == 1)
        # What follows is acknowledged, so the silence about the first is no accident.
        await desk.slack.user_says(GENERAL, ANNA, "later", mention=True)
        await desk.slack.until(lambda: desk.slack.unacked == list(said.deliveries))
        assert "hello" not in desk.gatehouse.texts
        await desk.slack.redeliver_unacked()
        await desk.slack.wait_for_quiet()
        again = await desk.slack.duplicate(said.deliveries[0])
        await desk.slack.wait_for_ack(again)
    assert sorted(desk.gatehouse.texts) == ["hello", "later"]


@pytest.mark.requirement("MSG-1", "SLK-1")
async def test_an_event_that_meets_a_defect_comes_again_and_the_socket_stays(desk: Desk) -> None:
    desk.gatehouse.fail(ValueError("a defect"))
    async with desk.listening():
        said = await desk.slack.user_says(desk.direct(ANNA), ANNA, "hello")
        await desk.gatehouse.until(lambda: len(desk.gatehouse.offered) == 1)
        await desk.slack.user_says(GENERAL, ANNA, "later", mention=True)
        await desk.slack.until(lambda: desk.slack.unacked == list(said.deliveries))
        assert desk.gatehouse.texts == ["later"]
        assert desk.adapter.status().connected
        assert len(desk.slack.calls_to("apps.connections.open")) == desk.settings.connections
        await desk.slack.redeliver_unacked()
        await desk.slack.wait_for_quiet()
    assert desk.gatehouse.texts == ["later", "hello"]


@pytest.mark.requirement("MSG-1", "SLK-2")
async def test_what_no_store_could_keep_becomes_a_question_mark(desk: Desk) -> None:
    desk.slack.workspace.users[ANNA].name = "an\ud800na"
    async with desk.listening():
        upload = Upload("\ud800a.txt", b"x", "text/plain")
        await desk.slack.user_says(desk.direct(ANNA), ANNA, "lo\udfffok", files=[upload])
        await desk.slack.wait_for_quiet()
    (message,) = desk.gatehouse.messages
    (file,) = message.attachments
    assert (message.text, file.name, message.sender.name) == ("lo?ok", "?a.txt", "an?na")
    message.model_dump_json().encode()


@pytest.mark.requirement("MSG-2", "SLK-2")
@pytest.mark.parametrize("mention_last", [False, True])
async def test_a_mention_that_comes_as_two_events_is_one_input(
    desk: Desk, mention_last: bool
) -> None:
    async with desk.listening():
        said = await desk.slack.user_says(
            GENERAL, ANNA, "what time is it?", mention=True, mention_last=mention_last
        )
        await desk.slack.wait_for_quiet()
    assert len(said.deliveries) == len(desk.gatehouse.offered) == 2
    assert len({offered.identity for offered in desk.gatehouse.offered}) == 1
    (message,) = desk.gatehouse.messages
    assert (message.text, message.mentions_bot) == ("what time is it?", True)
    assert (message.chat_kind, message.thread_id) == ("channel", said.ts)


@pytest.mark.requirement("SLK-2", "SLK-3")
async def test_a_follow_up_in_the_thread_needs_no_mention_and_stays_in_its_session(
    desk: Desk,
) -> None:
    async with desk.listening():
        said = await desk.slack.user_says(GENERAL, ANNA, "and now?", mention=True)
        await desk.slack.wait_for_quiet()
        await desk.send(reply("It is noon.", thread=said.ts))
        await desk.slack.user_says(GENERAL, BEN, "thanks", thread_ts=said.ts)
        message = await heard(desk, "thanks")
    assert (message.mentions_bot, message.replies_to_bot) == (False, True)
    assert (message.thread_id, message.reply_to) == (said.ts, said.ts)
    assert not desk.slack.calls_to("conversations.replies"), "it knew the thread already"


async def test_a_follow_up_may_come_before_the_answer(desk: Desk) -> None:
    async with desk.listening():
        said = await desk.slack.user_says(GENERAL, ANNA, "and now?", mention=True)
        await desk.slack.wait_for_quiet()
        await desk.slack.user_says(GENERAL, ANNA, "in Berlin, I mean", thread_ts=said.ts)
        assert (await heard(desk, "in Berlin, I mean")).replies_to_bot
    assert not desk.slack.calls_to("conversations.replies")


@pytest.mark.requirement("SLK-2", "SLK-3")
async def test_after_a_restart_it_still_knows_its_threads_and_leaves_the_others_alone(
    slack: SlackServer,
) -> None:
    async with desk_at(slack) as before:
        said = await slack.user_says(GENERAL, ANNA, "a talk of people")
        ours = await slack.user_says(GENERAL, ANNA, "a talk with it")
        async with before.listening():
            await before.send(reply("Yes?", thread=ours.ts))
            await slack.wait_for_quiet()
    async with desk_at(slack) as desk, desk.listening():
        for thread in (said, ours, said):
            await slack.user_says(GENERAL, BEN, "go on", thread_ts=thread.ts)
        await slack.wait_for_quiet()
    went_on = [m for m in desk.gatehouse.messages if m.text == "go on"]
    assert [m.replies_to_bot for m in went_on] == [False, True, False]
    assert len(slack.calls_to("conversations.replies")) == 2, "it asks once for each thread"


async def test_a_thread_that_the_bot_began_is_its_own(desk: Desk) -> None:
    async with desk.listening():
        receipt = await desk.send(reply("The build is broken."))
        await desk.slack.user_says(GENERAL, ANNA, "why?", thread_ts=receipt.message_ids[0])
        assert (await heard(desk, "why?")).replies_to_bot
    assert not desk.slack.calls_to("conversations.replies"), "the event says whose thread it is"


async def test_a_thread_that_slack_cannot_show_now_is_not_acknowledged_away(desk: Desk) -> None:
    async with desk.listening():
        said = await desk.slack.user_says(GENERAL, ANNA, "no mention here")
        await desk.slack.wait_for_quiet()
        desk.slack.rate_limit("conversations.replies")
        follow = await desk.slack.user_says(GENERAL, BEN, "for whom?", thread_ts=said.ts)
        await desk.slack.wait_for_call("conversations.replies", lambda c: c.error == "ratelimited")
        assert desk.slack.unacked == list(follow.deliveries)
        # What comes after it in the same channel is taken, so the refusal was heard by then.
        await desk.slack.user_says(GENERAL, ANNA, "next", mention=True)
        await heard(desk, "next")
        desk.clock.advance(1.0)
        await desk.slack.redeliver_unacked()
        await desk.slack.wait_for_quiet()
    assert "for whom?" in desk.gatehouse.texts


@pytest.mark.requirement("SLK-3")
async def test_with_mentions_required_a_thread_is_not_looked_at(slack: SlackServer) -> None:
    async with desk_at(slack, thread_without_mention=False) as desk, desk.listening():
        said = await slack.user_says(GENERAL, ANNA, "hello", mention=True)
        await slack.user_says(GENERAL, BEN, "thanks", thread_ts=said.ts)
        assert not (await heard(desk, "thanks")).replies_to_bot


@in_every_view
@pytest.mark.requirement("SLK-3", "SLK-9")
@pytest.mark.parametrize(
    ("habit", "in_channel", "in_direct"),
    [("always", True, True), ("channel-thread", True, False), ("never", False, False)],
)
async def test_where_the_reply_goes_is_the_operator_s_choice(
    slack: SlackServer, habit: str, in_channel: bool, in_direct: bool
) -> None:
    async with desk_at(slack, reply_in_thread=habit) as desk, desk.listening():
        asked = await slack.user_says(GENERAL, ANNA, "in the channel", mention=True)
        told = await slack.user_says(desk.direct(ANNA), ANNA, "in private")
        inside = await slack.user_says(GENERAL, BEN, "inside", thread_ts=asked.ts, mention=True)
        await slack.wait_for_quiet()
        threads = {m.text: m.thread_id for m in desk.gatehouse.messages}
    assert inside.ts != asked.ts
    assert threads == {
        "in the channel": asked.ts if in_channel else None,
        # In the agent view a direct message is a thread, whatever the operator chose.
        "in private": told.ts if in_direct or slack.install.experience == "agent" else None,
        "inside": asked.ts,
    }


@pytest.mark.requirement("MSG-2", "SLK-2")
async def test_an_edit_of_the_words_is_told_and_a_link_preview_is_not(desk: Desk) -> None:
    async with desk.listening():
        said = await desk.slack.user_says(GENERAL, ANNA, "see example.test", mention=True)
        await desk.slack.slack_unfurls(GENERAL, said.ts)
        await desk.slack.wait_for_quiet()
        assert len(desk.gatehouse.messages) == 1
        offered = len(desk.gatehouse.offered)
        edited = await desk.slack.user_edits(GENERAL, said.ts, "<@U0BOT> see example.org")
        await desk.slack.slack_unfurls(GENERAL, said.ts)
        await desk.slack.duplicate(edited.deliveries[0])
        await desk.slack.wait_for_quiet()
        assert len(desk.gatehouse.offered) == offered, "an edit is no message of its own"
    (first,), (second,) = desk.gatehouse.messages, desk.gatehouse.revisions
    assert (first.text, second.text) == ("see example.test", "see example.org")
    edited_ts = desk.slack.workspace.channels[GENERAL].messages[said.ts].edited_ts
    assert second.edited_at == edited_ts
    assert second.identity == f"{first.identity}:{edited_ts}"
    assert second.address == first.address


@pytest.mark.requirement("SLK-2")
async def test_other_bots_are_marked_as_bots_and_our_own_words_do_not_come_back(
    desk: Desk,
) -> None:
    async with desk.listening():
        await desk.send(reply("my own words"))
        await desk.slack.other_bot_says(GENERAL, "deployed")
        await desk.slack.user_says(GENERAL, ANNA, "nice")
        await desk.slack.wait_for_quiet()
    marks = {m.text: m.sender.is_bot for m in desk.gatehouse.messages}
    assert marks == {"deployed": True, "nice": False}


@pytest.mark.requirement("SLK-7")
async def test_names_of_people_are_readable_and_asked_for_once(desk: Desk) -> None:
    async with desk.listening():
        for _ in range(2):
            await desk.slack.user_says(
                desk.direct(ANNA),
                ANNA,
                f"ask <@{BEN}> &amp; read <https://example.test/a|this> in <#C1|general>",
            )
            await desk.slack.wait_for_quiet()
    said = "ask @ben & read this (https://example.test/a) in #general"
    assert desk.gatehouse.texts == [said, said]
    assert len(desk.slack.calls_to("users.info")) == 2


@pytest.mark.requirement("SCH-8")
async def test_the_zone_of_a_persons_profile_comes_with_their_name(desk: Desk) -> None:
    desk.slack.workspace.users[ANNA].timezone = "Asia/Tokyo"
    async with desk.listening():
        for _ in range(2):
            await desk.slack.user_says(desk.direct(ANNA), ANNA, "hello")
            await desk.slack.wait_for_quiet()
    assert [m.sender.timezone for m in desk.gatehouse.messages] == ["Asia/Tokyo"] * 2
    assert len(desk.slack.calls_to("users.info")) == 1


@pytest.mark.requirement("SCH-8")
async def test_a_profile_that_cannot_be_read_holds_up_no_message(desk: Desk) -> None:
    desk.slack.fail("users.info", "user_not_visible")
    async with desk.listening():
        await desk.slack.user_says(desk.direct(ANNA), ANNA, "hello")
        await desk.slack.wait_for_quiet()
    assert [m.sender.timezone for m in desk.gatehouse.messages] == [""]


@pytest.mark.requirement("SLK-7")
async def test_without_its_name_a_person_is_still_heard(desk: Desk) -> None:
    desk.slack.fail("users.info", "user_not_visible")
    async with desk.listening():
        await desk.slack.user_says(desk.direct(ANNA), ANNA, "hello")
        await desk.slack.wait_for_quiet()
    assert [m.sender.id for m in desk.gatehouse.messages] == [ANNA]


@pytest.mark.requirement("SLK-2")
async def test_joins_deletions_reactions_and_what_nobody_knows_are_acknowledged_and_dropped(
    desk: Desk,
) -> None:
    async with desk.listening():
        said = await desk.slack.user_says(GENERAL, ANNA, "hello", mention=True)
        await desk.slack.user_joins(GENERAL, desk.slack.workspace.add_user("carla"))
        await desk.slack.user_deletes(GENERAL, said.ts)
        strange: list[JsonObject] = [{}, {"event": []}, {"event": {"type": "message"}}]
        for payload in strange:
            await desk.slack.dispatch("events_api", payload)
        await desk.slack.dispatch("interactive", {"type": "something_new"})
        await desk.slack.dispatch("slash_commands", {"command": "/gatehouse"})
        await desk.slack.wait_for_quiet()
    assert desk.gatehouse.texts == ["hello"]


@pytest.mark.requirement("MSG-12")
async def test_a_slash_command_is_a_command_and_is_answered_with_nothing(desk: Desk) -> None:
    async with desk.listening():
        delivery = await desk.slack.user_commands(GENERAL, ANNA, "approve a1b2c3")
        bare = await desk.slack.user_commands(GENERAL, ANNA)
        await desk.slack.wait_for_quiet()
    assert desk.gatehouse.texts == ["/approve a1b2c3", "/help"]
    first = desk.gatehouse.messages[0]
    assert (first.message_id, first.sender.id) == (delivery.payload["trigger_id"], ANNA)
    assert first.mentions_bot
    assert (delivery.response, bare.response) == (None, None)


@pytest.mark.requirement("MSG-12")
async def test_a_command_with_an_exclamation_mark_arrives_as_it_was_typed(desk: Desk) -> None:
    async with desk.listening():
        await desk.slack.user_says(GENERAL, ANNA, "!help", mention=True)
        assert (await heard(desk, "!help")).mentions_bot


@pytest.mark.requirement("SLK-2", "MSG-19")
async def test_a_file_comes_with_what_is_needed_to_fetch_it(desk: Desk) -> None:
    async with desk.listening():
        await desk.slack.user_says(
            desk.direct(ANNA), ANNA, "read this", files=[Upload("notes.txt", b"12345")]
        )
        message = await heard(desk, "read this")
    (attached,) = message.attachments
    assert (attached.name, attached.media_type, attached.size_bytes) == (
        "notes.txt",
        "text/plain",
        5,
    )
    assert attached.reference.startswith(desk.slack.base_url)


async def test_messages_of_one_chat_keep_their_order_while_names_are_looked_up(
    desk: Desk,
) -> None:
    gate = desk.slack.hold("users.info")
    async with desk.listening():
        await desk.slack.user_says(desk.direct(ANNA), ANNA, "first")
        await gate.entered.wait()
        await desk.slack.user_says(desk.direct(ANNA), ANNA, "second")
        await desk.slack.user_says(GENERAL, BEN, "elsewhere", mention=True)
        await desk.gatehouse.wait_for(1)
        assert desk.gatehouse.texts == ["elsewhere"]
        gate.release()
        await desk.slack.wait_for_quiet()
    assert desk.gatehouse.texts == ["elsewhere", "first", "second"]


async def heard(desk: Desk, text: str) -> InboundMessage:
    await desk.gatehouse.until(lambda: text in desk.gatehouse.texts)
    return next(m for m in desk.gatehouse.messages if m.text == text)
