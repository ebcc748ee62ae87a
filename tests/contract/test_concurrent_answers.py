"""Chats that answer cards of each other at the same time (APR-10), with two writers at work.

A third connection holds the lanes until both units wait, so both are in the middle of their work.
Each unit must then succeed at once: PostgreSQL ends a deadlock, and the store would run the unit
again, which would hide that they stood against each other.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

import asyncpg
import pytest
from sqlalchemy import text

from runtime.bus.memory import MemoryBus
from runtime.domain.ids import code_of
from runtime.domain.messages import InboundMessage
from runtime.domain.runs import Holder, RunState, Usage
from runtime.domain.tools import Effect, ToolCall
from runtime.domain.transcript import AssistantMessage
from runtime.intake.gatehouse import Intake
from runtime.ports.gatehouse import Accepted
from runtime.sessions import approvals, claims, open_calls, run_steps, runs
from runtime.sessions.approvals import CardOpening
from runtime.sessions.calls import CallRow
from runtime.sessions.open_calls import QUESTION, OpenCall
from runtime.sessions.run_steps import ModelStep
from runtime.sessions.unit import Unit, Units
from runtime.sessions.window import WindowCache
from runtime.store import Connection, Database, leases
from tests.conftest import FailAfter
from tests.contract.test_store_chats import RULES, said
from tests.support.kinds import KINDS

T = TypeVar("T")
WAITING = text(
    "SELECT count(*) FROM pg_stat_activity "
    "WHERE datname = current_database() AND wait_event_type = 'Lock'"
)


@pytest.fixture
def dialect() -> str:
    return "postgresql"


class Counting(Database):
    """A store that counts how often it ran units of each name."""

    def __init__(self, store: Database) -> None:
        self.dialect = store.dialect
        self.ran: list[str] = []
        self._store = store

    async def start(self) -> None:
        await self._store.start()

    async def close(self) -> None:
        await self._store.close()

    async def write(self, work: Callable[[Connection], T], *, name: str, urgent: bool = False) -> T:
        def attempt(conn: Connection) -> T:
            self.ran.append(name)
            return work(conn)

        return await self._store.write(attempt, name=name, urgent=urgent)

    async def read(self, work: Callable[[Connection], T]) -> T:
        return await self._store.read(work)


@asynccontextmanager
async def held(url: str, session_ids: Iterable[str]) -> AsyncIterator[None]:
    """The lanes are another process's in here; they are free behind it."""
    other = await asyncpg.connect(url)
    try:
        async with other.transaction():
            for session_id in session_ids:
                await other.execute(
                    "SELECT 1 FROM lanes WHERE session_id = $1 FOR UPDATE", session_id
                )
            yield
    finally:
        await other.close()


async def wait_for(
    store: Database, parties: Sequence[asyncio.Task[Accepted]], waiting: int
) -> None:
    """Go on when so many units wait for a lock."""
    while await store.read(lambda conn: conn.execute(WAITING).scalar_one()) < waiting:
        assert not any(party.done() for party in parties)


async def asking(store: Database, chats: Sequence[str]) -> list[OpenCall]:
    """A question that is open in each of these chats, in their order."""
    units = Units(store, MemoryBus(), KINDS)
    intake = Intake(units, RULES)
    begun = [await intake.accept(said("go", f"go-{chat}", chat=chat)) for chat in chats]

    def work(unit: Unit) -> list[OpenCall]:
        name = f"{leases.PROCESS}w1"
        fence = leases.acquire(unit.conn, name=name, holder="w1", ttl_ms=60_000)
        holder = Holder("w1", fence or 0)
        claims.claim(unit, holder, most=len(chats), cache=WindowCache())
        # Lanes that are taken together are free of the order, those of the steps are held already.
        return [ask(unit, holder, one.run_id or "") for one in begun]

    return await units.run(work, name="ask")


def ask(unit: Unit, holder: Holder, run_id: str) -> OpenCall:
    """The model of a run asks the person, and the run waits."""
    call = ToolCall(id="c1", name="ask_user", arguments="{}")
    row = CallRow(run_id, 1, 0, call, Effect.READ, "proposed", "digest")
    message = AssistantMessage(text="", tool_calls=(call,))
    run_steps.commit_model(unit, holder, run_id, ModelStep(message, (row,), Usage(), 1))
    opening = CardOpening(kind=QUESTION, row=row, reason="", question="Which?")
    approvals.park(unit, holder, run_id, [opening], window_from=1)
    (asked,) = open_calls.of_run(unit.conn, run_id)
    return asked


def answers(call: OpenCall, number: int, *, chat: str) -> InboundMessage:
    """The answer to a card, given in `chat`."""
    return said(f"/answer {code_of(call.id)} this one", f"answer-{number}", chat=chat)


@pytest.mark.requirement("APR-10", "MSG-4", "SCALE-1")
async def test_two_chats_that_answer_cards_of_each_other_never_stand_against_each_other(
    store: Database, migrated_url: str, fail_after: FailAfter
) -> None:
    chats = ["-1", "-2"]
    cards = await asking(store, chats)
    counting = Counting(store)
    intake = Intake(Units(counting, MemoryBus(), KINDS), RULES)
    async with fail_after():
        async with held(migrated_url, [card.session_id for card in cards]):
            parties = [
                asyncio.create_task(intake.accept(answers(card, number, chat=chat)), name=chat)
                for number, (card, chat) in enumerate(zip(cards, reversed(chats), strict=True))
            ]
            await wait_for(store, parties, 2)
        accepted = [await party for party in parties]
    assert [one.disposition for one in accepted] == ["command", "command"]
    assert [one.session_id for one in accepted] == [card.session_id for card in reversed(cards)]
    assert counting.ran.count("accept") == 2, "neither was run again"
    assert await store.read(lambda conn: states(conn, cards)) == [("answered", RunState.QUEUED)] * 2


@pytest.mark.requirement("APR-10", "MSG-4", "SCALE-1")
async def test_two_first_messages_of_a_chat_that_answer_a_card_elsewhere_begin_one_conversation(
    store: Database, migrated_url: str, fail_after: FailAfter
) -> None:
    """The first makes the session and waits for the card's lane, the second waits for the first."""
    (card,) = await asking(store, ["-1"])
    counting = Counting(store)
    intake = Intake(Units(counting, MemoryBus(), KINDS), RULES)
    async with fail_after():
        async with held(migrated_url, [card.session_id]):
            parties = []
            for number in range(2):
                message = answers(card, number, chat="-2")
                parties.append(asyncio.create_task(intake.accept(message), name=str(number)))
                await wait_for(store, parties, number + 1)
        first, second = [await party for party in parties]
    assert first.session_id == second.session_id != card.session_id
    assert counting.ran.count("accept") == 2, "neither was run again"
    assert await store.read(lambda conn: states(conn, [card])) == [("answered", RunState.QUEUED)]


def states(conn: Connection, cards: Sequence[OpenCall]) -> list[tuple[str, RunState]]:
    """What became of calls, and of the runs that asked."""
    found = [open_calls.of_run(conn, card.run_id)[0] for card in cards]
    return [(one.state, runs.get(conn, one.run_id).state) for one in found]
