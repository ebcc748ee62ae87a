"""Updates come from the wire server to the real client as the real Bot API sends them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import pytest
from aiohttp import web
from telegram import Bot, Update
from telegram.error import BadRequest, Conflict, TelegramError

from tests.wire.telegram import Chat, TelegramServer, User
from tests.wire.telegram.client import real_bot


@pytest.fixture
async def server() -> AsyncIterator[TelegramServer]:
    async with TelegramServer() as running:
        yield running
    assert running.violations == []


@pytest.fixture
async def bot(server: TelegramServer, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bot]:
    monkeypatch.setenv("PTB_TIMEDELTA", "true")
    async with real_bot(server) as connected:
        yield connected


@pytest.fixture
def ada(server: TelegramServer) -> User:
    return server.world.user("Ada", username="ada_l")


@pytest.fixture
def chat(server: TelegramServer, ada: User) -> Chat:
    return server.world.private(ada)


@contextmanager
def refused(kind: type[TelegramError], reason: str) -> Iterator[None]:
    """The library changes the case of what the server says, so the case is not looked at."""
    with pytest.raises(kind) as caught:
        yield
    assert reason.lower() in caught.value.message.lower()


async def texts(bot: Bot, offset: int | None = None) -> list[str | None]:
    updates = await bot.get_updates(offset=offset)
    return [update.effective_message and update.effective_message.text for update in updates]


async def test_a_poll_waits_until_somebody_writes(server, bot, chat, ada, fail_after) -> None:
    async with fail_after(), asyncio.TaskGroup() as group:
        poll = group.create_task(bot.get_updates(timeout=30), name="poll")
        await server.wait_until(lambda: server.queue.polling)
        server.user_says(chat, ada, "hello")
    (update,) = poll.result()
    assert update.message.text == "hello"
    assert update.message.from_user.first_name == "Ada"


async def test_an_update_comes_again_until_a_higher_offset_confirms_it(
    server, bot, chat, ada
) -> None:
    first, second, third = (server.user_says(chat, ada, word) for word in ("a", "b", "c"))
    assert await texts(bot) == ["a", "b", "c"]
    assert await texts(bot, first.update_id) == ["a", "b", "c"]
    assert await texts(bot, second.update_id) == ["b", "c"]
    assert await texts(bot, 0) == ["b", "c"], "what is confirmed is gone"
    assert await texts(bot, -1) == ["c"]
    assert await texts(bot, third.update_id + 1) == []
    server.redeliver(second)
    assert [u.update_id for u in await bot.get_updates()] == [second.update_id]


async def test_the_poller_that_waits_is_the_one_that_gets_the_conflict(
    server, bot, chat, ada, fail_after
) -> None:
    async with fail_after(), real_bot(server) as rival, asyncio.TaskGroup() as group:
        poll = group.create_task(outcome(bot.get_updates(timeout=30)), name="first")
        await server.wait_until(lambda: server.queue.polling)
        late = group.create_task(rival.get_updates(timeout=30), name="second")
        assert "terminated by other getUpdates request" in await poll
        server.user_says(chat, ada, "for the second")
    assert late.result()[0].message.text == "for the second"


async def outcome(call) -> str:
    try:
        return f"answered {await call!r}"
    except Conflict as conflict:
        return conflict.message


async def test_a_webhook_and_polling_exclude_each_other(server, bot, chat, ada) -> None:
    with refused(BadRequest, "HTTPS URL must be provided"):
        await bot.set_webhook("http://gatehouse.example/hook")
    await bot.set_webhook("https://gatehouse.example/hook", secret_token="made-up_1")
    server.user_says(chat, ada, "waits")
    assert (await bot.get_webhook_info()).pending_update_count == 1
    with refused(Conflict, "while webhook is active"):
        await bot.get_updates()
    await bot.delete_webhook()
    assert await texts(bot) == ["waits"], "the backlog is kept"
    await bot.delete_webhook(drop_pending_updates=True)
    assert await texts(bot) == []


async def test_only_the_kinds_of_update_that_were_asked_for_come(server, bot, chat, ada) -> None:
    await bot.get_updates(allowed_updates=["edited_message"])
    message = server.user_says(chat, ada, "first")
    server.user_edits(message, "second")
    (update,) = await bot.get_updates()
    assert update.message is None
    assert update.edited_message.text == "second"


async def test_a_webhook_gets_each_update_until_it_says_yes(server, bot, chat, ada) -> None:
    seen: list[tuple[str | None, str]] = []
    statuses = iter([200, 500, 200, 200])

    async def hook(request: web.Request) -> web.Response:
        update = await request.json()
        secret = request.headers.get("X-Telegram-Bot-Api-Secret-Token")
        seen.append((secret, update["message"]["text"]))
        return web.Response(status=next(statuses))

    app = web.Application()
    app.router.add_post("/hook", hook)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port = runner.addresses[0][1]
    await bot.set_webhook(f"http://127.0.0.1:{port}/hook", secret_token="made-up_1")
    for word in ("a", "b", "c"):
        server.user_says(chat, ada, word)
    assert await server.queue.deliver() == [200, 500]
    assert "500" in (await bot.get_webhook_info()).last_error_message
    assert await server.queue.deliver() == [200, 200]
    assert seen == [("made-up_1", word) for word in ("a", "b", "b", "c")]
    await runner.cleanup()


async def test_privacy_mode_shows_the_bot_only_what_is_meant_for_it(server, bot, ada) -> None:
    team = server.world.supergroup("Team", ada)
    answer = await bot.send_message(team.id, "I am here")
    mine = server.state.world.find(team, answer.message_id)
    assert server.user_says(team, ada, "nothing for bots").update_id is None
    assert server.user_says(team, ada, "/help@other_bot").update_id is None
    for text in ("/help", "/help@gatehouse_bot", "well, @Gatehouse_Bot, look"):
        assert server.user_says(team, ada, text).update_id is not None
    assert server.user_says(team, ada, "thanks", reply_to=mine).update_id is not None
    server.user_joins(team, server.world.user("Bob"))
    updates = await bot.get_updates()
    assert [u.message.text for u in updates][2:] == ["well, @Gatehouse_Bot, look", "thanks", None]
    assert updates[1].message.parse_entities() == {
        updates[1].message.entities[0]: "/help@gatehouse_bot"
    }
    assert updates[3].message.reply_to_message.message_id == answer.message_id
    assert updates[4].message.new_chat_members[0].first_name == "Bob"


async def test_forum_topics_keep_their_messages_apart(server, bot, ada) -> None:
    forum = server.world.supergroup("Team", ada, forum=True)
    topic = server.user_opens_topic(forum, ada, "Builds")
    asked = server.user_says(forum, ada, "/status", topic=topic)
    server.user_says(forum, ada, "/status")
    _, inside, general = await bot.get_updates()
    assert inside.message.message_thread_id == topic
    assert inside.message.is_topic_message
    assert inside.message.reply_to_message.forum_topic_created.name == "Builds"
    assert general.message.message_thread_id is None
    sent = await bot.send_message(forum.id, "green", message_thread_id=topic)
    assert sent.message_thread_id == asked.thread_id
    with refused(BadRequest, "Message thread not found"):
        await bot.send_message(forum.id, "green", message_thread_id=1)


async def test_a_comment_under_a_channel_post_is_in_its_thread(server, bot, ada) -> None:
    comments = server.world.supergroup("Comments", ada, bot_status="administrator")
    channel = server.world.channel("News", discussion=comments)
    post = server.channel_posts(channel, "Version 2 is out")
    server.user_says(comments, ada, "nice", reply_to=post)
    forwarded, comment = await bot.get_updates()
    assert forwarded.message.is_automatic_forward
    assert forwarded.message.sender_chat.id == channel.id
    assert comment.message.message_thread_id == forwarded.message.message_id


def test_updates_are_what_the_library_reads(server, chat, ada) -> None:
    server.user_says(chat, ada, "see https://gatehouse.example/a, please")
    update = Update.de_json(server.queue.pending[0])
    assert list(update.message.parse_entities().values()) == ["https://gatehouse.example/a"]


async def test_another_bot_is_heard_where_one_of_the_two_allows_it(server, bot, ada) -> None:
    team = server.world.supergroup("Team", ada)
    answer = await bot.send_message(team.id, "I am here")
    mine = server.state.world.find(team, answer.message_id)
    talks = server.world.other_bot("Deploy")
    silent = server.world.other_bot("Quiet", talks=False)
    for text in ("nothing for bots", "@gatehouse_bot look", "/help", "/help@other_bot"):
        assert server.user_says(team, talks, text).update_id is None
    assert server.user_says(team, talks, "/help@gatehouse_bot").update_id is not None
    assert server.user_says(team, talks, "thanks", reply_to=mine).update_id is not None
    assert server.user_says(team, silent, "thanks", reply_to=mine).update_id is None
    server.state.hears_bots = True
    assert server.user_says(team, silent, "thanks", reply_to=mine).update_id is not None
    assert server.user_says(team, silent, "nothing for bots").update_id is None
    server.state.privacy = False
    assert server.user_says(team, silent, "nothing for bots").update_id is not None
