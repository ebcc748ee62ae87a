"""What the checks of the conformance suite share: where they run, and the engine's part."""

import asyncio

import pytest

from runtime.domain.messages import OutboundMessage, Receipt
from runtime.ports.chat import Posted
from tests.contract.chat.drivers import that_have
from tests.contract.chat.platform import Platform, message
from tests.fakes.clock import settle

LONG = "\n\n".join(f"Paragraph {number}. " + "word " * 240 for number in range(30))


def on(*features: str) -> pytest.MarkDecorator:
    """Run a check on every platform that has these."""
    return pytest.mark.parametrize("platform", that_have(*features), indirect=True)


class Kept:
    """`on_posted`: what the engine wrote down of a message's posts."""

    def __init__(self) -> None:
        self.ids: list[str] = []

    async def __call__(self, message_id: str) -> None:
        self.ids.append(message_id)


async def send(platform: Platform, text: str, outbox_id: str = "out_1") -> Receipt:
    return await deliver(platform, message(platform, text, outbox_id))


async def deliver(platform: Platform, one: OutboundMessage, kept: Posted | None = None) -> Receipt:
    """The first attempt at a message, as the engine makes it: written down, then sent."""
    await platform.wrote(one)
    return await platform.adapter.send(one, posted=(), on_posted=kept or Kept())


async def seen(platform: Platform, amount: int) -> list[str]:
    """What the person reads, once what is under way is there: the page hears of it by the bus."""
    async with asyncio.timeout(60):
        while len(platform.seen()) < amount:
            await settle()
    await settle()
    return platform.seen()


def words(texts: list[str]) -> list[str]:
    return " ".join(texts).split()
