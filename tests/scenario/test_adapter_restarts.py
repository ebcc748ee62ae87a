"""An adapter whose listening fails by a defect: it is started again, and nobody waits for long."""

import asyncio
from pathlib import Path

from typing_extensions import override

from runtime.ports.gatehouse import Gatehouse
from runtime.process.supervisor import FIRST_DELAY_S, STABLE_S
from tests.conftest import FailAfter
from tests.fakes.chat import FakeChat
from tests.fakes.clock import FakeClock
from tests.fakes.model import ScriptedModel, ScriptedModels
from tests.scenario.engine import setup_at, world
from tests.support.templates import make_database


class Brittle(FakeChat):
    """Listens until it is broken; `begun` counts how often it was started."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = 0
        self.breaks = asyncio.Event()

    @override
    async def listen(self, gatehouse: Gatehouse) -> None:
        self.begun += 1
        self.breaks.clear()
        self.gatehouse = gatehouse
        self.listening.set()
        await self.breaks.wait()
        raise RuntimeError("a defect of the adapter")


async def waited(clock: FakeClock, chat: Brittle) -> float:
    """Break it, and say after how many seconds it listens again."""
    before, began = chat.begun, clock.monotonic()
    chat.breaks.set()
    while chat.begun == before:
        await clock.advance(FIRST_DELAY_S)
    return clock.monotonic() - began


async def test_an_old_failure_makes_nobody_wait_for_a_new_one(
    tmp_path: Path, fail_after: FailAfter
) -> None:
    url = f"sqlite:///{tmp_path}/gatehouse.db"
    await make_database(url)
    clock, chat = FakeClock(), Brittle()
    setup = setup_at(tmp_path, url, ScriptedModels(ScriptedModel(["hello"])), clock=clock)
    async with fail_after(60), world(setup, chat):
        first = await waited(clock, chat)
        second = await waited(clock, chat)
        await clock.advance(STABLE_S)
        later = await waited(clock, chat)
    assert first <= 2 * FIRST_DELAY_S
    assert second > first
    assert later <= 2 * FIRST_DELAY_S
