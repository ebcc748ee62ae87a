"""The first schema: sessions, lanes, runs, their transcripts, what waits and what is sent.

Frozen: it says what the tables were, whatever `tables.py` says today.
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_ACTIVE = (
    "state IN ('running','waiting_for_approval','waiting_for_user_question','waiting_for_children')"
)
_POSITION = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    _accounts()
    _audit()
    _events()
    _idempotency()
    _leases()
    _outbox()
    _pairings()
    _sessions()
    _settings()
    _inputs()
    _lanes()
    _messages()
    _runs()
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
        sa.PrimaryKeyConstraint("channel", "account", "user_id", name=op.f("pk_accounts")),
    )
    op.create_index(op.f("ix_accounts_person_id"), "accounts", ["person_id"], unique=False)


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
        sa.PrimaryKeyConstraint("position", name=op.f("pk_audit")),
        sqlite_autoincrement=True,
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
        sa.PrimaryKeyConstraint("position", name=op.f("pk_events")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_events_run_id"), "events", ["run_id"], unique=False)
    op.create_index(op.f("ix_events_session_id_seq"), "events", ["session_id", "seq"], unique=False)


def _idempotency() -> None:
    op.create_table(
        "idempotency",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("response", sa.Text(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_idempotency")),
    )


def _leases() -> None:
    op.create_table(
        "leases",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("holder", sa.Text(), nullable=False),
        sa.Column("fence", sa.BigInteger(), nullable=False),
        sa.Column("expires_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_leases")),
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
        sa.Column("posted", sa.Text(), server_default="[]", nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("settled_ms", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("position", name=op.f("pk_outbox")),
        sa.UniqueConstraint("id", name=op.f("uq_outbox_id")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_outbox_open_call",
        "outbox",
        ["open_call_id"],
        unique=False,
        sqlite_where=sa.text("open_call_id IS NOT NULL"),
        postgresql_where=sa.text("open_call_id IS NOT NULL"),
    )
    op.create_index(op.f("ix_outbox_session_id"), "outbox", ["session_id"], unique=False)
    op.create_index(
        "ix_outbox_unsettled",
        "outbox",
        ["channel", "account", "chat", "position"],
        unique=False,
        sqlite_where=sa.text("state IN ('pending','sending','streaming')"),
        postgresql_where=sa.text("state IN ('pending','sending','streaming')"),
    )
    op.create_index(
        "uq_outbox_final",
        "outbox",
        ["run_id"],
        unique=True,
        sqlite_where=sa.text("kind = 'final'"),
        postgresql_where=sa.text("kind = 'final'"),
    )


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
        sa.PrimaryKeyConstraint("code", name=op.f("pk_pairings")),
    )
    op.create_index(
        op.f("ix_pairings_channel_account_user_id"),
        "pairings",
        ["channel", "account", "user_id"],
        unique=False,
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
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("updated_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sessions")),
        sa.UniqueConstraint("key", name=op.f("uq_sessions_key")),
    )
    op.create_index(op.f("ix_sessions_updated_ms"), "sessions", ["updated_ms"], unique=False)


def _settings() -> None:
    op.create_table(
        "settings",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("updated_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_settings")),
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
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name=op.f("fk_inputs_session_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_inputs")),
        sa.UniqueConstraint("identity", name=op.f("uq_inputs_identity")),
        sa.UniqueConstraint("session_id", "seq", name=op.f("uq_inputs_session_id_seq")),
    )
    op.create_index(
        "ix_inputs_pending",
        "inputs",
        ["run_id"],
        unique=False,
        sqlite_where=sa.text("state = 'pending'"),
        postgresql_where=sa.text("state = 'pending'"),
    )


def _lanes() -> None:
    op.create_table(
        "lanes",
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("input_seq", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("run_seq", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("event_seq", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("message_seq", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("transcript", sa.Integer(), server_default="1", nullable=False),
        sa.Column("transcript_from", sa.BigInteger(), server_default="1", nullable=False),
        sa.Column("window_from", sa.BigInteger(), server_default="1", nullable=False),
        sa.Column("active_run", sa.Text(), nullable=True),
        sa.Column("ready_ms", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name=op.f("fk_lanes_session_id")),
        sa.PrimaryKeyConstraint("session_id", name=op.f("pk_lanes")),
    )
    op.create_index(
        "ix_lanes_ready",
        "lanes",
        ["ready_ms"],
        unique=False,
        sqlite_where=sa.text("ready_ms IS NOT NULL"),
        postgresql_where=sa.text("ready_ms IS NOT NULL"),
    )


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
        sa.ForeignKeyConstraint(
            ["session_id"], ["sessions.id"], name=op.f("fk_messages_session_id")
        ),
        sa.PrimaryKeyConstraint("session_id", "seq", name=op.f("pk_messages")),
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
        sa.Column("collecting", sa.Boolean(), server_default=sa.text("(false)"), nullable=False),
        sa.Column("ready_ms", sa.BigInteger(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("reply_to", sa.Text(), nullable=True),
        sa.Column("speaker", sa.Text(), nullable=False),
        sa.Column("step", sa.Integer(), server_default="0", nullable=False),
        sa.Column("attempt", sa.Integer(), server_default="0", nullable=False),
        sa.Column("worker", sa.Text(), nullable=True),
        sa.Column("fence", sa.BigInteger(), nullable=True),
        sa.Column("cancel", sa.Text(), nullable=True),
        sa.Column("model", sa.Text(), server_default="", nullable=False),
        sa.Column("input_tokens", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("cached_tokens", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("cost_usd", sa.Float(), nullable=True),
        sa.Column("tainted", sa.Boolean(), server_default=sa.text("(false)"), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("started_ms", sa.BigInteger(), nullable=True),
        sa.Column("ended_ms", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name=op.f("fk_runs_session_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
        sa.UniqueConstraint("session_id", "seq", name=op.f("uq_runs_session_id_seq")),
    )
    op.create_index(
        "ix_runs_queued",
        "runs",
        ["session_id", "seq"],
        unique=False,
        sqlite_where=sa.text("state = 'queued'"),
        postgresql_where=sa.text("state = 'queued'"),
    )
    op.create_index(
        "ix_runs_running",
        "runs",
        ["worker"],
        unique=False,
        sqlite_where=sa.text("state = 'running'"),
        postgresql_where=sa.text("state = 'running'"),
    )
    op.create_index(
        "uq_runs_active",
        "runs",
        ["session_id"],
        unique=True,
        sqlite_where=sa.text(_ACTIVE),
        postgresql_where=sa.text(_ACTIVE),
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
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_open_calls_run_id")),
        sa.ForeignKeyConstraint(
            ["session_id"], ["sessions.id"], name=op.f("fk_open_calls_session_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_open_calls")),
    )
    op.create_index(
        "ix_open_calls_expiry",
        "open_calls",
        ["expires_ms"],
        unique=False,
        sqlite_where=sa.text("state = 'open'"),
        postgresql_where=sa.text("state = 'open'"),
    )
    op.create_index(op.f("ix_open_calls_run_id"), "open_calls", ["run_id"], unique=False)
    op.create_index(
        op.f("ix_open_calls_session_id_state"), "open_calls", ["session_id", "state"], unique=False
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
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_tool_calls_run_id")),
        sa.PrimaryKeyConstraint("run_id", "step", "place", name=op.f("pk_tool_calls")),
    )
