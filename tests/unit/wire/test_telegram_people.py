"""What people and operators can do on the server, seen by the real client library."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from aiohttp import web
from telegram import Bot, InlineKeyboardButton, InlineKeyboardMarkup
from telegram.error import BadRequest, ChatMigrated

from tests.wire.telegram import Attachment, TelegramServer
from tests.wire.telegram.client import real_bot

Place = tuple[TelegramServer, Bot]


@pytest_asyncio.fixture
async def place() -> AsyncIterator[Place]:
    async with TelegramServer() as server, real_bot(server) as bot:
        yield server, bot
        assert server.violations == []


async def test_a_chat_that_a_webhook_refuses_stops_no_other_chat(place: Place) -> None:
    server, bot = place
    ada, ben = server.world.user("Ada"), server.world.user("Ben")
    seen: list[str] = []

    async def hook(request: web.Request) -> web.Response:
        text = str((await request.json())["message"]["text"])
        seen.append(text)
        return web.Response(status=500 if text == "a1" and len(seen) == 1 else 200)

    app = web.Application()
    app.router.add_post("/hook", hook)
    runner = web.AppRunner(app, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
        await bot.set_webhook(url, max_connections=5)
        assert (await bot.get_webhook_info()).max_connections == 5
        for user, text in ((ada, "a1"), (ada, "a2"), (ben, "b1")):
            server.user_says(server.world.private(user), user, text)
        assert await server.queue.deliver() == [500, 200]
        assert await server.queue.deliver() == [200, 200]
    finally:
        await runner.cleanup()
    assert seen == ["a1", "b1", "a1", "a2"]
    assert await server.queue.deliver() == []


async def test_a_webhook_that_cannot_be_reached_answers_with_nothing(place: Place) -> None:
    server, bot = place
    ada = server.world.user("Ada")
    await bot.set_webhook("http://127.0.0.1:9/hook")
    server.user_says(server.world.private(ada), ada, "hello")
    assert await server.queue.deliver() == [0]
    with pytest.raises(BadRequest, match="max_connections"):
        await bot.set_webhook("http://127.0.0.1:9/hook", max_connections=101)


async def test_a_press_on_a_deleted_message_names_only_the_chat(place: Place) -> None:
    server, bot = place
    ada = server.world.user("Ada")
    chat = server.world.private(ada)
    keys = InlineKeyboardMarkup([[InlineKeyboardButton("Yes", callback_data="y")]])
    await bot.send_message(chat.id, "?", reply_markup=keys)
    (post,) = server.from_bot(chat)
    server.user_presses(post, "Yes")
    post.deleted = True
    server.user_forges(post, "made up", ada)
    first, second = [update.callback_query for update in await bot.get_updates()]
    assert (first.data, second.data) == ("y", "made up")
    assert first.message.reply_markup is not None
    assert (second.message.chat.id, second.message.date.timestamp()) == (chat.id, 0)
    assert second.message.reply_markup is None


async def test_a_draft_stands_until_the_next_message(place: Place) -> None:
    server, bot = place
    chat = server.world.private(server.world.user("Ada"))
    for text in ("", "Hel", "Hello"):
        await bot.send_message_draft(chat.id, 7, text)
    assert server.state.showing == {chat.id: "Hello"}
    assert server.state.drafts[chat.id, 7] == ["", "Hel", "Hello"]
    await bot.send_message(chat.id, "Hello!")
    assert server.state.showing == {}


async def test_a_migration_that_nobody_told_is_met_by_the_next_send(place: Place) -> None:
    server, bot = place
    ada = server.world.user("Ada")
    group = server.world.group("Team", ada)
    supergroup = server.migrate(group, told=False)
    with pytest.raises(ChatMigrated) as moved:
        await bot.send_message(group.id, "hi")
    assert moved.value.new_chat_id == supergroup.id
    assert await bot.get_updates() == ()


async def test_a_slow_part_of_an_album_and_an_anonymous_administrator(place: Place) -> None:
    server, bot = place
    ada = server.world.user("Ada")
    chat, group = server.world.private(ada), server.world.supergroup("Team", ada)
    for content in (b"one", b"two"):
        server.user_sends(chat, ada, [Attachment(content, "p.jpg", "photo")], album="77")
    server.admin_says_anonymously(group, "@gatehouse_bot hi")
    first, second, third = [update.message for update in await bot.get_updates()]
    assert first.media_group_id == second.media_group_id == "77"
    assert third.sender_chat.id == group.id
    assert third.from_user.username == "GroupAnonymousBot"


async def test_the_bot_is_told_that_it_became_an_administrator(place: Place) -> None:
    server, bot = place
    ada = server.world.user("Ada")
    server.user_promotes(server.world.supergroup("Team", ada), server.bot, by=ada)
    (update,) = await bot.get_updates()
    assert update.my_chat_member.old_chat_member.status == "member"
    assert update.my_chat_member.new_chat_member.status == "administrator"
