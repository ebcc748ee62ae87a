"""A chat with two rows in hand at once: a changed card does not hide the reply beside it."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from runtime.domain.ids import IdPrefix, new_id
from runtime.domain.messages import ChatAddress, OutboundMessage, Receipt, TextPart
from runtime.ports.chat import Posted
from runtime.sessions import outbox
from runtime.sessions.outbox import FINAL_RANK, NewRow
from runtime.store import Connection, open_database
from tests.fakes.chat import FAST, FakeChat
from tests.fakes.clock import FakeClock
from tests.fakes.model import Gate, ScriptedModels
from tests.scenario.engine import OWNER, setup_at, world
from tests.support.templates import make_database

SWEEPS_S = 20


class SlowChat(FakeChat):
    """A platform whose posts do not come back until the test says so."""

    def __init__(self) -> None:
        super().__init__(capabilities=replace(FAST, lookup=True))
        self.gate = Gate()

    async def send(
        self, message: OutboundMessage, *, posted: Sequence[str], on_posted: Posted
    ) -> Receipt:
        receipt = await super().send(message, posted=posted, on_posted=on_posted)
        await self.gate.wait()
        return receipt


def left_over(conn: Connection) -> None:
    """What a gateway leaves that died when a run had ended: its reply, and its card to change."""
    target = ChatAddress(channel="test", account="A1", chat_id=f"D-{OWNER}")
    for kind, rank in (("edit", 0), ("final", FINAL_RANK)):
        message = OutboundMessage(
            outbox_id=new_id(IdPrefix.OUTBOX, 1),
            target=target,
            parts=(TextPart(markdown=kind),),
        )
        outbox.add(conn, NewRow(kind=kind, message=message, rank=rank))


@pytest.mark.requirement("MSG-10", "MSG-11")
async def test_a_reply_in_hand_is_not_sent_again_when_a_card_beside_it_is_done(
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path}/gatehouse.db"
    await make_database(url)
    clock, chat = FakeClock(), SlowChat()
    database = open_database(url, clock=clock)
    await database.start()
    await database.write(left_over, name="test")
    await database.close()
    setup = replace(setup_at(tmp_path, url, ScriptedModels()), clock=clock)
    async with asyncio.timeout(180), world(setup, chat) as running:
        await chat.gate.reached.wait()
        for _ in range(SWEEPS_S):
            await clock.advance(1.0)
        chat.gate.open.set()
        while (await running.database.read(outbox.counts)).keys() - {"oldest_ms"}:
            await clock.advance(1.0)
        assert chat.texts() == ["final"]
