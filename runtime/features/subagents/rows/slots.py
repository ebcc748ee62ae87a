"""Rows of slots. Statements only.

Slots are rows, never counts: whoever takes one holds its row, and skips those that others hold.
"""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import Connection, bindparam, func, select, text, update

from runtime.features.subagents.tables import agent_slots
from runtime.sessions.tables import lanes
from runtime.store.database import now_ms
from runtime.store.dialect import lock_rows
from runtime.store.statements import hot, insert_new

AT_ONCE: Final = 32
"""Slots that one unit gives out."""
_WANTED = hot(
    select(lanes.c.session_id)
    .where(text("wants_ms IS NOT NULL"), lanes.c.wants_ms <= bindparam("now_ms"))
    .limit(1)
)


def wanted(conn: Connection) -> bool:
    """Whether a lane wants to run."""
    return _WANTED.first(conn, now_ms=now_ms(conn)) is not None


def lock_free(conn: Connection, most: int) -> Sequence[int]:
    """Slots that nobody has of the first `most`, which are made where they are missing; held until
    the unit ends."""
    there = conn.execute(select(func.count()).select_from(agent_slots)).scalar_one()
    for number in range(there + 1, most + 1):
        insert_new(conn, agent_slots, {"number": number, "session_id": None})
    query = (
        select(agent_slots.c.number)
        .where(agent_slots.c.session_id.is_(None), agent_slots.c.number <= most)
        .order_by(agent_slots.c.number)
        .limit(AT_ONCE)
    )
    return list(conn.execute(lock_rows(query, skip_locked=True)).scalars())


def take(conn: Connection, number: int, session_id: str) -> None:
    """Give a free slot that this unit holds to a session."""
    slot = agent_slots.c.number == number
    conn.execute(update(agent_slots).where(slot).values(session_id=session_id))


def free(conn: Connection, session_id: str) -> None:
    """Let nobody have the slot of a session."""
    slot = agent_slots.c.session_id == session_id
    conn.execute(update(agent_slots).where(slot).values(session_id=None))
