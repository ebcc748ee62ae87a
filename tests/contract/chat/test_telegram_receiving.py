"""What a person says in Telegram, and what reaches the engine."""

import pytest

from adapters.telegram.settings import BotCommand
from tests.contract.chat.telegram_support import ACCOUNT, Desk, desk, to
from tests.wire.telegram import User
from tests.wire.telegram.entities import Entity

__all__ = ["desk"]


async def test_a_private_message_says_who_where_and_when(desk: Desk) -> None:
    async with desk.listening():
        said = desk.server.user_says(desk.chat, desk.ann, "hello")
        (message,) = await desk.hears(1)
    assert message.identity == f"telegram:{ACCOUNT}:{desk.chat.id}:{said.message_id}"
    assert (message.chat_kind, message.thread_id) == ("direct", None)
    assert (message.sender.id, message.sender.name) == (str(desk.ann.id), "Ann")
    assert (message.text, message.sender.is_bot) == ("hello", False)
    assert (message.mentions_bot, message.reply_to, message.replies_to_bot) == (False, None, False)
    assert message.sent_at_ms == said.date * 1000
    assert message.received_at_ms == desk.clock.now_ms()


async def test_in_a_group_with_privacy_mode_only_what_is_meant_for_the_bot_comes(
    desk: Desk,
) -> None:
    await desk.adapter.close()
    desk.adapter = desk.another_adapter(commands=(BotCommand(name="status", help="says it"),))
    group = desk.server.world.group("Team", desk.ann)
    async with desk.listening():
        desk.server.user_says(group, desk.ann, "lunch?")
        desk.server.user_says(group, desk.ann, "@Gatehouse_Bot, is it green?")
        desk.server.user_says(group, desk.ann, "look \U0001f600 @gatehouse_bot here")
        desk.server.user_says(group, desk.ann, "/status@gatehouse_bot now")
        desk.server.user_says(group, desk.ann, "/status now")
        heard = await desk.hears(4)
    assert [message.text for message in heard] == [
        "is it green?",
        "look \U0001f600 @gatehouse_bot here",
        "/status now",
        "/status now",
    ]
    assert all(message.mentions_bot for message in heard)
    assert {(message.chat_kind, message.chat_id) for message in heard} == {("group", str(group.id))}


async def test_without_privacy_mode_what_is_not_meant_for_the_bot_says_so(desk: Desk) -> None:
    desk.server.state.privacy = False
    desk.server.state.hears_bots = True
    group = desk.server.world.supergroup("Team", desk.ann)
    other = User(99, "Other", "other_bot", is_bot=True)
    async with desk.listening():
        desk.server.user_says(group, desk.ann, "lunch? @somebody")
        desk.server.user_says(group, desk.ann, "/stop@other_bot")
        desk.server.user_says(group, other, "beep")
        desk.server.user_says(group, desk.ann, "the end")
        heard = await desk.hears(3)
    assert [message.text for message in heard] == ["lunch? @somebody", "beep", "the end"]
    assert not any(message.mentions_bot for message in heard)
    assert [message.sender.is_bot for message in heard] == [False, True, False]


async def test_a_mention_by_a_name_without_a_username_counts(desk: Desk) -> None:
    group = desk.server.world.group("Team", desk.ann)
    mention = Entity("text_mention", 0, 9, user_id=desk.server.bot.id)
    async with desk.listening():
        desk.server.user_says(group, desk.ann, "Gatehouse help", entities=[mention])
        (message,) = await desk.hears(1)
    assert (message.text, message.mentions_bot) == ("help", True)


async def test_a_reply_to_the_bot_and_a_reply_to_a_person(desk: Desk) -> None:
    desk.server.state.privacy = False
    group = desk.server.world.supergroup("Team", desk.ann)
    async with desk.listening():
        await desk.send(to(group, "Shall I deploy?"))
        (asked,) = desk.server.from_bot(group)
        yes = desk.server.user_says(group, desk.ann, "yes", reply_to=asked)
        desk.server.user_says(group, desk.ann, "why?", reply_to=yes)
        first, second = await desk.hears(2)
    assert (first.reply_to, first.replies_to_bot) == (str(asked.message_id), True)
    assert (second.reply_to, second.replies_to_bot) == (str(yes.message_id), False)
    assert (first.chat_kind, first.thread_id) == ("group", None)


