"""The tables of subagents: children of sessions, whom they wait for, and what they run in.

A child is a session with a lane; what makes it a child stands in one row of `agents` (decision 23).
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from runtime.store.tables import lanes, metadata

__all__ = ["agent_slots", "agent_waits", "agents", "metadata", "seen_files"]

_LIVE = text("settled_ms IS NULL")
_HELD = text("held_ms IS NOT NULL")
_ENDING = text("stop IS NOT NULL AND settled_ms IS NULL")
_LEFT = text("tree_state IN ('open', 'clean') AND settled_ms IS NOT NULL")

Index(
    "ix_lanes_wants",
    lanes.c.wants_ms,
    sqlite_where=text("wants_ms IS NOT NULL"),
    postgresql_where=text("wants_ms IS NOT NULL"),
)

agents = Table(
    "agents",
    metadata,
    Column("session_id", ForeignKey("sessions.id"), primary_key=True),
    # The session at the root of the tree; names and places are unique in it.
    Column("tree_id", Text, nullable=False),
    Column("parent_id", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("place", Integer, nullable=False),
    Column("depth", Integer, nullable=False),
    Column("type", Text, nullable=False),
    Column("label", Text, nullable=False, server_default=""),
    Column("task", Text, nullable=False),
    Column("mode", Text, nullable=False),
    Column("on_failure", Text, nullable=False),
    Column("group_name", Text),
    Column("prompt", Text, nullable=False, server_default=""),
    # The call that spawned it.
    Column("run_id", Text, nullable=False),
    Column("step", Integer, nullable=False),
    Column("call_place", Integer, nullable=False),
    # Why it is to end; `quiet` where whoever would hear of its end was stopped too.
    Column("stop", Text),
    Column("quiet", Boolean, nullable=False, server_default=text("false")),
    Column("status", Text),
    Column("result", Text, nullable=False, server_default=""),
    Column("steps", Integer, nullable=False, server_default="0"),
    Column("tool_calls", Integer, nullable=False, server_default="0"),
    Column("input_tokens", BigInteger, nullable=False, server_default="0"),
    Column("output_tokens", BigInteger, nullable=False, server_default="0"),
    Column("cost_usd", Float),
    Column("created_ms", BigInteger, nullable=False),
    # Since when it waits for others; null once it may start.
    Column("held_ms", BigInteger),
    Column("settled_ms", BigInteger),
    # What it shares with its parent: the grants of later, and the record of files (SUB-17).
    Column("isolation", Text, nullable=False, server_default="full"),
    # Whose worktree its files are in, the commit that this began at, and what became of its own.
    Column("worktree", Text),
    Column("base", Text),
    Column("tree_state", Text),
    UniqueConstraint("tree_id", "name"),
    UniqueConstraint("tree_id", "place"),
    Index(None, "run_id"),
    Index("ix_agents_live", "parent_id", sqlite_where=_LIVE, postgresql_where=_LIVE),
    Index("ix_agents_held", "held_ms", sqlite_where=_HELD, postgresql_where=_HELD),
    Index("ix_agents_ending", "created_ms", sqlite_where=_ENDING, postgresql_where=_ENDING),
    Index("ix_agents_left", "settled_ms", sqlite_where=_LEFT, postgresql_where=_LEFT),
)

# What stands in front of a child: an agent whose result it needs, or an earlier one of its group.
agent_waits = Table(
    "agent_waits",
    metadata,
    Column("session_id", ForeignKey("agents.session_id"), primary_key=True),
    Column("other_id", ForeignKey("agents.session_id"), primary_key=True),
    Column("kind", Text, nullable=False),
)

# As many as children may run at once; one that is not free names the session that runs in it.
agent_slots = Table(
    "agent_slots",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("session_id", Text, unique=True),
)

# What a session saw of its files, where that must outlive its process: a child's view of what its
# parent had seen, and the record that a parent shares with its children.
seen_files = Table(
    "seen_files",
    metadata,
    Column("session_id", ForeignKey("sessions.id"), primary_key=True),
    Column("path", Text, primary_key=True),
    Column("mtime_ns", BigInteger, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("digest", Text, nullable=False),
)
