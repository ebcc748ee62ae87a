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

_POSITION = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_ACTIVE = (
    "state IN ('running','waiting_for_approval','waiting_for_user_question','waiting_for_children')"
)


def _partial(
    name: str, table: str, columns: list[str], where: str, *, unique: bool = False
) -> None:
    """An index over the rows that fulfil a condition."""
    only = sa.text(where)
    op.create_index(name, table, columns, unique=unique, sqlite_where=only, postgresql_where=only)


def upgrade() -> None:
    _accounts()
    _agent_slots()
    _audit()
    _budget_reservations()
    _budgets()
    _events()
    _idempotency()
    _leases()
    _outbox()
    _pairings()
    _personas()
    _sessions()
    _settings()
    _agents()
    _inputs()
    _lanes()
    _messages()
    _runs()
    _seen_files()
    _agent_cards()
    _agent_results()
    _agent_waits()
    _open_calls()
    _tool_calls()


def _accounts() -> None:
    op.create_table(
        "accounts",
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("person_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("trust", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), server_default="paired", nullable=False),
        sa.Column("direct_chat", sa.Text(), nullable=True),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("updated_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("channel", "account", "user_id", name="pk_accounts"),
    )
    op.create_index("ix_accounts_person_id", "accounts", ["person_id"])


def _agent_slots() -> None:
    op.create_table(
        "agent_slots",
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("session_id", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("number", name="pk_agent_slots"),
        sa.UniqueConstraint("session_id", name="uq_agent_slots_session_id"),
    )


def _audit() -> None:
    op.create_table(
        "audit",
        sa.Column("position", _POSITION, autoincrement=True, nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=True),
        sa.Column("run_id", sa.Text(), nullable=True),
        sa.Column("data", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("position", name="pk_audit"),
        sqlite_autoincrement=True,
    )


def _budget_reservations() -> None:
    op.create_table(
        "budget_reservations",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
        sa.Column("micro_usd", sa.BigInteger(), nullable=False),
        sa.Column("budgets", sa.Text(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", name="pk_budget_reservations"),
    )


def _budgets() -> None:
    op.create_table(
        "budgets",
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("scope_id", sa.Text(), nullable=False),
        sa.Column("day", sa.Text(), nullable=False),
        sa.Column("used_tokens", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("used_micro_usd", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("reserved_tokens", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("reserved_micro_usd", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("unpriced_calls", sa.BigInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("scope", "scope_id", "day", name="pk_budgets"),
    )


def _events() -> None:
    op.create_table(
        "events",
        sa.Column("position", _POSITION, autoincrement=True, nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.Column("xid", sa.BigInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("position", name="pk_events"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_events_run_id", "events", ["run_id"])
    op.create_index("ix_events_session_id_seq", "events", ["session_id", "seq"])


def _idempotency() -> None:
    op.create_table(
        "idempotency",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("response", sa.Text(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_idempotency"),
    )


def _leases() -> None:
    op.create_table(
        "leases",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("holder", sa.Text(), nullable=False),
        sa.Column("fence", sa.BigInteger(), nullable=False),
        sa.Column("expires_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_leases"),
    )


def _outbox() -> None:
    op.create_table(
        "outbox",
        sa.Column("position", _POSITION, autoincrement=True, nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=True),
        sa.Column("run_id", sa.Text(), nullable=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("chat", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("open_call_id", sa.Text(), nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("rank", sa.Integer(), server_default="0", nullable=False),
        sa.Column("attempt", sa.Integer(), server_default="0", nullable=False),
        sa.Column("next_ms", sa.BigInteger(), nullable=False),
        sa.Column("worker", sa.Text(), nullable=True),
        sa.Column("fence", sa.BigInteger(), nullable=True),
        sa.Column("begun_ms", sa.BigInteger(), nullable=True),
        sa.Column("stream", sa.Text(), nullable=True),
        sa.Column("posted", sa.Text(), server_default="[]", nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("settled_ms", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("position", name="pk_outbox"),
        sa.UniqueConstraint("id", name="uq_outbox_id"),
        sqlite_autoincrement=True,
    )
    _partial("ix_outbox_open_call", "outbox", ["open_call_id"], "open_call_id IS NOT NULL")
    _partial("ix_outbox_problems", "outbox", ["position"], "state IN ('dead','unknown')")
    op.create_index("ix_outbox_session_id", "outbox", ["session_id"])
    _partial(
        "ix_outbox_unsettled",
        "outbox",
        ["channel", "account", "chat", "position"],
        "state IN ('pending','sending','streaming')",
    )
    _partial("uq_outbox_final", "outbox", ["run_id"], "kind = 'final'", unique=True)


def _pairings() -> None:
    op.create_table(
        "pairings",
        sa.Column("code", sa.Text(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("expires_ms", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("code", name="pk_pairings"),
    )
    op.create_index(
        "ix_pairings_channel_account_user_id",
        "pairings",
        ["channel", "account", "user_id"],
    )


def _personas() -> None:
    op.create_table(
        "personas",
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("files", sa.Text(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_personas"),
    )


def _sessions() -> None:
    op.create_table(
        "sessions",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), server_default="", nullable=False),
        sa.Column("status", sa.Text(), server_default="open", nullable=False),
        sa.Column("mode", sa.Text(), nullable=False),
        sa.Column("permission_mode", sa.Text(), nullable=True),
        sa.Column("queue_mode", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column("agent", sa.Text(), server_default="main", nullable=False),
        sa.Column("grants", sa.Text(), server_default="[]", nullable=False),
        sa.Column("scope", sa.Text(), nullable=True),
        sa.Column("persona", sa.Text(), nullable=True),
        sa.Column("persona_digest", sa.Text(), nullable=True),
        sa.Column("archived_ms", sa.BigInteger(), nullable=True),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("updated_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_sessions"),
        sa.UniqueConstraint("key", name="uq_sessions_key"),
    )
    op.create_index("ix_sessions_updated_ms", "sessions", ["updated_ms"])


def _settings() -> None:
    op.create_table(
        "settings",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("updated_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_settings"),
    )


def _agents() -> None:
    op.create_table(
        "agents",
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("tree_id", sa.Text(), nullable=False),
        sa.Column("parent_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("depth", sa.Integer(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("label", sa.Text(), server_default="", nullable=False),
        sa.Column("task", sa.Text(), nullable=False),
        sa.Column("mode", sa.Text(), nullable=False),
        sa.Column("on_failure", sa.Text(), nullable=False),
        sa.Column("group_name", sa.Text(), nullable=True),
        sa.Column("prompt", sa.Text(), server_default="", nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("call_place", sa.Integer(), nullable=False),
        sa.Column("request_key", sa.Text(), nullable=True),
        sa.Column("request_digest", sa.Text(), nullable=True),
        sa.Column("share", sa.Text(), server_default="handoff", nullable=False),
        sa.Column("retention", sa.Text(), server_default="retain", nullable=False),
        sa.Column("payer", sa.Text(), server_default="", nullable=False),
        sa.Column("stop", sa.Text(), nullable=True),
        sa.Column("quiet", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("status", sa.Text(), nullable=True),
        sa.Column("result", sa.Text(), server_default="", nullable=False),
        sa.Column("result_bytes", sa.Integer(), server_default="0", nullable=False),
        sa.Column("result_digest", sa.Text(), nullable=True),
        sa.Column("artifacts", sa.Text(), server_default="[]", nullable=False),
        sa.Column("steps", sa.Integer(), server_default="0", nullable=False),
        sa.Column("tool_calls", sa.Integer(), server_default="0", nullable=False),
        sa.Column("input_tokens", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("cost_usd", sa.Float(), nullable=True),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("held_ms", sa.BigInteger(), nullable=True),
        sa.Column("settled_ms", sa.BigInteger(), nullable=True),
        sa.Column("retries", sa.Integer(), server_default="0", nullable=False),
        sa.Column("isolation", sa.Text(), server_default="full", nullable=False),
        sa.Column("worktree", sa.Text(), nullable=True),
        sa.Column("base", sa.Text(), nullable=True),
        sa.Column("tree_state", sa.Text(), nullable=True),
        sa.Column("description", sa.Text(), server_default="", nullable=False),
        sa.Column("deadline_ms", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name="fk_agents_session_id"),
        sa.PrimaryKeyConstraint("session_id", name="pk_agents"),
        sa.UniqueConstraint("tree_id", "name", name="uq_agents_tree_id_name"),
        sa.UniqueConstraint("tree_id", "place", name="uq_agents_tree_id_place"),
    )
    _partial(
        "ix_agents_ending", "agents", ["created_ms"], "stop IS NOT NULL AND settled_ms IS NULL"
    )
    _partial("ix_agents_held", "agents", ["held_ms"], "held_ms IS NOT NULL")
    _partial(
        "ix_agents_left",
        "agents",
        ["settled_ms"],
        "tree_state IN ('open', 'clean') AND settled_ms IS NOT NULL",
    )
    _partial("ix_agents_live", "agents", ["parent_id"], "settled_ms IS NULL")
    op.create_index("ix_agents_payer", "agents", ["payer"])
    _partial("ix_agents_request", "agents", ["parent_id", "request_key"], "request_key IS NOT NULL")
    op.create_index("ix_agents_run_id", "agents", ["run_id"])
    _partial(
        "ix_agents_timed",
        "agents",
        ["deadline_ms"],
        "deadline_ms IS NOT NULL AND settled_ms IS NULL AND stop IS NULL",
    )


def _inputs() -> None:
    op.create_table(
        "inputs",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("identity", sa.Text(), nullable=False),
        sa.Column("origin", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("speaker", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("received_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name="fk_inputs_session_id"),
        sa.PrimaryKeyConstraint("id", name="pk_inputs"),
        sa.UniqueConstraint("identity", name="uq_inputs_identity"),
        sa.UniqueConstraint("session_id", "seq", name="uq_inputs_session_id_seq"),
    )
    _partial("ix_inputs_pending", "inputs", ["run_id"], "state = 'pending'")


def _lanes() -> None:
    op.create_table(
        "lanes",
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), server_default="conversation", nullable=False),
        sa.Column("parent_id", sa.Text(), nullable=True),
        sa.Column("root_id", sa.Text(), nullable=False),
        sa.Column("depth", sa.Integer(), server_default="0", nullable=False),
        sa.Column("input_seq", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("run_seq", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("event_seq", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("message_seq", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("transcript", sa.Integer(), server_default="1", nullable=False),
        sa.Column("transcript_from", sa.BigInteger(), server_default="1", nullable=False),
        sa.Column("window_from", sa.BigInteger(), server_default="1", nullable=False),
        sa.Column("active_run", sa.Text(), nullable=True),
        sa.Column("ready_ms", sa.BigInteger(), nullable=True),
        sa.Column("gate", sa.Text(), nullable=True),
        sa.Column("wants_ms", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name="fk_lanes_session_id"),
        sa.PrimaryKeyConstraint("session_id", name="pk_lanes"),
    )
    _partial("ix_lanes_below", "lanes", ["root_id"], "parent_id IS NOT NULL")
    _partial("ix_lanes_ready", "lanes", ["ready_ms"], "ready_ms IS NOT NULL")
    _partial("ix_lanes_wants", "lanes", ["wants_ms"], "wants_ms IS NOT NULL")


def _messages() -> None:
    op.create_table(
        "messages",
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("seq", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("transcript", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=True),
        sa.Column("step", sa.Integer(), server_default="0", nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.Column("tokens", sa.Integer(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name="fk_messages_session_id"),
        sa.PrimaryKeyConstraint("session_id", "seq", name="pk_messages"),
    )


def _runs() -> None:
    op.create_table(
        "runs",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("transcript", sa.Integer(), server_default="0", nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("collecting", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("ready_ms", sa.BigInteger(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("reply_to", sa.Text(), nullable=True),
        sa.Column("speaker", sa.Text(), nullable=False),
        sa.Column("step", sa.Integer(), server_default="0", nullable=False),
        sa.Column("attempt", sa.Integer(), server_default="0", nullable=False),
        sa.Column("worker", sa.Text(), nullable=True),
        sa.Column("fence", sa.BigInteger(), nullable=True),
        sa.Column("cancel", sa.Text(), nullable=True),
        sa.Column("replaced", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("steered", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("late", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("model", sa.Text(), server_default="", nullable=False),
        sa.Column("input_tokens", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("cached_tokens", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("cost_usd", sa.Float(), nullable=True),
        sa.Column("tainted", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("started_ms", sa.BigInteger(), nullable=True),
        sa.Column("ended_ms", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name="fk_runs_session_id"),
        sa.PrimaryKeyConstraint("id", name="pk_runs"),
        sa.UniqueConstraint("session_id", "seq", name="uq_runs_session_id_seq"),
    )
    _partial("ix_runs_queued", "runs", ["session_id", "seq"], "state = 'queued'")
    _partial("ix_runs_running", "runs", ["worker"], "state = 'running'")
    _partial("uq_runs_active", "runs", ["session_id"], _ACTIVE, unique=True)


def _seen_files() -> None:
    op.create_table(
        "seen_files",
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("mtime_ns", sa.BigInteger(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name="fk_seen_files_session_id"),
        sa.PrimaryKeyConstraint("session_id", "path", name="pk_seen_files"),
    )


def _agent_cards() -> None:
    op.create_table(
        "agent_cards",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("shown", sa.Text(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("next_ms", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_agent_cards_run_id"),
        sa.PrimaryKeyConstraint("id", name="pk_agent_cards"),
    )
    _partial("ix_agent_cards_next", "agent_cards", ["next_ms"], "next_ms IS NOT NULL")


def _agent_results() -> None:
    op.create_table(
        "agent_results",
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("words", sa.Text(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["session_id"], ["agents.session_id"], name="fk_agent_results_session_id"
        ),
        sa.PrimaryKeyConstraint("session_id", "digest", name="pk_agent_results"),
    )


def _agent_waits() -> None:
    op.create_table(
        "agent_waits",
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("other_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["other_id"], ["agents.session_id"], name="fk_agent_waits_other_id"
        ),
        sa.ForeignKeyConstraint(
            ["session_id"], ["agents.session_id"], name="fk_agent_waits_session_id"
        ),
        sa.PrimaryKeyConstraint("session_id", "other_id", name="pk_agent_waits"),
    )


def _open_calls() -> None:
    op.create_table(
        "open_calls",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("answer", sa.Text(), nullable=True),
        sa.Column("answered_by", sa.Text(), nullable=True),
        sa.Column("answered_ms", sa.BigInteger(), nullable=True),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("expires_ms", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_open_calls_run_id"),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name="fk_open_calls_session_id"),
        sa.PrimaryKeyConstraint("id", name="pk_open_calls"),
    )
    _partial("ix_open_calls_expiry", "open_calls", ["expires_ms"], "state = 'open'")
    op.create_index("ix_open_calls_run_id", "open_calls", ["run_id"])
    op.create_index(
        "ix_open_calls_session_id_state", "open_calls", ["session_id", "state"], unique=False
    )


def _tool_calls() -> None:
    op.create_table(
        "tool_calls",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("step", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("place", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("call_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("arguments", sa.Text(), nullable=False),
        sa.Column("effect", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("decision", sa.Text(), nullable=True),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("result", sa.Text(), nullable=True),
        sa.Column("started_ms", sa.BigInteger(), nullable=True),
        sa.Column("ended_ms", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_tool_calls_run_id"),
        sa.PrimaryKeyConstraint("run_id", "step", "place", name="pk_tool_calls"),
    )
