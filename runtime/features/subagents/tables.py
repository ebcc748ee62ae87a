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

from runtime.store.metadata import metadata, partial_index

_LIVE = "settled_ms IS NULL"
_HELD = "held_ms IS NOT NULL"
_SHOWS = "next_ms IS NOT NULL"
_ENDING = "stop IS NOT NULL AND settled_ms IS NULL"
_ASKED = "request_key IS NOT NULL"
_TIMED = "deadline_ms IS NOT NULL AND settled_ms IS NULL AND stop IS NULL"
_LEFT = "tree_state IN ('open', 'clean') AND settled_ms IS NOT NULL"

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
    # What makes its spawn repeatable, and the digest of all that was sent with it.
    Column("request_key", Text),
    Column("request_digest", Text),
    # How much of the two contexts is shared, and whether it is listed once it settled.
    Column("share", Text, nullable=False, server_default="handoff"),
    Column("retention", Text, nullable=False, server_default="retain"),
    # The run at the root on whose budget its calls count.
    Column("payer", Text, nullable=False, server_default=""),
    # Why it is to end; `quiet` where whoever would hear of its end was stopped too.
    Column("stop", Text),
    Column("quiet", Boolean, nullable=False, server_default=text("false")),
    Column("status", Text),
    # The result, or its beginning where all of it is in `agent_results`.
    Column("result", Text, nullable=False, server_default=""),
    Column("result_bytes", Integer, nullable=False, server_default="0"),
    Column("result_digest", Text),
    # JSON: the files that it wrote.
    Column("artifacts", Text, nullable=False, server_default="[]"),
    Column("steps", Integer, nullable=False, server_default="0"),
    Column("tool_calls", Integer, nullable=False, server_default="0"),
    Column("input_tokens", BigInteger, nullable=False, server_default="0"),
    Column("output_tokens", BigInteger, nullable=False, server_default="0"),
    Column("cost_usd", Float),
    Column("created_ms", BigInteger, nullable=False),
    # Since when it waits for others; null once it may start.
    Column("held_ms", BigInteger),
    Column("settled_ms", BigInteger),
    # How often it began anew; never taken back.
    Column("retries", Integer, nullable=False, server_default="0"),
    # What it shares with its parent: the grants of later, and the record of files (SUB-17).
    Column("isolation", Text, nullable=False, server_default="full"),
    # Whose worktree its files are in, the commit that this began at, and what became of its own.
    Column("worktree", Text),
    Column("base", Text),
    Column("tree_state", Text),
    # A line about what it is for, and when it is ended whatever it does; null: never.
    Column("description", Text, nullable=False, server_default=""),
    Column("deadline_ms", BigInteger),
    UniqueConstraint("tree_id", "name"),
    UniqueConstraint("tree_id", "place"),
    Index(None, "run_id"),
    partial_index("ix_agents_request", "parent_id", "request_key", where=_ASKED),
    Index(None, "payer"),
    partial_index("ix_agents_live", "parent_id", where=_LIVE),
    partial_index("ix_agents_held", "held_ms", where=_HELD),
    partial_index("ix_agents_ending", "created_ms", where=_ENDING),
    partial_index("ix_agents_timed", "deadline_ms", where=_TIMED),
    partial_index("ix_agents_left", "settled_ms", where=_LEFT),
)

# What stands in front of a child: an agent whose result it needs, or an earlier one of its group.
agent_waits = Table(
    "agent_waits",
    metadata,
    Column("session_id", ForeignKey("agents.session_id"), primary_key=True),
    Column("other_id", ForeignKey("agents.session_id"), primary_key=True),
    Column("kind", Text, nullable=False),
)

# Results that are too long to be handed over whole: who may read one gets it as a file.
agent_results = Table(
    "agent_results",
    metadata,
    Column("session_id", ForeignKey("agents.session_id"), primary_key=True),
    Column("digest", Text, primary_key=True),
    Column("words", Text, nullable=False),
    # Of UTF-8.
    Column("size", Integer, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
)

# The message that shows how the agents of one step get on; `next_ms` is null once they have ended.
agent_cards = Table(
    "agent_cards",
    metadata,
    Column("id", Text, primary_key=True),
    Column("run_id", ForeignKey("runs.id"), nullable=False),
    Column("step", Integer, nullable=False),
    Column("shown", Text, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("next_ms", BigInteger),
    partial_index("ix_agent_cards_next", "next_ms", where=_SHOWS),
)

# As many as children may run at once; one that is not free names the session that runs in it.
agent_slots = Table(
    "agent_slots",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("session_id", Text, unique=True),
)
