"""A platform that refuses a third of all calls: everything arrives once, in order, in time."""

import asyncio
from pathlib import Path

import pytest

from runtime.ports.chat import Capabilities
from tests.scenario.flood import SLACK, TELEGRAM, FloodedChat
from tests.scenario.posting import post

CHATS, EACH = 50, 10


@pytest.mark.requirement("MSG-10")
@pytest.mark.parametrize(
    ("limits", "seed"), [(TELEGRAM, 1), (TELEGRAM, 2), (SLACK, 7)], ids=["tg-1", "tg-2", "slack"]
)
async def test_500_replies_to_50_chats_arrive_once_in_order_and_in_time(
    tmp_path: Path, limits: Capabilities, seed: int
) -> None:
    async with post(tmp_path) as at:
        chat = FloodedChat(at.clock, seed=seed, limits=limits)
        at.serve(chat)
        for number in range(EACH):
            for place in range(CHATS):
                await at.put(f"{number}", f"C{place}", final=True)
        began = at.clock.monotonic()
        await at.start()
        async with asyncio.timeout(240):
            while len(chat.sent) < CHATS * EACH:
                await at.clock.advance(0.5)
        for place in range(CHATS):
            assert chat.texts(f"C{place}") == [str(number) for number in range(EACH)]
        assert chat.early == 0, "a call came before its Retry-After was over"
        took, needed = chat.last - began, chat.needed_s()
        assert took <= 1.3 * needed, f"{chat.calls} calls in {took:.1f} s, not {needed:.1f} s"
