"""The first schema: every table of version 0.1.0.

Frozen once 0.1.0 is released: it says what the tables were, whatever the tables' modules say later.
The number stands for the release and was never used before: databases numbered 0001 to 0007 were
made before any release, and are refused.
"""

import sqlalchemy as sa
from alembic import op

revision = "0100"
down_revision = None
branch_labels = None
depends_on = None
compatible_from = "0100"

# Frozen here, so that keys keep their names whatever the tables' modules say later.
_TABLES = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)
_POSITION = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_ACTIVE = (
    "state IN ('running','waiting_for_approval','waiting_for_user_question','waiting_for_children')"
)


def _partial(name: str, *columns: str, where: str, unique: bool = False) -> sa.Index:
    """An index over the rows that fulfil a condition."""
    only = sa.text(where)
    return sa.Index(name, *columns, unique=unique, sqlite_where=only, postgresql_where=only)


def upgrade() -> None:
    _TABLES.create_all(op.get_bind(), checkfirst=False)


sa.Table(
    "accounts",
    _TABLES,
    sa.Column("channel", sa.Text, primary_key=True),
    sa.Column("account", sa.Text, primary_key=True),
    sa.Column("user_id", sa.Text, primary_key=True),
    sa.Column("person_id", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("trust", sa.Text, nullable=False),
    sa.Column("source", sa.Text, nullable=False, server_default="paired"),
    sa.Column("direct_chat", sa.Text),
    sa.Column("created_ms", sa.BigInteger, nullable=False),
    sa.Column("updated_ms", sa.BigInteger, nullable=False),
    sa.Index(None, "person_id"),
)
sa.Table(
    "agent_slots",
    _TABLES,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("session_id", sa.Text, unique=True),
)
sa.Table(
    "audit",
    _TABLES,
    sa.Column("position", _POSITION, primary_key=True, autoincrement=True),
    sa.Column("at_ms", sa.BigInteger, nullable=False),
    sa.Column("actor", sa.Text, nullable=False),
    sa.Column("action", sa.Text, nullable=False),
    sa.Column("session_id", sa.Text),
    sa.Column("run_id", sa.Text),
    sa.Column("data", sa.Text, nullable=False),
    sqlite_autoincrement=True,
)
sa.Table(
    "budget_reservations",
    _TABLES,
    sa.Column("run_id", sa.Text, primary_key=True),
    sa.Column("step", sa.Integer, nullable=False),
    sa.Column("tokens", sa.BigInteger, nullable=False),
    sa.Column("micro_usd", sa.BigInteger, nullable=False),
    sa.Column("budgets", sa.Text, nullable=False),
    sa.Column("created_ms", sa.BigInteger, nullable=False),
)
sa.Table(
    "budgets",
    _TABLES,
    sa.Column("scope", sa.Text, primary_key=True),
    sa.Column("scope_id", sa.Text, primary_key=True),
    sa.Column("day", sa.Text, primary_key=True),
    sa.Column("used_tokens", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("used_micro_usd", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("reserved_tokens", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("reserved_micro_usd", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("unpriced_calls", sa.BigInteger, nullable=False, server_default="0"),
)
sa.Table(
    "events",
    _TABLES,
    sa.Column("position", _POSITION, primary_key=True, autoincrement=True),
    sa.Column("session_id", sa.Text, nullable=False),
    sa.Column("seq", sa.BigInteger, nullable=False),
    sa.Column("run_id", sa.Text),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("data", sa.Text, nullable=False),
    sa.Column("at_ms", sa.BigInteger, nullable=False),
    sa.Column("xid", sa.BigInteger, nullable=False, server_default="0"),
    sa.Index(None, "run_id"),
    sa.Index(None, "session_id", "seq"),
    sqlite_autoincrement=True,
)
sa.Table(
    "idempotency",
    _TABLES,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("digest", sa.Text, nullable=False),
    sa.Column("response", sa.Text, nullable=False),
    sa.Column("created_ms", sa.BigInteger, nullable=False),
)
sa.Table(
    "leases",
    _TABLES,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("holder", sa.Text, nullable=False),
    sa.Column("fence", sa.BigInteger, nullable=False),
    sa.Column("expires_ms", sa.BigInteger, nullable=False),
)
sa.Table(
    "outbox",
    _TABLES,
    sa.Column("position", _POSITION, primary_key=True, autoincrement=True),
    sa.Column("id", sa.Text, nullable=False, unique=True),
    sa.Column("session_id", sa.Text),
    sa.Column("run_id", sa.Text),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("channel", sa.Text, nullable=False),
    sa.Column("account", sa.Text, nullable=False),
    sa.Column("chat", sa.Text, nullable=False),
    sa.Column("message", sa.Text, nullable=False),
    sa.Column("open_call_id", sa.Text),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("rank", sa.Integer, nullable=False, server_default="0"),
    sa.Column("attempt", sa.Integer, nullable=False, server_default="0"),
    sa.Column("next_ms", sa.BigInteger, nullable=False),
    sa.Column("worker", sa.Text),
    sa.Column("fence", sa.BigInteger),
    sa.Column("begun_ms", sa.BigInteger),
    sa.Column("stream", sa.Text),
    sa.Column("posted", sa.Text, nullable=False, server_default="[]"),
    sa.Column("error", sa.Text),
    sa.Column("created_ms", sa.BigInteger, nullable=False),
    sa.Column("settled_ms", sa.BigInteger),
    _partial("ix_outbox_open_call", "open_call_id", where="open_call_id IS NOT NULL"),
    _partial("ix_outbox_problems", "position", where="state IN ('dead','unknown')"),
    sa.Index(None, "session_id"),
    _partial(
        "ix_outbox_unsettled",
        "channel",
        "account",
        "chat",
        "position",
        where="state IN ('pending','sending','streaming')",
    ),
    _partial("uq_outbox_final", "run_id", where="kind = 'final'", unique=True),
    sqlite_autoincrement=True,
)
sa.Table(
    "pairings",
    _TABLES,
    sa.Column("code", sa.Text, primary_key=True),
    sa.Column("channel", sa.Text, nullable=False),
    sa.Column("account", sa.Text, nullable=False),
    sa.Column("user_id", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("address", sa.Text, nullable=False),
    sa.Column("created_ms", sa.BigInteger, nullable=False),
    sa.Column("expires_ms", sa.BigInteger, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Index(None, "channel", "account", "user_id"),
)
sa.Table(
    "personas",
    _TABLES,
    sa.Column("digest", sa.Text, primary_key=True),
    sa.Column("files", sa.Text, nullable=False),
    sa.Column("created_ms", sa.BigInteger, nullable=False),
)
sa.Table(
    "sessions",
    _TABLES,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("key", sa.Text, nullable=False, unique=True),
    sa.Column("address", sa.Text, nullable=False),
    sa.Column("title", sa.Text, nullable=False, server_default=""),
    sa.Column("status", sa.Text, nullable=False, server_default="open"),
    sa.Column("mode", sa.Text, nullable=False),
    sa.Column("permission_mode", sa.Text),
    sa.Column("queue_mode", sa.Text, nullable=False),
    sa.Column("model", sa.Text),
    sa.Column("agent", sa.Text, nullable=False, server_default="main"),
    sa.Column("grants", sa.Text, nullable=False, server_default="[]"),
    sa.Column("scope", sa.Text),
    sa.Column("persona", sa.Text),
    sa.Column("persona_digest", sa.Text),
    sa.Column("archived_ms", sa.BigInteger),
    sa.Column("created_ms", sa.BigInteger, nullable=False),
    sa.Column("updated_ms", sa.BigInteger, nullable=False),
    sa.Index(None, "updated_ms"),
)
sa.Table(
    "settings",
    _TABLES,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
    sa.Column("updated_ms", sa.BigInteger, nullable=False),
)
sa.Table(
    "agents",
    _TABLES,
    sa.Column("session_id", sa.Text, sa.ForeignKey("sessions.id"), primary_key=True),
    sa.Column("tree_id", sa.Text, nullable=False),
    sa.Column("parent_id", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("place", sa.Integer, nullable=False),
    sa.Column("depth", sa.Integer, nullable=False),
    sa.Column("type", sa.Text, nullable=False),
    sa.Column("label", sa.Text, nullable=False, server_default=""),
    sa.Column("task", sa.Text, nullable=False),
    sa.Column("mode", sa.Text, nullable=False),
    sa.Column("on_failure", sa.Text, nullable=False),
    sa.Column("group_name", sa.Text),
    sa.Column("prompt", sa.Text, nullable=False, server_default=""),
    sa.Column("run_id", sa.Text, nullable=False),
    sa.Column("step", sa.Integer, nullable=False),
    sa.Column("call_place", sa.Integer, nullable=False),
    sa.Column("request_key", sa.Text),
    sa.Column("request_digest", sa.Text),
    sa.Column("share", sa.Text, nullable=False, server_default="handoff"),
    sa.Column("retention", sa.Text, nullable=False, server_default="retain"),
    sa.Column("payer", sa.Text, nullable=False, server_default=""),
    sa.Column("stop", sa.Text),
    sa.Column("quiet", sa.Boolean, nullable=False, server_default=sa.text("false")),
    sa.Column("status", sa.Text),
    sa.Column("result", sa.Text, nullable=False, server_default=""),
    sa.Column("result_bytes", sa.Integer, nullable=False, server_default="0"),
    sa.Column("result_digest", sa.Text),
    sa.Column("artifacts", sa.Text, nullable=False, server_default="[]"),
    sa.Column("steps", sa.Integer, nullable=False, server_default="0"),
    sa.Column("tool_calls", sa.Integer, nullable=False, server_default="0"),
    sa.Column("input_tokens", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("output_tokens", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("cost_usd", sa.Float),
    sa.Column("created_ms", sa.BigInteger, nullable=False),
    sa.Column("held_ms", sa.BigInteger),
    sa.Column("settled_ms", sa.BigInteger),
    sa.Column("retries", sa.Integer, nullable=False, server_default="0"),
    sa.Column("isolation", sa.Text, nullable=False, server_default="full"),
    sa.Column("worktree", sa.Text),
    sa.Column("base", sa.Text),
    sa.Column("tree_state", sa.Text),
    sa.Column("description", sa.Text, nullable=False, server_default=""),
    sa.Column("deadline_ms", sa.BigInteger),
    sa.UniqueConstraint("tree_id", "name"),
    sa.UniqueConstraint("tree_id", "place"),
    _partial("ix_agents_ending", "created_ms", where="stop IS NOT NULL AND settled_ms IS NULL"),
    _partial("ix_agents_held", "held_ms", where="held_ms IS NOT NULL"),
    _partial(
        "ix_agents_left",
        "settled_ms",
        where="tree_state IN ('open', 'clean') AND settled_ms IS NOT NULL",
    ),
    _partial("ix_agents_live", "parent_id", where="settled_ms IS NULL"),
    sa.Index(None, "payer"),
    _partial("ix_agents_request", "parent_id", "request_key", where="request_key IS NOT NULL"),
    sa.Index(None, "run_id"),
    _partial(
        "ix_agents_timed",
        "deadline_ms",
        where="deadline_ms IS NOT NULL AND settled_ms IS NULL AND stop IS NULL",
    ),
)
sa.Table(
    "inputs",
    _TABLES,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("session_id", sa.Text, sa.ForeignKey("sessions.id"), nullable=False),
    sa.Column("seq", sa.BigInteger, nullable=False),
    sa.Column("identity", sa.Text, nullable=False, unique=True),
    sa.Column("origin", sa.Text, nullable=False),
    sa.Column("run_id", sa.Text),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("speaker", sa.Text, nullable=False),
    sa.Column("message", sa.Text, nullable=False),
    sa.Column("received_ms", sa.BigInteger, nullable=False),
    sa.UniqueConstraint("session_id", "seq"),
    _partial("ix_inputs_pending", "run_id", where="state = 'pending'"),
)
sa.Table(
    "lanes",
    _TABLES,
    sa.Column("session_id", sa.Text, sa.ForeignKey("sessions.id"), primary_key=True),
    sa.Column("kind", sa.Text, nullable=False, server_default="conversation"),
    sa.Column("parent_id", sa.Text),
    sa.Column("root_id", sa.Text, nullable=False),
    sa.Column("depth", sa.Integer, nullable=False, server_default="0"),
    sa.Column("input_seq", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("run_seq", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("event_seq", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("message_seq", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("transcript", sa.Integer, nullable=False, server_default="1"),
    sa.Column("transcript_from", sa.BigInteger, nullable=False, server_default="1"),
    sa.Column("window_from", sa.BigInteger, nullable=False, server_default="1"),
    sa.Column("active_run", sa.Text),
    sa.Column("ready_ms", sa.BigInteger),
    sa.Column("gate", sa.Text),
    sa.Column("wants_ms", sa.BigInteger),
    _partial("ix_lanes_below", "root_id", where="parent_id IS NOT NULL"),
    _partial("ix_lanes_ready", "ready_ms", where="ready_ms IS NOT NULL"),
    _partial("ix_lanes_wants", "wants_ms", where="wants_ms IS NOT NULL"),
)
sa.Table(
    "messages",
    _TABLES,
    sa.Column("session_id", sa.Text, sa.ForeignKey("sessions.id"), primary_key=True),
    sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("transcript", sa.Integer, nullable=False),
    sa.Column("run_id", sa.Text),
    sa.Column("step", sa.Integer, nullable=False, server_default="0"),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("payload", sa.Text, nullable=False),
    sa.Column("tokens", sa.Integer, nullable=False),
    sa.Column("created_ms", sa.BigInteger, nullable=False),
)
sa.Table(
    "runs",
    _TABLES,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("session_id", sa.Text, sa.ForeignKey("sessions.id"), nullable=False),
    sa.Column("seq", sa.BigInteger, nullable=False),
    sa.Column("transcript", sa.Integer, nullable=False, server_default="0"),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("collecting", sa.Boolean, nullable=False, server_default=sa.text("false")),
    sa.Column("ready_ms", sa.BigInteger, nullable=False),
    sa.Column("target", sa.Text, nullable=False),
    sa.Column("reply_to", sa.Text),
    sa.Column("speaker", sa.Text, nullable=False),
    sa.Column("step", sa.Integer, nullable=False, server_default="0"),
    sa.Column("attempt", sa.Integer, nullable=False, server_default="0"),
    sa.Column("worker", sa.Text),
    sa.Column("fence", sa.BigInteger),
    sa.Column("cancel", sa.Text),
    sa.Column("replaced", sa.Boolean, nullable=False, server_default=sa.text("false")),
    sa.Column("steered", sa.Boolean, nullable=False, server_default=sa.text("false")),
    sa.Column("late", sa.Boolean, nullable=False, server_default=sa.text("false")),
    sa.Column("model", sa.Text, nullable=False, server_default=""),
    sa.Column("input_tokens", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("output_tokens", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("cached_tokens", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("cost_usd", sa.Float),
    sa.Column("tainted", sa.Boolean, nullable=False, server_default=sa.text("false")),
    sa.Column("error", sa.Text),
    sa.Column("created_ms", sa.BigInteger, nullable=False),
    sa.Column("started_ms", sa.BigInteger),
    sa.Column("ended_ms", sa.BigInteger),
    sa.UniqueConstraint("session_id", "seq"),
    _partial("ix_runs_queued", "session_id", "seq", where="state = 'queued'"),
    _partial("ix_runs_running", "worker", where="state = 'running'"),
    _partial("uq_runs_active", "session_id", where=_ACTIVE, unique=True),
)
sa.Table(
    "seen_files",
    _TABLES,
    sa.Column("session_id", sa.Text, sa.ForeignKey("sessions.id"), primary_key=True),
    sa.Column("path", sa.Text, primary_key=True),
    sa.Column("mtime_ns", sa.BigInteger, nullable=False),
    sa.Column("size", sa.BigInteger, nullable=False),
    sa.Column("digest", sa.Text, nullable=False),
)
sa.Table(
    "agent_cards",
    _TABLES,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("run_id", sa.Text, sa.ForeignKey("runs.id"), nullable=False),
    sa.Column("step", sa.Integer, nullable=False),
    sa.Column("shown", sa.Text, nullable=False),
    sa.Column("created_ms", sa.BigInteger, nullable=False),
    sa.Column("next_ms", sa.BigInteger),
    _partial("ix_agent_cards_next", "next_ms", where="next_ms IS NOT NULL"),
)
sa.Table(
    "agent_results",
    _TABLES,
    sa.Column("session_id", sa.Text, sa.ForeignKey("agents.session_id"), primary_key=True),
    sa.Column("digest", sa.Text, primary_key=True),
    sa.Column("words", sa.Text, nullable=False),
    sa.Column("size", sa.Integer, nullable=False),
    sa.Column("created_ms", sa.BigInteger, nullable=False),
)
sa.Table(
    "agent_waits",
    _TABLES,
    sa.Column("session_id", sa.Text, sa.ForeignKey("agents.session_id"), primary_key=True),
    sa.Column("other_id", sa.Text, sa.ForeignKey("agents.session_id"), primary_key=True),
    sa.Column("kind", sa.Text, nullable=False),
)
sa.Table(
    "open_calls",
    _TABLES,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("session_id", sa.Text, sa.ForeignKey("sessions.id"), nullable=False),
    sa.Column("run_id", sa.Text, sa.ForeignKey("runs.id"), nullable=False),
    sa.Column("step", sa.Integer, nullable=False),
    sa.Column("place", sa.Integer, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("digest", sa.Text, nullable=False),
    sa.Column("payload", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("answer", sa.Text),
    sa.Column("answered_by", sa.Text),
    sa.Column("answered_ms", sa.BigInteger),
    sa.Column("created_ms", sa.BigInteger, nullable=False),
    sa.Column("expires_ms", sa.BigInteger),
    _partial("ix_open_calls_expiry", "expires_ms", where="state = 'open'"),
    sa.Index(None, "run_id"),
    sa.Index(None, "session_id", "state"),
)
sa.Table(
    "tool_calls",
    _TABLES,
    sa.Column("run_id", sa.Text, sa.ForeignKey("runs.id"), primary_key=True),
    sa.Column("step", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("place", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("call_id", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("arguments", sa.Text, nullable=False),
    sa.Column("effect", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("decision", sa.Text),
    sa.Column("digest", sa.Text, nullable=False),
    sa.Column("result", sa.Text),
    sa.Column("started_ms", sa.BigInteger),
    sa.Column("ended_ms", sa.BigInteger),
)
