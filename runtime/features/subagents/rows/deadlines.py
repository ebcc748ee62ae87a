"""Agents whose time is over. Statements only."""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import Connection, bindparam, select, text, update

from runtime.features.subagents.rows.agents import AT_ONCE
from runtime.features.subagents.tables import agents
from runtime.store.database import now_ms
from runtime.store.statements import hot

TIMED: Final = "deadline_ms IS NOT NULL AND settled_ms IS NULL AND stop IS NULL"
"""Live ones that end at a moment; the very words of the index."""
OVER: Final = "its time was over"
"""Why such a one is stopped."""


_OVERDUE = hot(
    select(agents.c.session_id)
    .where(text(TIMED), agents.c.deadline_ms <= bindparam("now_ms"))
    .order_by(agents.c.deadline_ms)
    .limit(AT_ONCE)
)


def overdue(conn: Connection) -> Sequence[str]:
    """Sessions of live agents whose time is over, and that nobody stopped yet."""
    return [row[0] for row in _OVERDUE.rows(conn, now_ms=now_ms(conn))]


def end(conn: Connection, session_id: str) -> bool:
    """Note that one is to end because its time is over; False where it has none, or ended."""
    changed = conn.execute(
        update(agents)
        .where(
            agents.c.session_id == session_id,
            text(TIMED),
            agents.c.deadline_ms <= now_ms(conn),
        )
        .values(stop=OVER)
    )
    return changed.rowcount == 1
