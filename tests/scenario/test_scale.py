"""What a message costs does not grow with what a database holds (SCALE-3)."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import Connection, text

from runtime.agent.turn_worker import AGAIN_S
from runtime.domain.runs import RunState
from runtime.domain.transcript import ToolMessage, UserMessage
from runtime.ports.model import ModelRequest
from runtime.process import timers
from runtime.process.lease_keeper import LeaseSettings
from runtime.sessions import claims
from tests.conftest import FailAfter
from tests.contract.store_support import BOTH
from tests.fakes.model import Gate, Said, ScriptedModel
from tests.scenario.cards import both, call, cards, offering, reaches
from tests.scenario.engine import World
from tests.scenario.scaling import (
    Asked,
    asked,
    at_rest,
    clock_of,
    fill,
    lengthen,
    scaled,
    scanned,
)
from tests.scenario.test_edits import deletes, edits
from tests.scenario.tools import Note

FEW, MANY = 5, 400
LONG_S = 120.0
SAMPLE = 5
"""Messages of which the cost is counted together."""
DAY = 40
"""Different statements that a day's use is known to say, at the least."""
READERS = 12
"""Readers at once, of which each connection that reads has one at the least."""
ROOM = 1.1
"""A worker may look once more than it had to: never once for each session, or for each message."""


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Asked]:
    with asked(monkeypatch) as made:
        yield made


def noting(request: ModelRequest) -> Said | str:
    """Keep a note, then say so."""
    if isinstance(request.messages[-1], ToolMessage):
        return "kept"
    return Said(calls=(call("milk"),))


@dataclass(frozen=True)
class Cost:
    """Of one message, from its arrival to its receipt. `work` is in SQLite's instructions."""

    statements: float
    work: float


async def talk(running: World, amount: int, *, chat: str = "D-first") -> str:
    """One message after the other, each of them answered; the session."""
    session = ""
    for _ in range(amount):
        before = len(running.chat.texts(chat))
        accepted = await running.says("hello", chat_id=chat)
        session = accepted.session_id or ""
        while len(running.chat.texts(chat)) <= before:
            await clock_of(running).advance(AGAIN_S)
    await at_rest(running)
    return session


async def acquainted(running: World) -> None:
    """Let each connection that reads take in what is known of the tables, as it does once."""

    def look(conn: Connection) -> None:
        for _ in range(READERS):
            conn.execute(text("SELECT count(*) FROM settings"))

    await asyncio.gather(*(running.database.read(look) for _ in range(READERS)))


async def cost(running: World, counted: Asked) -> Cost:
    """What messages cost now, on average."""
    await at_rest(running)
    counted.clear()
    await talk(running, SAMPLE)
    return Cost(len(counted.said) / SAMPLE, counted.work / SAMPLE)


@pytest.mark.requirement("SCALE-3")
@pytest.mark.parametrize("dialect", BOTH)
async def test_a_message_costs_the_same_beside_three_sessions_and_beside_thousands(
    dialect: str, tmp_path: Path, counted: Asked
) -> None:
    async with scaled(tmp_path, dialect, ScriptedModel(noting), offering(Note())) as (running, _):
        for chat in ("D-other", "D-third"):
            left = await talk(running, 2, chat=chat)
        await acquainted(running)
        await talk(running, FEW)
        few = await cost(running, counted)
        await fill(running, left)
        await acquainted(running)
        await talk(running, FEW)
        many = await cost(running, counted)
    assert many.statements <= few.statements * ROOM
    assert many.work <= few.work * ROOM


@pytest.mark.requirement("SCALE-3")
@pytest.mark.parametrize("dialect", BOTH)
async def test_the_hundredth_message_of_a_session_costs_what_the_first_did(
    dialect: str, tmp_path: Path, counted: Asked
) -> None:
    async with scaled(tmp_path, dialect, ScriptedModel(lambda request: "ok")) as (running, _):
        session = await talk(running, FEW)
        few = await cost(running, counted)
        await lengthen(running, session, times=MANY // (FEW + SAMPLE))
        # The first one after it reads what another process would have kept in memory.
        await talk(running, 1)
        many = await cost(running, counted)
    assert many.statements <= few.statements * ROOM
    assert many.work <= few.work * ROOM


class Busy:
    """A model that does what the newest message asks of it."""

    def __init__(self) -> None:
        self.gate = Gate()

    def __call__(self, request: ModelRequest) -> Said | str:
        said = [one.text for one in request.messages if isinstance(one, UserMessage)][-1]
        if isinstance(request.messages[-1], ToolMessage):
            return "done"
        if said == "hang":
            return Said("never", before=self.gate)
        if said in ("note", "risk"):
            return Said(calls=(call(said, said),))
        return "ok"


async def a_day(running: World, model: Busy, day: str) -> None:
    """Everything that people do with the message path."""
    clock = clock_of(running)
    model.gate = Gate()
    await running.says("/queue followup")
    await running.says("note")
    await clock.advance(0.3)
    asking = await running.says("risk")
    await clock.advance(0.3)
    await reaches(running, asking.run_id, RunState.WAITING_FOR_APPROVAL)
    await running.says("it waits", message_id=f"{day}-behind")
    await clock.advance(0.3)
    await running.presses(cards(running)[-1][1].open_call_id, "once")
    await clock.advance(0.3)
    await running.says("hang")
    await clock.advance(0.3)
    await model.gate.reached.wait()
    await running.says("first", message_id=f"{day}-one")
    await running.says("second", message_id=f"{day}-two")
    await edits(running, f"{day}-one", "first, but changed")
    await deletes(running, f"{day}-two")
    for command in ("/status", "/queue steer", "/usage"):
        await running.says(command)
    await running.says("steered")
    await clock.advance(LeaseSettings().ttl_s)
    await running.says("/stop")
    await clock.advance(2.0)
    await edits(running, f"{day}-one", "changed again", edited_at="e2")
    await deletes(running, f"{day}-behind")
    await running.says("what became of it?", reply_to="test-1")
    await clock.advance(2.0)
    await running.says("/new")
    await clock.advance(LeaseSettings().ttl_s)
    for care in (claims.recover, timers.expire_due):
        await running.engine.units.run(care, name="care")


@pytest.mark.requirement("SCALE-3")
@pytest.mark.parametrize("dialect", BOTH)
async def test_no_statement_of_the_message_path_reads_a_growing_table_from_end_to_end(
    dialect: str, tmp_path: Path, counted: Asked, fail_after: FailAfter
) -> None:
    model = Busy()
    risky = both(offering(Note(), Note("risk", command=True)))
    async with (
        fail_after(LONG_S),
        scaled(tmp_path, dialect, ScriptedModel(model), risky) as (running, url),
    ):
        await a_day(running, model, "one")
        left = await talk(running, 2)
        await fill(running, left)
        counted.clear()
        await a_day(running, model, "two")
        statements = dict(counted.values)
        found = await scanned(url, statements)
    assert len(statements) > DAY, "the day was less busy than it should be"
    assert not found, "\n".join(found)
