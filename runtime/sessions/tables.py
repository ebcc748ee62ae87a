"""The tables of conversations. Times are milliseconds since the epoch; JSON is kept as text that we
encode.

Rows that are workers' property carry (worker, fence): every unit that writes for a run or an
outbox row checks them, so that a stale lease cannot write (I6).
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

from runtime.store.metadata import POSITION, metadata, partial_index

accounts = Table(
    "accounts",
    metadata,
    Column("channel", Text, primary_key=True),
    Column("account", Text, primary_key=True),
    Column("user_id", Text, primary_key=True),
    Column("person_id", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("trust", Text, nullable=False),
    # ``paired`` was let in by the owner; ``configured`` follows the configuration, kept only so
    # that the person can be reached.
    Column("source", Text, nullable=False, server_default="paired"),
    Column("direct_chat", Text),
    Column("created_ms", BigInteger, nullable=False),
    Column("updated_ms", BigInteger, nullable=False),
    Index(None, "person_id"),
)

pairings = Table(
    "pairings",
    metadata,
    Column("code", Text, primary_key=True),
    Column("channel", Text, nullable=False),
    Column("account", Text, nullable=False),
    Column("user_id", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("address", Text, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("expires_ms", BigInteger, nullable=False),
    Column("state", Text, nullable=False),
    Index(None, "channel", "account", "user_id"),
)

sessions = Table(
    "sessions",
    metadata,
    Column("id", Text, primary_key=True),
    Column("key", Text, nullable=False, unique=True),
    Column("address", Text, nullable=False),
    Column("title", Text, nullable=False, server_default=""),
    Column("status", Text, nullable=False, server_default="open"),
    Column("mode", Text, nullable=False),
    Column("permission_mode", Text),
    Column("queue_mode", Text, nullable=False),
    Column("model", Text),
    # How its model writes, as JSON; nothing where the provider and the operator decide.
    Column("generation", Text),
    Column("agent", Text, nullable=False, server_default="main"),
    Column("grants", Text, nullable=False, server_default="[]"),
    Column("scope", Text),
    # What its owner narrowed it to; `scope` is what it got when it was made.
    Column("capability_scope", Text),
    Column("persona", Text),
    Column("persona_digest", Text),
    # When it was put aside; what happened since takes it back.
    Column("archived_ms", BigInteger),
    Column("created_ms", BigInteger, nullable=False),
    Column("updated_ms", BigInteger, nullable=False),
    Index(None, "updated_ms"),
)

lanes = Table(
    "lanes",
    metadata,
    Column("session_id", ForeignKey("sessions.id"), primary_key=True),
    # What kind of session it is, and its place in a tree of them. Never changed.
    Column("kind", Text, nullable=False, server_default="conversation"),
    Column("parent_id", Text),
    Column("root_id", Text, nullable=False),
    Column("depth", Integer, nullable=False, server_default="0"),
    Column("input_seq", BigInteger, nullable=False, server_default="0"),
    Column("run_seq", BigInteger, nullable=False, server_default="0"),
    Column("event_seq", BigInteger, nullable=False, server_default="0"),
    Column("message_seq", BigInteger, nullable=False, server_default="0"),
    Column("transcript", Integer, nullable=False, server_default="1"),
    Column("transcript_from", BigInteger, nullable=False, server_default="1"),
    Column("window_from", BigInteger, nullable=False, server_default="1"),
    # How often a turn was taken back in it: whoever remembers its transcript reads it again.
    Column("undone", BigInteger, nullable=False, server_default="0"),
    # The run that holds the lane; while it is null, `ready_ms` is when the head run may start.
    Column("active_run", Text),
    Column("ready_ms", BigInteger),
    # Of a lane that needs a slot: whether it may run, and since when it wants to.
    Column("gate", Text),
    Column("wants_ms", BigInteger),
    partial_index("ix_lanes_below", "root_id", where="parent_id IS NOT NULL"),
    partial_index("ix_lanes_ready", "ready_ms", where="ready_ms IS NOT NULL"),
    partial_index("ix_lanes_wants", "wants_ms", where="wants_ms IS NOT NULL"),
)

inputs = Table(
    "inputs",
    metadata,
    Column("id", Text, primary_key=True),
    Column("session_id", ForeignKey("sessions.id"), nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("identity", Text, nullable=False, unique=True),
    Column("origin", Text, nullable=False),
    Column("run_id", Text),
    Column("state", Text, nullable=False),
    Column("speaker", Text, nullable=False),
    Column("message", Text, nullable=False),
    Column("received_ms", BigInteger, nullable=False),
    UniqueConstraint("session_id", "seq"),
    # Partial indexes keep what is written for a message small: most rows are of the past.
    partial_index("ix_inputs_pending", "run_id", where="state = 'pending'"),
)

runs = Table(
    "runs",
    metadata,
    Column("id", Text, primary_key=True),
    Column("session_id", ForeignKey("sessions.id"), nullable=False),
    Column("seq", BigInteger, nullable=False),
    # Set when the run begins: what it says belongs there, also when a new one was started since.
    Column("transcript", Integer, nullable=False, server_default="0"),
    Column("kind", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("collecting", Boolean, nullable=False, server_default=text("false")),
    Column("ready_ms", BigInteger, nullable=False),
    Column("target", Text, nullable=False),
    Column("reply_to", Text),
    Column("speaker", Text, nullable=False),
    Column("step", Integer, nullable=False, server_default="0"),
    Column("attempt", Integer, nullable=False, server_default="0"),
    Column("worker", Text),
    Column("fence", BigInteger),
    Column("cancel", Text),
    Column("replaced", Boolean, nullable=False, server_default=text("false")),
    Column("steered", Boolean, nullable=False, server_default=text("false")),
    Column("late", Boolean, nullable=False, server_default=text("false")),
    Column("model", Text, nullable=False, server_default=""),
    Column("input_tokens", BigInteger, nullable=False, server_default="0"),
    Column("output_tokens", BigInteger, nullable=False, server_default="0"),
    Column("cached_tokens", BigInteger, nullable=False, server_default="0"),
    Column("cost_usd", Float),
    Column("tainted", Boolean, nullable=False, server_default=text("false")),
    Column("error", Text),
    # What it is about, in one line for people.
    Column("summary", Text, nullable=False, server_default=""),
    Column("created_ms", BigInteger, nullable=False),
    Column("started_ms", BigInteger),
    Column("ended_ms", BigInteger),
    # When it was taken back: its lines are in no prompt from then on.
    Column("undone_ms", BigInteger),
    UniqueConstraint("session_id", "seq"),
    # I2: the backstop of "one active run a lane", whatever the code above it does.
    partial_index(
        "uq_runs_active",
        "session_id",
        unique=True,
        where="state IN ('running','waiting_for_approval',"
        "'waiting_for_user_question','waiting_for_children')",
    ),
    partial_index("ix_runs_running", "worker", where="state = 'running'"),
    partial_index("ix_runs_queued", "session_id", "seq", where="state = 'queued'"),
)

messages = Table(
    "messages",
    metadata,
    Column("session_id", ForeignKey("sessions.id"), primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("transcript", Integer, nullable=False),
    Column("run_id", Text),
    Column("step", Integer, nullable=False, server_default="0"),
    Column("role", Text, nullable=False),
    Column("payload", Text, nullable=False),
    Column("tokens", Integer, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
)

tool_calls = Table(
    "tool_calls",
    metadata,
    Column("run_id", ForeignKey("runs.id"), primary_key=True),
    Column("step", Integer, primary_key=True, autoincrement=False),
    Column("place", Integer, primary_key=True, autoincrement=False),
    Column("call_id", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("arguments", Text, nullable=False),
    Column("effect", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("decision", Text),
    Column("digest", Text, nullable=False),
    Column("result", Text),
    Column("started_ms", BigInteger),
    Column("ended_ms", BigInteger),
)

open_calls = Table(
    "open_calls",
    metadata,
    Column("id", Text, primary_key=True),
    Column("session_id", ForeignKey("sessions.id"), nullable=False),
    Column("run_id", ForeignKey("runs.id"), nullable=False),
    Column("step", Integer, nullable=False),
    Column("place", Integer, nullable=False),
    Column("kind", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("payload", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("answer", Text),
    Column("answered_by", Text),
    Column("answered_ms", BigInteger),
    Column("created_ms", BigInteger, nullable=False),
    Column("expires_ms", BigInteger),
    Index(None, "run_id"),
    Index(None, "session_id", "state"),
    partial_index("ix_open_calls_expiry", "expires_ms", where="state = 'open'"),
)

events = Table(
    "events",
    metadata,
    Column("position", POSITION, primary_key=True, autoincrement=True),
    Column("session_id", Text, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("run_id", Text),
    Column("kind", Text, nullable=False),
    Column("data", Text, nullable=False),
    Column("at_ms", BigInteger, nullable=False),
    # PostgreSQL only: the writing transaction, so that the feed stops before any still running.
    Column("xid", BigInteger, nullable=False, server_default="0"),
    Index(None, "session_id", "seq"),
    Index(None, "run_id"),
    sqlite_autoincrement=True,
)

outbox = Table(
    "outbox",
    metadata,
    Column("position", POSITION, primary_key=True, autoincrement=True),
    Column("id", Text, nullable=False, unique=True),
    Column("session_id", Text),
    Column("run_id", Text),
    Column("kind", Text, nullable=False),
    Column("channel", Text, nullable=False),
    Column("account", Text, nullable=False),
    Column("chat", Text, nullable=False),
    Column("message", Text, nullable=False),
    Column("open_call_id", Text),
    Column("state", Text, nullable=False),
    Column("rank", Integer, nullable=False, server_default="0"),
    Column("attempt", Integer, nullable=False, server_default="0"),
    Column("next_ms", BigInteger, nullable=False),
    Column("worker", Text),
    Column("fence", BigInteger),
    # When a send began that could not be looked up afterwards; null means that none has.
    Column("begun_ms", BigInteger),
    # JSON: the id of the post in which the text grew, null while nobody knows it. SQL's NULL means
    # that no stream was opened.
    Column("stream", Text),
    Column("posted", Text, nullable=False, server_default="[]"),
    Column("error", Text),
    Column("created_ms", BigInteger, nullable=False),
    Column("settled_ms", BigInteger),
    # I4: exactly one final reply for each finished run.
    partial_index("uq_outbox_final", "run_id", unique=True, where="kind = 'final'"),
    partial_index(
        "ix_outbox_unsettled",
        "channel",
        "account",
        "chat",
        "position",
        where="state IN ('pending','sending','streaming')",
    ),
    # What was given up or is unknown: few rows, which metrics count and people look at.
    partial_index("ix_outbox_problems", "position", where="state IN ('dead','unknown')"),
    partial_index("ix_outbox_open_call", "open_call_id", where="open_call_id IS NOT NULL"),
    Index(None, "session_id"),
    sqlite_autoincrement=True,
)

audit = Table(
    "audit",
    metadata,
    Column("position", POSITION, primary_key=True, autoincrement=True),
    Column("at_ms", BigInteger, nullable=False),
    Column("actor", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("session_id", Text),
    Column("run_id", Text),
    Column("data", Text, nullable=False),
    sqlite_autoincrement=True,
)

idempotency = Table(
    "idempotency",
    metadata,
    Column("key", Text, primary_key=True),
    Column("digest", Text, nullable=False),
    Column("response", Text, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    # Of requests; what was done once for a message is never forgotten.
    Column("expires_ms", BigInteger),
    partial_index("ix_idempotency_expiry", "expires_ms", where="expires_ms IS NOT NULL"),
)

# Uploads, by what they hold. `file` is the name of the file, which no other upload ever has: one
# that is being removed can thus not be that of an upload of the same content.
assets = Table(
    "assets",
    metadata,
    Column("id", Text, primary_key=True),
    Column("digest", Text, nullable=False),
    Column("file", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("media_type", Text, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    # The credential that uploaded it first, as its fingerprint.
    Column("owner", Text, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("uploaded_ms", BigInteger, nullable=False),
    Index(None, "owner"),
    Index(None, "uploaded_ms"),
)

# The sessions that an upload was sent to.
asset_uses = Table(
    "asset_uses",
    metadata,
    Column("asset_id", ForeignKey("assets.id", ondelete="CASCADE"), primary_key=True),
    Column("session_id", ForeignKey("lanes.session_id", ondelete="CASCADE"), primary_key=True),
    Index(None, "session_id"),
)

# `day` is a date for budgets of one day and empty for those that do not end.
budgets = Table(
    "budgets",
    metadata,
    Column("scope", Text, primary_key=True),
    Column("scope_id", Text, primary_key=True),
    Column("day", Text, primary_key=True),
    Column("used_tokens", BigInteger, nullable=False, server_default="0"),
    Column("used_micro_usd", BigInteger, nullable=False, server_default="0"),
    Column("reserved_tokens", BigInteger, nullable=False, server_default="0"),
    Column("reserved_micro_usd", BigInteger, nullable=False, server_default="0"),
    Column("unpriced_calls", BigInteger, nullable=False, server_default="0"),
)

# One open reservation a run: its call that is under way, and the budgets that it counts on.
budget_reservations = Table(
    "budget_reservations",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("step", Integer, nullable=False),
    Column("tokens", BigInteger, nullable=False),
    Column("micro_usd", BigInteger, nullable=False),
    Column("budgets", Text, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
)

# The files of a persona as they were when it was bound, by the digest of what they hold.
personas = Table(
    "personas",
    metadata,
    Column("digest", Text, primary_key=True),
    Column("files", Text, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
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
