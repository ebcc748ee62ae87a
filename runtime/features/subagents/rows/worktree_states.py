"""The worktrees of subagents: what became of them, and which are to be looked at (SUB-17)."""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import Connection, exists, literal_column, select, text

from runtime.features.subagents.rows.agents import TreeState, change
from runtime.features.subagents.tables import agents

LEFT: Final = "agents.tree_state IN ('open', 'clean') AND agents.settled_ms IS NOT NULL"
_other = agents.alias("other")
_WORKING = exists().where(
    _other.c.tree_id == agents.c.tree_id,
    _other.c.worktree == agents.c.session_id,
    literal_column("other.settled_ms").is_(None),
)
_LEFT_TREES = select(agents.c.session_id, agents.c.base).where(text(LEFT), ~_WORKING)


def set_tree(conn: Connection, session_id: str, state: TreeState) -> None:
    """Keep what was found of an agent's own worktree."""
    change(conn, session_id, tree_state=state)


def left_trees(conn: Connection, *, limit: int = 20) -> Sequence[tuple[str, str]]:
    """(session, commit) of worktrees to be looked at once their agents have settled, and all who
    work in them; the oldest first."""
    rows = conn.execute(_LEFT_TREES.order_by(agents.c.settled_ms).limit(limit))
    return [(row.session_id, row.base or "") for row in rows]


def tree_left(conn: Connection, session_id: str) -> bool:
    """Whether the worktree of one agent is such a one."""
    return conn.execute(_LEFT_TREES.where(agents.c.session_id == session_id)).first() is not None
