"""Typing signals: shown, renewed and ended, and never in a message's way (MSG-10)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from runtime.bus.memory import MemoryBus
from runtime.delivery.rate_limiter import Buckets
from runtime.delivery.typing_signals import FORGET_AFTER_S, TypingSignals
from runtime.domain.errors import DeliveryRetry
from runtime.domain.messages import ChatAddress
from runtime.ports.bus import LIVE
from tests.fakes.chat import FAST, FakeChat
from tests.fakes.clock import FakeClock, settle

HERE = ChatAddress(channel="test", account="A1", chat_id="C1")


class Stage:
    """Signals of one account, and what its platform showed."""

    def __init__(self, chat: FakeChat, *, account: tuple[float, int]) -> None:
        self.chat = chat
        self.clock = FakeClock()
        self.bus = MemoryBus()
        buckets = Buckets(self.clock, chat=(1.0, 1), account=account)
        self.signals = TypingSignals(chat, self.bus, self.clock, buckets)

    async def says(self, state: str, *, run: str = "run_1", at: ChatAddress = HERE) -> None:
        """A run says what it does."""
        self.bus.publish(
            LIVE,
            {
                "type": "activity",
                "run_id": run,
                "state": state,
                "target": at.model_dump(mode="json"),
            },
        )
        await settle()


@asynccontextmanager
async def stage(
    chat: FakeChat | None = None, *, account: tuple[float, int] = (100.0, 100)
) -> AsyncIterator[Stage]:
    capabilities = replace(FAST, typing_interval_s=4.0)
    made = Stage(chat or FakeChat(capabilities=capabilities), account=account)
    tasks = [
        asyncio.create_task(made.signals.listen(), name="listen"),
        asyncio.create_task(made.signals.show(), name="show"),
    ]
    await settle()
    yield made
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


async def test_a_signal_is_shown_renewed_and_ended() -> None:
    async with stage() as at:
        await at.says("thinking")
        assert at.chat.typings == [("C1", "thinking")]
        await at.clock.advance(4.0)
        await at.says("tool")
        await at.clock.advance(4.0)
        assert at.chat.typings == [("C1", "thinking"), ("C1", "thinking"), ("C1", "tool")]
        await at.says("done")
        assert at.chat.typings[-1] == ("C1", "done")
        await at.clock.advance(60.0)
        assert len(at.chat.typings) == 4


async def test_other_accounts_are_left_to_their_own() -> None:
    async with stage() as at:
        await at.says("thinking", at=HERE.model_copy(update={"account": "A2"}))
        await at.says("thinking", at=HERE.model_copy(update={"channel": "other"}))
        assert at.chat.typings == []


async def test_a_run_that_fell_silent_is_forgotten() -> None:
    async with stage() as at:
        await at.says("thinking")
        await at.clock.advance(FORGET_AFTER_S + 10)
        shown = len(at.chat.typings)
        await at.clock.advance(60.0)
        assert len(at.chat.typings) == shown


@pytest.mark.requirement("MSG-10")
async def test_no_signal_is_shown_where_only_a_messages_token_is_left() -> None:
    async with stage(account=(0.01, 1)) as at:
        await at.says("thinking")
        assert at.chat.typings == []


class Refusing(FakeChat):
    """A platform that shows no signals today."""

    async def typing(self, target: ChatAddress, state: str) -> None:
        await super().typing(target, state)
        raise DeliveryRetry("429")


async def test_a_refused_signal_ends_nothing() -> None:
    async with stage(Refusing(capabilities=replace(FAST, typing_interval_s=4.0))) as at:
        await at.says("thinking")
        await at.clock.advance(4.0)
        assert len(at.chat.typings) == 2
