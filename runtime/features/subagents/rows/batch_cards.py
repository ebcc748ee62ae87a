"""Rows of the cards that show a batch of agents at work. Statements only.

A card is one message of the outbox, of the kind ``batch``, and the edits of it that follow; they
name the card where an approval's card names its open call.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from sqlalchemy import Connection, bindparam, exists, insert, select, text, update

from runtime.features.subagents.rows.agents import COLUMNS, LIVE, Agent
from runtime.features.subagents.rows.agents_due import AT_ONCE
from runtime.features.subagents.tables import agent_cards, agents
from runtime.sessions.outbox import OPEN
from runtime.sessions.tables import outbox
from runtime.store.database import now_ms
from runtime.store.dialect import lock_rows
from runtime.store.statements import hot


@dataclass(frozen=True, slots=True)
class AgentCard:
    """The card of the agents that one step of a run spawned. `shown` is what it says by now;
    `next_ms` is when it may be changed again, None once it says how all of them ended."""

    id: str
    run_id: str
    step: int
    shown: str
    created_ms: int
    next_ms: int | None


def name_of(run_id: str, step: int) -> str:
    """What the card of a step is called."""
    return f"{run_id}/{step}"


def add(conn: Connection, card: AgentCard) -> None:
    """Keep a new one."""
    conn.execute(insert(agent_cards).values(asdict(card)))


def lock(conn: Connection, card_id: str) -> AgentCard | None:
    """One card, held until the unit ends; None where there is none."""
    query = select(agent_cards).where(agent_cards.c.id == card_id)
    row = conn.execute(lock_rows(query, skip_locked=False)).first()
    if row is None:
        return None
    return AgentCard(row.id, row.run_id, row.step, row.shown, row.created_ms, row.next_ms)


def shown(conn: Connection, card_id: str) -> str:
    """What a card says by now; empty where there is none.

    It is kept beside the messages: a chat that shows no such cards is sent no change of one.
    """
    query = select(agent_cards.c.shown).where(agent_cards.c.id == card_id)
    return conn.execute(query).scalar_one_or_none() or ""


def change(conn: Connection, card: AgentCard, *, shown: str, next_ms: int | None) -> None:
    """Keep what a card says, and when it may be changed again."""
    values = {"shown": shown, "next_ms": next_ms}
    conn.execute(update(agent_cards).where(agent_cards.c.id == card.id).values(values))


_DUE = hot(
    select(agent_cards.c.id)
    .where(agent_cards.c.next_ms <= bindparam("now_ms"))
    .order_by(agent_cards.c.next_ms)
    .limit(AT_ONCE)
)


def due(conn: Connection) -> Sequence[str]:
    """The cards that may be changed now."""
    return [row[0] for row in _DUE.rows(conn, now_ms=now_ms(conn))]


def on_its_way(conn: Connection, card_id: str) -> bool:
    """Whether the card or a change of it is still to be sent, or is being sent."""
    unsettled = exists().where(outbox.c.open_call_id == card_id, text(f"outbox.{OPEN}"))
    return bool(conn.execute(select(unsettled)).scalar())


def anybody_at_work(conn: Connection, run_id: str, step: int) -> bool:
    """Whether one of those that a step spawned has not settled."""
    live = exists().where(agents.c.run_id == run_id, agents.c.step == step, text(LIVE))
    return bool(conn.execute(select(live)).scalar())


def of_step(conn: Connection, run_id: str, step: int) -> Sequence[Agent]:
    """The agents that a step spawned, in that order."""
    query = select(*COLUMNS).where(agents.c.run_id == run_id, agents.c.step == step)
    return [Agent(*row) for row in conn.execute(query.order_by(agents.c.place))]