async def test_each_topic_of_a_forum_is_a_place_of_its_own(desk: Desk) -> None:
    desk.server.state.privacy = False
    forum, topic = desk.topic()
    opened_by_bot = desk.server.user_opens_topic(forum, desk.server.bot, "Mine")
    async with desk.listening():
        desk.server.user_says(forum, desk.ann, "in the topic", topic=topic)
        desk.server.user_says(forum, desk.ann, "in the bot's topic", topic=opened_by_bot)
        desk.server.user_says(forum, desk.ann, "in General")
        await desk.send(to(forum, "Done.", topic=topic))
        (answer,) = desk.server.from_bot(forum)[-1:]
        desk.server.user_says(forum, desk.ann, "thanks", reply_to=answer)
        heard = await desk.hears(4)
    assert [(m.chat_kind, m.thread_id) for m in heard] == [
        ("topic", str(topic)),
        ("topic", str(opened_by_bot)),
        ("group", None),
        ("topic", str(topic)),
    ]
    assert [m.reply_to for m in heard] == [None, None, None, str(answer.message_id)]
    assert [m.replies_to_bot for m in heard] == [False, False, False, True]
    assert answer.thread_id == topic


async def test_a_comment_on_a_channels_post_comes_from_its_discussion_group(desk: Desk) -> None:
    desk.server.state.privacy = False
    group = desk.server.world.supergroup("Comments", desk.ann)
    channel = desk.server.world.channel("News", discussion=group)
    async with desk.listening():
        post = desk.server.channel_posts(channel, "Release 2 is out")
        desk.server.user_says(group, desk.ann, "congratulations", reply_to=post)
        news, comment = await desk.hears(2)
    assert (news.sender.id, news.sender.name) == (str(channel.id), "News")
    assert (comment.chat_kind, comment.thread_id) == ("group", None)
    assert (comment.reply_to, comment.replies_to_bot) == (str(post.message_id), False)


@pytest.mark.requirement("MSG-2")
async def test_an_edit_is_the_same_message_in_a_later_wording(desk: Desk) -> None:
    async with desk.listening():
        said = desk.server.user_says(desk.chat, desk.ann, "depoly")
        desk.server.user_edits(said, "deploy")
        (first,) = await desk.hears(1)
        await desk.gatehouse.until(lambda: len(desk.gatehouse.revisions) == 1)
    (second,) = desk.gatehouse.revisions
    assert (first.edited_at, second.edited_at) == (None, str(said.edit_date))
    assert first.message_id == second.message_id
    assert second.identity == f"{first.identity}:{said.edit_date}"
    assert second.text == "deploy"


async def test_files_come_with_their_caption_and_what_is_needed_to_fetch_them(desk: Desk) -> None:
    group = desk.server.world.group("Team", desk.ann)
    async with desk.listening():
        desk.server.user_sends_document(
            group, desk.ann, b"a,b", filename="data.csv", caption="@gatehouse_bot sum this"
        )
        desk.server.user_sends_photo(desk.chat, desk.ann, b"\xff\xd8")
        desk.server.user_sends_voice(desk.chat, desk.ann, b"OggS")
        document, photo, voice = await desk.hears(3)
    (file,) = document.attachments
    assert (document.text, document.mentions_bot) == ("sum this", True)
    assert (file.name, file.size_bytes) == ("data.csv", 3)
    assert desk.server.state.files.find(file.reference).attachment.content == b"a,b"
    assert [a.media_type for a in photo.attachments] == ["image/jpeg"]
    assert [a.media_type for a in voice.attachments] == ["audio/ogg"]
    assert (photo.text, voice.text) == ("", "")


async def test_who_joins_or_leaves_says_nothing(desk: Desk) -> None:
    group = desk.server.world.group("Team", desk.ann)
    ben = desk.server.world.user("Ben")
    async with desk.listening():
        desk.server.user_joins(group, ben)
        desk.server.user_leaves(group, ben)
        desk.server.user_says(desk.chat, desk.ann, "hello")
        await desk.hears(1)
    assert desk.gatehouse.texts == ["hello"]


@pytest.mark.requirement("TEL-2", "MSG-1")
async def test_a_list_that_a_person_pasted_reaches_the_engine_with_its_words(desk: Desk) -> None:
    """Bot API 10.1: such a message has no text, only blocks."""
    item = {"label": "1.", "blocks": [{"type": "paragraph", "text": "buy milk"}]}
    async with desk.listening():
        desk.server.user_says_in_blocks(
            desk.chat,
            desk.ann,
            {"type": "paragraph", "text": ["please ", {"type": "bold", "text": "do"}]},
            {"type": "list", "items": [item]},
        )
        (message,) = await desk.hears(1)
    assert message.text == "please do\n1. buy milk"
    assert message.own_words == message.text
