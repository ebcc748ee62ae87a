"""What happens to groups: the bot is added and removed, topics come and go, a group moves."""

import pytest

from runtime.domain.messages import Move
from tests.contract.chat.telegram_support import ACCOUNT, Desk, desk, to
from tests.wire.telegram import Chat

__all__ = ["desk"]


def moved(group: Chat, supergroup: Chat) -> Move:
    return Move(
        channel="telegram",
        account=ACCOUNT,
        old_chat_id=str(group.id),
        new_chat_id=str(supergroup.id),
    )


@pytest.mark.requirement("TEL-2")
async def test_added_to_a_group_the_bot_greets_once_and_names_the_group(desk: Desk) -> None:
    group = desk.server.world.supergroup("Team", desk.ann, bot_status="left")
    async with desk.listening():
        desk.server.user_joins(group, desk.server.bot, by=desk.ann)
        await desk.server.wait_for_message(lambda m: m.chat is group)
        desk.server.user_leaves(group, desk.server.bot, by=desk.ann)
        desk.server.user_joins(group, desk.server.bot, by=desk.ann)
        desk.server.user_says(desk.chat, desk.ann, "the end")
        await desk.hears(1)
    (greeting,) = desk.shown(group)
    assert "@gatehouse_bot" in greeting
    assert str(group.id) in greeting, "the owner needs it for the allowlist"


@pytest.mark.requirement("TEL-2")
async def test_the_greeting_can_be_switched_off_and_never_holds_a_message_back(
    desk: Desk,
) -> None:
    group = desk.server.world.supergroup("Team", desk.ann, bot_status="left")
    desk.server.fail("sendMessage", 400, "Bad Request: not enough rights to send text messages")
    async with desk.listening():
        desk.server.user_joins(group, desk.server.bot, by=desk.ann)
        desk.server.user_says(desk.chat, desk.ann, "hello")
        await desk.hears(1)
    await desk.adapter.close()
    desk.adapter = desk.another_adapter(greeting=False)
    async with desk.listening():
        desk.server.user_leaves(group, desk.server.bot, by=desk.ann)
        desk.server.user_joins(group, desk.server.bot, by=desk.ann)
        desk.server.user_says(desk.chat, desk.ann, "the end")
        await desk.hears(2)
    assert desk.shown(group) == []


@pytest.mark.requirement("TEL-2")
async def test_who_blocks_the_bot_or_makes_it_an_administrator_gets_no_greeting(
    desk: Desk,
) -> None:
    group = desk.server.world.supergroup("Team", desk.ann)
    async with desk.listening():
        desk.server.user_blocks(desk.server.world.user("Ben"))
        desk.server.user_promotes(group, desk.server.bot, by=desk.ann)
        desk.server.user_says(desk.chat, desk.ann, "the end")
        await desk.hears(1)
    assert desk.shown(group) == []


@pytest.mark.requirement("TEL-2", "TEL-6")
async def test_a_group_that_becomes_a_supergroup_is_moved(desk: Desk) -> None:
    group = desk.server.world.group("Team", desk.ann)
    desk.gatehouse.break_store()
    async with desk.listening():
        supergroup = desk.server.migrate(group)
        await desk.clock.until_naps(1)
        await desk.clock.advance(1)
        await desk.gatehouse.until(lambda: len(desk.gatehouse.moves) == 2)
        await desk.until(lambda: not desk.server.queue.pending)
    # Both chats say so, and which of the two comes first is not for us to know.
    assert desk.gatehouse.moves == [moved(group, supergroup)] * 2
    assert desk.gatehouse.messages == []


@pytest.mark.requirement("TEL-6")
async def test_a_send_that_meets_the_move_first_goes_there_and_tells_the_engine(
    desk: Desk,
) -> None:
    group = desk.server.world.group("Team", desk.ann)
    async with desk.listening():
        await desk.until(lambda: desk.server.queue.polling)
        supergroup = desk.server.migrate(group, told=False)
        await desk.send(to(group, "Done."))
        await desk.send(to(group, "And more."))
        assert desk.gatehouse.moves == [moved(group, supergroup)]
        desk.gatehouse.break_store()
        other = desk.server.world.group("Others", desk.ann)
        desk.server.migrate(other, told=False)
        desk.progress.ids.clear()
        await desk.send(to(other, "The store is away, and this goes out."))
    assert desk.shown(supergroup) == ["Done.", "And more."]
    assert len(desk.gatehouse.moves) == 1


@pytest.mark.requirement("TEL-6")
async def test_an_answer_to_a_deleted_topic_goes_to_the_chat(desk: Desk) -> None:
    forum, topic = desk.topic()
    del forum.topics[topic]
    await desk.send(to(forum, "Done.", topic=topic))
    (post,) = desk.server.from_bot(forum)
    assert (post.text, post.thread_id) == ("Done.", 0)


@pytest.mark.requirement("TEL-2")
async def test_an_anonymous_administrator_speaks_for_the_group(desk: Desk) -> None:
    group = desk.server.world.supergroup("Team", desk.ann)
    async with desk.listening():
        desk.server.admin_says_anonymously(group, "@gatehouse_bot status?")
        (message,) = await desk.hears(1)
    assert (message.sender.id, message.sender.name) == (str(group.id), "Team")
    assert (message.text, message.mentions_bot, message.sender.is_bot) == ("status?", True, False)


@pytest.mark.requirement("MSG-16")
@pytest.mark.parametrize("status", ["member", "administrator"])
async def test_other_bots_are_marked_as_bots_however_they_are_heard_in_a_group(
    desk: Desk, status: str
) -> None:
    """Bot API 10.0: a command with our name, a reply to us, and for an administrator all words."""
    desk.server.state.hears_bots = status == "administrator"
    group = desk.server.world.supergroup("Team", desk.ann, bot_status=status)
    other = desk.server.world.other_bot("Deploy")
    async with desk.listening():
        desk.server.user_says(group, desk.ann, "@gatehouse_bot is it green?")
        await desk.hears(1)
        await desk.send(to(group, "Green."))
        (ours,) = desk.server.from_bot(group)
        said = desk.server.user_says(group, other, "Look again.", reply_to=ours)
        desk.server.user_says(group, other, "/status@gatehouse_bot")
        desk.server.user_edits(said, "Look again, please.")
        if status == "administrator":
            desk.server.user_says(group, other, "I look, too.")
        desk.server.user_says(group, desk.ann, "@gatehouse_bot thanks")
        heard = await desk.hears(5 if status == "administrator" else 4)
        await desk.gatehouse.until(lambda: bool(desk.gatehouse.revisions))
    words = {m.text: m.sender.is_bot for m in (*heard, *desk.gatehouse.revisions)}
    assert {text for text, is_bot in words.items() if not is_bot} == {"is it green?", "thanks"}
    assert {"Look again.", "Look again, please."} <= words.keys()
