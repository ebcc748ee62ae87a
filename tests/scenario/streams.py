"""What the tests of growing replies stand on: one platform, and engines one after another."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from runtime.delivery.sender import DeliverySettings
from runtime.sessions import outbox
from runtime.sessions.tables import outbox as outbox_rows
from runtime.store import Connection, Point, no_point
from tests.fakes.chat import FAST, FakeChat, FakeStreams
from tests.fakes.clock import FakeClock
from tests.fakes.model import Gate, Said, ScriptedModel, ScriptedModels
from tests.scenario.engine import Setup, World, setup_at
from tests.scenario.tools import Note
from tests.support import audit_log
from tests.support.templates import make_database

FIRST = "This is the first half of it, "
WHOLE = FIRST + "and this is the other half of it."


class Stage:
    """One database and one platform, and engines on them, one after another."""

    def __init__(self, path: Path, *, drafts: bool = False, **capabilities: object) -> None:
        self.path, self.clock = path, FakeClock()
        self.url = f"sqlite:///{path}/gatehouse.db"
        self.capabilities = replace(FAST, **capabilities)
        self.chat = FakeChat(capabilities=self.capabilities)
        self.streams = FakeStreams(self.chat, drafts=drafts)
        self.chat.streams = self.streams
        self.point: Point = no_point
        self.quiet = frozenset[str]()
        self.made = False

    async def setup(self, model: ScriptedModel) -> Setup:
        if not self.made:
            await make_database(self.url)
            self.made = True
        self.chat.listening.clear()
        base = setup_at(self.path, self.url, ScriptedModels(model))
        delivery = DeliverySettings(quiet=self.quiet)
        return replace(
            base,
            clock=self.clock,
            tools=(Note(),),
            point=self.point,
            settings=replace(base.settings, delivery=delivery),
        )

    async def until(self, condition: Callable[[], bool], step: float = 0.25) -> None:
        async with asyncio.timeout(180):
            while not condition():
                await self.clock.advance(step)

    async def settled(self, at: World) -> None:
        """Let time pass until every row of the outbox has its end."""
        async with asyncio.timeout(180):
            while set(await at.database.read(outbox.counts)) - {"oldest_ms", "unknown", "dead"}:
                await self.clock.advance(0.5)

    def did(self, operation: str) -> int:
        return [one for one, _ in self.streams.calls].count(operation)


def half(gate: Gate, text: str = WHOLE) -> Said:
    """A response that stops after its first half until the gate is open."""
    return Said(text, chunk=len(FIRST), middle=gate, at=1)


def all_but_its_end(gate: Gate, text: str = WHOLE) -> Said:
    """A response whose words are all there, and which ends once the gate is open."""
    return Said(text, chunk=len(FIRST), middle=gate, at=-(-len(text) // len(FIRST)))


async def rows(at: World) -> list[tuple[str, str]]:
    def read(conn: Connection) -> list[tuple[str, str]]:
        query = outbox_rows.select().order_by(outbox_rows.c.position)
        return [(row.kind, row.state) for row in conn.execute(query)]

    return await at.database.read(read)


async def orphans(at: World) -> int:
    found = await at.database.read(audit_log.entries)
    return [row.action for row in found].count("delivery.orphaned")
