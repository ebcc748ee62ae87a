"""Agents: children of sessions, whom they wait for, their slots, and the gate of their lanes; and
the personas that they inherit.

Only adds, and yet nothing older may run beside it: that would take a child for a conversation.

Frozen: it says what the tables were, whatever `tables_agents.py` says today.
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None
compatible_from = "0005"

_LIVE = sa.text("settled_ms IS NULL")
_HELD = sa.text("held_ms IS NOT NULL")
_ENDING = sa.text("stop IS NOT NULL AND settled_ms IS NULL")
_ASKED = sa.text("request_key IS NOT NULL")
_SHOWS = sa.text("next_ms IS NOT NULL")
_LEFT = sa.text("tree_state IN ('open', 'clean') AND settled_ms IS NOT NULL")
_WANTS = sa.text("wants_ms IS NOT NULL")


def upgrade() -> None:
    op.add_column("sessions", sa.Column("persona", sa.Text(), nullable=True))
    op.add_column("sessions", sa.Column("persona_digest", sa.Text(), nullable=True))
    op.create_table(
        "personas",
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("files", sa.Text(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_personas")),
    )
    op.add_column("lanes", sa.Column("gate", sa.Text(), nullable=True))
    op.add_column("lanes", sa.Column("wants_ms", sa.BigInteger(), nullable=True))
    op.create_index(
        "ix_lanes_wants", "lanes", ["wants_ms"], sqlite_where=_WANTS, postgresql_where=_WANTS
    )
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
        sa.PrimaryKeyConstraint("session_id", name=op.f("pk_agents")),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name=op.f("fk_agents_session_id")),
        sa.UniqueConstraint("tree_id", "name", name=op.f("uq_agents_tree_id_name")),
        sa.UniqueConstraint("tree_id", "place", name=op.f("uq_agents_tree_id_place")),
    )
    op.create_index(op.f("ix_agents_run_id"), "agents", ["run_id"])
    op.create_index(op.f("ix_agents_payer"), "agents", ["payer"])
    op.create_index(
        "ix_agents_request",
        "agents",
        ["parent_id", "request_key"],
        sqlite_where=_ASKED,
        postgresql_where=_ASKED,
    )
    op.create_index(
        "ix_agents_live", "agents", ["parent_id"], sqlite_where=_LIVE, postgresql_where=_LIVE
    )
    op.create_index(
        "ix_agents_held", "agents", ["held_ms"], sqlite_where=_HELD, postgresql_where=_HELD
    )
    op.create_index(
        "ix_agents_ending",
        "agents",
        ["created_ms"],
        sqlite_where=_ENDING,
        postgresql_where=_ENDING,
    )
    op.create_index(
        "ix_agents_left", "agents", ["settled_ms"], sqlite_where=_LEFT, postgresql_where=_LEFT
    )
    op.create_table(
        "seen_files",
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("mtime_ns", sa.BigInteger(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("session_id", "path", name=op.f("pk_seen_files")),
        sa.ForeignKeyConstraint(
            ["session_id"], ["sessions.id"], name=op.f("fk_seen_files_session_id")
        ),
    )
    op.create_table(
        "agent_waits",
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("other_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("session_id", "other_id", name=op.f("pk_agent_waits")),
        sa.ForeignKeyConstraint(
            ["session_id"], ["agents.session_id"], name=op.f("fk_agent_waits_session_id")
        ),
        sa.ForeignKeyConstraint(
            ["other_id"], ["agents.session_id"], name=op.f("fk_agent_waits_other_id")
        ),
    )
    op.create_table(
        "agent_results",
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("words", sa.Text(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("session_id", "digest", name=op.f("pk_agent_results")),
        sa.ForeignKeyConstraint(
            ["session_id"], ["agents.session_id"], name=op.f("fk_agent_results_session_id")
        ),
    )
    op.create_table(
        "agent_cards",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("shown", sa.Text(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("next_ms", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_agent_cards")),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_agent_cards_run_id")),
    )
    op.create_index(
        "ix_agent_cards_next",
        "agent_cards",
        ["next_ms"],
        sqlite_where=_SHOWS,
        postgresql_where=_SHOWS,
    )
    op.create_table(
        "agent_slots",
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("session_id", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_agent_slots")),
        sa.UniqueConstraint("session_id", name=op.f("uq_agent_slots_session_id")),
    )
