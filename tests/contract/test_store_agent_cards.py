"""When the card of a batch is changed: at its time, with news, one change after the other."""

from functools import partial

import pytest
from sqlalchemy import Connection, select

from runtime.domain.people import Trust
from runtime.domain.results import Shortened
from runtime.features.subagents import batch_card
from runtime.features.subagents.rows import agents
from runtime.features.subagents.rows.agents import Agent, Totals
from runtime.features.subagents.rows.agents_due import SUBAGENTS_DUE
from runtime.features.subagents.tables import agent_cards
from runtime.sessions import due_work, lanes, runs
from runtime.sessions.due_work import Wanted
from runtime.sessions.lanes import NewSession
from runtime.sessions.tables import outbox
from runtime.store import Database
from tests.contract.store_support import StillClock
from tests.stateful.arriving import deliver
from tests.stateful.bench import ACCOUNT, CHANNEL, CHATS

KEY = f"{CHANNEL}:{ACCOUNT}:{CHATS[0]}"
GROUP_S = 10


class Batch:
    """A run in a group that sent two agents out, and the card of them."""

    def __init__(self, store: Database, clock: StillClock) -> None:
        self.store, self.clock = store, clock
        self.members: list[Agent] = []

    async def begins(self, amount: int = 2) -> bool:
        """Whether it gets a card."""
        return await self.store.write(partial(self._begin, amount=amount), name="begin")

    def _begin(self, conn: Connection, amount: int) -> bool:
        assert deliver(conn, 0, 0, Trust.OWNER, queue_mode="followup") is not None
        (root, _) = lanes.lock_by_key(conn, KEY) or (None, None)
        assert root is not None
        run = runs.head(conn, root.session_id)
        assert run is not None
        for place in range(1, amount + 1):
            lane = lanes.create(conn, NewSession(f"a-{place}", run.target, "edit", "followup"))
            assert lane is not None
            made = Agent(
                session_id=lane.session_id,
                tree_id=root.session_id,
                parent_id=root.session_id,
                name=f"a-{place}",
                place=place,
                depth=1,
                type="explore",
                task="Look.",
                mode="background",
                on_failure="fail",
                run_id=run.id,
                step=1,
                call_place=0,
                created_ms=lane.now_ms,
            )
            agents.add(conn, made)
            self.members.append(made)
        return batch_card.begin(conn, root, run, 1)

    async def settles(self, place: int) -> None:
        """One of them completed; nobody told the card."""

        def work(conn: Connection) -> None:
            one, now = self.members[place], self.clock.now_ms()
            gave, used = Shortened("x", 1), Totals()
            agents.settle(conn, one.session_id, "completed", gave, artifacts=(), used=used, now=now)

        await self.store.write(work, name="settle")

    async def cared(self) -> bool:
        """Whether a look at the card sent something."""
        name = await self.store.read(lambda conn: conn.execute(select(agent_cards.c.id)).scalar())
        return await self.store.write(partial(batch_card.care, card_id=str(name)), name="care")

    async def is_due(self) -> bool:
        wanted = Wanted(features=(SUBAGENTS_DUE,))
        found = await self.store.read(partial(due_work.look, wanted=wanted))
        return bool(found.features)

    async def rows(self) -> list[tuple[str, str]]:
        """The card and its changes: kind and state."""
        read = select(outbox.c.kind, outbox.c.state).order_by(outbox.c.position)
        return await self.store.read(lambda conn: [(a, b) for a, b in conn.execute(read)])

    async def are_sent(self) -> None:
        """Whatever is on its way arrives."""
        await self.runs_sql("UPDATE outbox SET state = 'sent', posted = '[\"1.1\"]'")

    async def runs_sql(self, statement: str) -> None:
        """What a deliverer would have written."""

        def work(conn: Connection) -> None:
            conn.exec_driver_sql(statement)

        await self.store.write(work, name="mark")


@pytest.fixture
def batch(store: Database, clock: StillClock) -> Batch:
    return Batch(store, clock)


@pytest.mark.requirement("SUB-7")
async def test_a_card_changes_at_its_time_and_only_with_news(batch: Batch) -> None:
    assert await batch.begins()
    assert await batch.rows() == [("batch", "pending")]
    await batch.are_sent()
    await batch.settles(0)
    # PostgreSQL's own time goes on meanwhile.
    batch.clock.advance(1_000)
    assert (await batch.is_due(), await batch.cared()) == (False, False)
    batch.clock.advance(GROUP_S * 1000)
    assert await batch.is_due()
    assert await batch.cared()
    assert await batch.rows() == [("batch", "sent"), ("edit", "pending")]
    await batch.are_sent()
    batch.clock.advance(GROUP_S * 1000)
    assert not await batch.cared(), "nothing is new"


@pytest.mark.requirement("SUB-7")
async def test_what_takes_long_is_changed_less_often(batch: Batch) -> None:
    assert await batch.begins(amount=3)
    await batch.are_sent()
    batch.clock.advance(1_000_000)
    await batch.settles(0)
    assert await batch.cared()
    await batch.are_sent()
    await batch.settles(1)
    batch.clock.advance(20_000)
    assert not await batch.cared()
    batch.clock.advance(90_000)
    assert await batch.cared()


@pytest.mark.requirement("SUB-7")
@pytest.mark.parametrize("state", ["pending", "sending"])
async def test_a_change_waits_for_the_one_before_and_nothing_follows_the_last(
    batch: Batch, state: str
) -> None:
    assert await batch.begins()
    await batch.are_sent()
    await batch.settles(0)
    batch.clock.advance(GROUP_S * 1000)
    assert await batch.cared()
    await batch.settles(1)
    await batch.runs_sql(f"UPDATE outbox SET state = '{state}' WHERE kind = 'edit'")
    batch.clock.advance(GROUP_S * 1000)
    assert not await batch.cared()
    assert len(await batch.rows()) == 2
    await batch.are_sent()
    batch.clock.advance(GROUP_S * 1000)
    assert await batch.cared()
    assert len(await batch.rows()) == 3
    await batch.are_sent()
    batch.clock.advance(GROUP_S * 10_000)
    assert not await batch.is_due()
    assert not await batch.cared()


@pytest.mark.requirement("SUB-7")
async def test_a_card_that_was_never_posted_is_not_changed(batch: Batch) -> None:
    """Where nobody knows its post, or the platform has none, it ends without a word."""
    assert await batch.begins()
    await batch.runs_sql("UPDATE outbox SET state = 'unknown'")
    await batch.settles(0)
    await batch.settles(1)
    batch.clock.advance(GROUP_S * 1000)
    await batch.cared()
    assert await batch.rows() == [("batch", "unknown")]
    assert not await batch.is_due()
