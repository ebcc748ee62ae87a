"""What the message path asks about a session of a tree: whether lists show it, who pays for it, and
whose record of files it uses. Statements only."""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, Connection, Row, exists, select

from runtime.features.subagents.tables import agents
from runtime.sessions.tables import sessions
from runtime.sessions.unit import Sharing

CLOSED: ColumnElement[bool] = exists().where(
    agents.c.session_id == sessions.c.id,
    agents.c.retention == "close_on_settle",
    agents.c.settled_ms.is_not(None),
)
"""Agents that were to be listed only while they work."""


def paid_by(conn: Connection, run_id: str) -> Sequence[str]:
    """The agents that count on the budget of a run at the root."""
    query = select(agents.c.session_id).where(agents.c.payer == run_id)
    return conn.execute(query).scalars().all()


def sharing(conn: Connection, session_id: str) -> Sharing:
    """Whose record of files a session of a tree uses: its own, or that of the nearest one above
    which shares none with its parent."""
    own = above = _above(conn, session_id)
    owner = session_id
    while above is not None and above.isolation == "shared":
        owner = above.parent_id
        above = _above(conn, owner)
    shares = select(agents.c.session_id).where(
        agents.c.tree_id == (own.tree_id if own else session_id),
        agents.c.parent_id == session_id,
        agents.c.isolation == "shared",
    )
    return Sharing(owner, owner != session_id or conn.execute(shares.limit(1)).first() is not None)


def _above(conn: Connection, session_id: str) -> Row[str, str, str] | None:
    query = select(agents.c.parent_id, agents.c.tree_id, agents.c.isolation)
    return conn.execute(query.where(agents.c.session_id == session_id)).first()
