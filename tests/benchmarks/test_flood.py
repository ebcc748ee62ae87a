"""How close delivery comes to what a platform's limits and its refusals allow, in virtual time."""

import asyncio
from pathlib import Path

import pytest

from runtime.ports.chat import Capabilities
from tests.scenario.flood import SLACK, TELEGRAM, FloodedChat
from tests.scenario.posting import post

CHATS, EACH = 50, 10


@pytest.mark.parametrize(("platform", "limits"), [("Telegram", TELEGRAM), ("Slack", SLACK)])
async def test_500_replies_to_50_chats_with_a_third_of_all_calls_refused(
    tmp_path: Path, platform: str, limits: Capabilities, capsys: pytest.CaptureFixture[str]
) -> None:
    async with post(tmp_path) as at:
        chat = FloodedChat(at.clock, seed=1, limits=limits)
        at.serve(chat)
        for number in range(EACH):
            for place in range(CHATS):
                await at.put(f"{number}", f"C{place}", final=True)
        await at.start()
        async with asyncio.timeout(240):
            while len(chat.sent) < CHATS * EACH:
                await at.clock.advance(0.5)
        took, needed = chat.last, chat.needed_s()
    with capsys.disabled():
        print(
            f"\n  {platform}: 500 replies to 50 chats in {chat.calls} calls, a third refused: "
            f"{took:.1f} s where {needed:.1f} s are needed ({took / needed:.2f} times)"
        )
