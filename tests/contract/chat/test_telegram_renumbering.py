"""Telegram counts its updates anew after an outage: nothing is lost, and nothing is heard twice."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from adapters.telegram.polling import FRESH_MS
from tests.contract.chat.telegram_support import Desk, desk

__all__ = ["desk"]

BEGIN_ANEW, LOWER, HIGHER = 1, 869_990, 990_000
anew = pytest.mark.parametrize("first", [BEGIN_ANEW, LOWER, HIGHER])


@asynccontextmanager
async def cut_before_confirming(desk: Desk, text: str) -> AsyncIterator[None]:
    """Telegram fails when a message is stored and before its number is confirmed; afterwards the
    adapter asks again."""
    desk.gatehouse.gate.clear()
    desk.server.user_says(desk.chat, desk.ann, text)
    await desk.gatehouse.until(lambda: len(desk.gatehouse.offered) == 1)
    desk.server.fail("getUpdates", 502, "Bad Gateway")
    desk.gatehouse.gate.set()
    naps = await desk.clock.until_naps(1)
    yield
    await desk.clock.advance(naps[0])


@anew
@pytest.mark.parametrize("kept", [True, False], ids=["kept", "expired"])
@pytest.mark.requirement("MSG-1", "MSG-2", "TEL-1")
async def test_numbers_that_change_in_an_outage_lose_no_message_that_waits(
    desk: Desk, first: int, kept: bool
) -> None:
    async with desk.listening():
        async with cut_before_confirming(desk, "before"):
            assert len(desk.server.queue.pending) == 1
            if not kept:
                desk.server.queue.pending.clear()
            for text in ("while it was away", "and again"):
                desk.server.user_says(desk.chat, desk.ann, text)
            desk.server.queue.renumber(first)
        await desk.hears(3)
        # Numbers that go on from there are taken and confirmed as ever.
        desk.server.user_says(desk.chat, desk.ann, "afterwards")
        await desk.hears(4)
    assert desk.gatehouse.texts == ["before", "while it was away", "and again", "afterwards"]
    assert len(desk.gatehouse.offered) == 4 + kept, "what comes again is known by its identity"


@anew
@pytest.mark.requirement("MSG-1", "MSG-2", "TEL-1")
async def test_a_process_that_dies_before_it_stores_finds_the_message_under_its_new_number(
    desk: Desk, first: int
) -> None:
    desk.gatehouse.gate.clear()
    async with desk.listening():
        desk.server.user_says(desk.chat, desk.ann, "hello")
        await desk.gatehouse.until(lambda: len(desk.gatehouse.offered) == 1)
    desk.gatehouse.gate.set()
    desk.server.queue.renumber(first)
    async with desk.listening():
        await desk.hears(1)
    assert desk.gatehouse.texts == ["hello"]


@anew
@pytest.mark.requirement("MSG-1", "TEL-1")
async def test_a_process_that_slept_for_long_does_not_confirm_by_old_numbers(
    desk: Desk, first: int
) -> None:
    """A laptop is closed while a message is stored, and opened when Telegram counts anew."""
    desk.gatehouse.gate.clear()
    desk.server.user_says(desk.chat, desk.ann, "before")
    async with desk.listening():
        await desk.gatehouse.until(lambda: len(desk.gatehouse.offered) == 1)
        await desk.clock.advance(FRESH_MS / 1_000)
        desk.server.queue.pending.clear()
        desk.server.user_says(desk.chat, desk.ann, "a week later")
        desk.server.queue.renumber(first)
        desk.gatehouse.gate.set()
        await desk.hears(2)
    assert desk.gatehouse.texts == ["before", "a week later"]


@pytest.mark.requirement("MSG-2", "TEL-1")
async def test_a_webhook_hears_another_message_under_a_number_that_was_used(desk: Desk) -> None:
    """And the same message under another number is the same message."""
    async with desk.called():
        desk.server.user_says(desk.chat, desk.ann, "hello")
        (update,) = desk.server.queue.pending
        assert await desk.server.queue.deliver() == [200]
        desk.server.queue.renumber(int(str(update["update_id"])))
        desk.server.user_says(desk.chat, desk.ann, "hello again")
        assert desk.server.queue.pending[0]["update_id"] == update["update_id"]
        assert await desk.server.queue.deliver() == [200]
        desk.server.queue.pending.append(update)
        desk.server.queue.renumber(BEGIN_ANEW)
        assert await desk.server.queue.deliver() == [200]
    assert desk.gatehouse.texts == ["hello", "hello again"]
    assert len(desk.gatehouse.offered) == 3
