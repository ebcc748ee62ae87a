"""What there is to do for subagents, and whether there is any of it. Statements only."""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    bindparam,
    exists,
    literal_column,
    or_,
    select,
    text,
    update,
)

from runtime.features.subagents.tables import agent_cards, agent_waits, agents
from runtime.sessions.due_work import DueCheck
from runtime.sessions.tables import lanes
from runtime.store.database import now_ms
from runtime.store.statements import hot

AT_ONCE: Final = 100
"""Agents that one look finds."""
_ENDING: Final = "stop IS NOT NULL AND settled_ms IS NULL"
# Live ones that end at a moment; the very words of the index.
_TIMED: Final = "deadline_ms IS NOT NULL AND settled_ms IS NULL AND stop IS NULL"
OVER: Final = "its time was over"
"""Why such a one is stopped."""
_STOPPED = hot(
    select(agents.c.session_id)
    .where(text(_ENDING))
    .order_by(agents.c.created_ms, agents.c.depth)
    .limit(AT_ONCE)
)
_LEFT: Final = "agents.tree_state IN ('open', 'clean') AND agents.settled_ms IS NOT NULL"
_other = agents.alias("other")
_UNSETTLED = exists().where(
    agent_waits.c.session_id == agents.c.session_id,
    _other.c.session_id == agent_waits.c.other_id,
    literal_column("other.settled_ms").is_(None),
)
_WORKING = exists().where(
    _other.c.tree_id == agents.c.tree_id,
    _other.c.worktree == agents.c.session_id,
    literal_column("other.settled_ms").is_(None),
)
_LEFT_TREES = select(agents.c.session_id, agents.c.base).where(text(_LEFT), ~_WORKING)
# Those who waited for others, of whom none is left.
_CAN_START = select(agents.c.session_id).where(text("agents.held_ms IS NOT NULL"), ~_UNSETTLED)
_STARTABLE = hot(_CAN_START.order_by(agents.c.held_ms, agents.c.place).limit(AT_ONCE))
_OVERDUE = hot(
    select(agents.c.session_id)
    .where(text(_TIMED), agents.c.deadline_ms <= bindparam("now_ms"))
    .order_by(agents.c.deadline_ms)
    .limit(AT_ONCE)
)


def stopped(conn: Connection) -> Sequence[str]:
    """Sessions of live agents that are to end, parents before their children."""
    return [row[0] for row in _STOPPED.rows(conn)]


def startable(conn: Connection) -> Sequence[str]:
    """Sessions of agents that wait for nobody any more and do not know it yet."""
    return [row[0] for row in _STARTABLE.rows(conn)]


def overdue(conn: Connection) -> Sequence[str]:
    """Sessions of live agents whose time is over, and that nobody stopped yet."""
    return [row[0] for row in _OVERDUE.rows(conn, now_ms=now_ms(conn))]


def end_late(conn: Connection, session_id: str) -> bool:
    """Note that one is to end because its time is over; False where it has none, or ended."""
    changed = conn.execute(
        update(agents)
        .where(
            agents.c.session_id == session_id, text(_TIMED), agents.c.deadline_ms <= now_ms(conn)
        )
        .values(stop=OVER)
    )
    return changed.rowcount == 1


def left_trees(conn: Connection, *, limit: int = 20) -> Sequence[tuple[str, str]]:
    """(session, commit) of worktrees to be looked at once their agents have settled, and all who
    work in them; the oldest first."""
    rows = conn.execute(_LEFT_TREES.order_by(agents.c.settled_ms).limit(limit))
    return [(row.session_id, row.base or "") for row in rows]


def tree_left(conn: Connection, session_id: str) -> bool:
    """Whether the worktree of one agent is such a one."""
    return conn.execute(_LEFT_TREES.where(agents.c.session_id == session_id)).first() is not None


def _due(now: ColumnElement[int]) -> ColumnElement[bool]:
    """Whether a subagent is to start, to run, to end, or to be shown."""
    wants = exists().where(lanes.c.wants_ms <= now)
    asked = exists().where(text(_ENDING)).select_from(agents)
    shown = exists().where(agent_cards.c.next_ms <= now)
    late = exists().where(text(_TIMED), agents.c.deadline_ms <= now)
    return or_(wants, asked, _CAN_START.exists(), shown, late)


SUBAGENTS_DUE: Final = DueCheck("subagents", _due)
