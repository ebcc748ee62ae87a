"""The server's flood control, seen by the real client library."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from telegram import Bot
from telegram.error import BadRequest, RetryAfter

from tests.fakes.clock import FakeClock
from tests.wire.telegram import TelegramServer
from tests.wire.telegram.client import real_bot


@pytest_asyncio.fixture
async def place() -> AsyncIterator[tuple[TelegramServer, Bot, FakeClock]]:
    async with TelegramServer() as server, real_bot(server) as bot:
        yield server, bot, FakeClock()


async def refused(bot: Bot, chat: int, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setenv("PTB_TIMEDELTA", "true")
    with pytest.raises(RetryAfter) as flood:
        await bot.send_message(chat, "hi")
    after = flood.value.retry_after
    return after if isinstance(after, int) else int(after.total_seconds())


async def test_a_group_takes_twenty_a_minute_and_others_do_not_suffer(
    place: tuple[TelegramServer, Bot, FakeClock], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, bot, clock = place
    ada = server.world.user("Ada")
    group, private = server.world.supergroup("Team", ada), server.world.private(ada)
    server.floods.enforce(clock.monotonic)
    for _ in range(20):
        await bot.send_message(group.id, "hi")
        await clock.advance(1)
    assert await refused(bot, group.id, monkeypatch) == 40
    await bot.send_message(private.id, "hi")
    await bot.send_chat_action(group.id, "typing")
    await clock.advance(40)
    await bot.send_message(group.id, "hi")
    assert server.violations == []


async def test_who_does_not_wait_is_found_out(
    place: tuple[TelegramServer, Bot, FakeClock], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, bot, clock = place
    chat = server.world.private(server.world.user("Ada"))
    server.floods.refuse(1.0, seed=1, retry_after=5, now=clock.monotonic)
    assert await refused(bot, chat.id, monkeypatch) == 5
    await clock.advance(4)
    with pytest.raises(BadRequest):
        await bot.send_message(chat.id, "hi")
    assert "1.0 s before retry_after" in server.violations[0]


async def test_a_burst_in_a_chat_and_thirty_a_second_in_all(
    place: tuple[TelegramServer, Bot, FakeClock], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, bot, clock = place
    chats = [server.world.private(server.world.user(f"P{number}")) for number in range(31)]
    server.floods.enforce(clock.monotonic)
    for chat in chats[:30]:
        await bot.send_message(chat.id, "hi")
    assert await refused(bot, chats[30].id, monkeypatch) == 1
    await clock.advance(10)
    for _ in range(5):
        await bot.send_message(chats[0].id, "hi")
    assert await refused(bot, chats[0].id, monkeypatch) == 5
