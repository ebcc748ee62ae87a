"""A process that lost its lease and took it again: its old turns and sends must not go on."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from runtime.domain.messages import OutboundMessage, Receipt
from runtime.ports.chat import Posted
from runtime.store import leases
from tests.fakes.chat import FAST, FakeChat
from tests.fakes.clock import FakeClock
from tests.fakes.model import Gate, Said, ScriptedModel, ScriptedModels
from tests.scenario.engine import Setup, World, setup_at, world
from tests.support.templates import make_database


class SlowChat(FakeChat):
    """A platform whose first post does not come back until the test says so."""

    def __init__(self) -> None:
        super().__init__(capabilities=replace(FAST, lookup=True))
        self.gate = Gate()

    async def send(
        self, message: OutboundMessage, *, posted: Sequence[str], on_posted: Posted
    ) -> Receipt:
        receipt = await super().send(message, posted=posted, on_posted=on_posted)
        if not posted and len(self.sent) == 1:
            await self.gate.wait()
        return receipt


@pytest.fixture
async def setup(tmp_path: Path) -> Setup:
    """A database, a clock that stands still, and no model yet."""
    url = f"sqlite:///{tmp_path}/gatehouse.db"
    await make_database(url)
    return replace(setup_at(tmp_path, url, ScriptedModels()), clock=FakeClock())


async def until(running: World, holds: Callable[[], bool]) -> None:
    """Let time pass in small steps until something holds."""
    clock = running.engine.parts.clock
    assert isinstance(clock, FakeClock)
    async with asyncio.timeout(180):
        while not holds():
            await clock.advance(0.5)


@pytest.mark.requirement("MSG-4", "MSG-7")
async def test_a_turn_of_a_lost_lease_is_replaced_and_never_answers(setup: Setup) -> None:
    gate = Gate()
    model = ScriptedModel([Said("too late", before=gate), "in time", "still here"])
    async with world(replace(setup, models=ScriptedModels(model))) as running:
        await running.says("hello?")
        await gate.reached.wait()
        await running.database.write(leases.void_all, name="test")
        await until(running, lambda: bool(running.chat.sent))
        gate.open.set()
        await running.says("and now?")
        await until(running, lambda: len(running.chat.sent) > 1)
        assert running.chat.texts() == ["in time", "still here"]
        assert running.engine.turns.running == 0


@pytest.mark.requirement("MSG-9", "MSG-11")
async def test_a_send_of_a_lost_lease_is_looked_up_and_holds_nothing_up(setup: Setup) -> None:
    chat = SlowChat()
    model = ScriptedModel(["first", "second"])
    async with world(replace(setup, models=ScriptedModels(model)), chat) as running:
        await running.says("one")
        await chat.gate.reached.wait()
        await running.database.write(leases.void_all, name="test")
        await running.says("two")
        await until(running, lambda: len(chat.sent) > 1)
        assert chat.texts() == ["first", "second"]
