"""Schedules, what became of each of their times, and people's time zones."""

import sqlalchemy as sa
from alembic import op

revision = "0102"
down_revision = "0101"
branch_labels = None
depends_on = None
compatible_from = "0100"


def upgrade() -> None:
    op.create_table(
        "schedules",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("owner_person_id", sa.Text(), nullable=False),
        sa.Column("owner_user_id", sa.Text(), nullable=True),
        sa.Column("session_id", sa.Text(), nullable=True),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("chat", sa.Text(), nullable=False),
        sa.Column("chat_kind", sa.Text(), nullable=False),
        sa.Column("thread", sa.Text(), nullable=True),
        sa.Column("timezone", sa.Text(), nullable=False),
        sa.Column("cadence", sa.Text(), nullable=False),
        sa.Column("anchor_ms", sa.BigInteger(), nullable=False),
        sa.Column("misfire", sa.Text(), nullable=False),
        sa.Column("deliver_text", sa.Text(), nullable=True),
        sa.Column("max_executions", sa.Integer(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("next_fire_ms", sa.BigInteger(), nullable=True),
        sa.Column("remaining_ms", sa.BigInteger(), nullable=True),
        sa.Column("execution_count", sa.Integer(), server_default="0", nullable=False),
        sa.Column("revision", sa.Integer(), server_default="1", nullable=False),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("updated_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["session_id"],
            ["lanes.session_id"],
            name="fk_schedules_session_id",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_schedules"),
    )
    active = sa.text("status = 'active'")
    op.create_index(
        "ix_schedules_due",
        "schedules",
        ["next_fire_ms"],
        sqlite_where=active,
        postgresql_where=active,
    )
    op.create_index("ix_schedules_session_id", "schedules", ["session_id"])
    op.create_index("ix_schedules_owner_person_id", "schedules", ["owner_person_id"])
    op.create_index(
        "ix_schedules_channel_account_chat", "schedules", ["channel", "account", "chat"]
    )
    op.create_table(
        "schedule_fires",
        sa.Column("schedule_id", sa.Text(), nullable=False),
        sa.Column("slot_ms", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), server_default="", nullable=False),
        sa.Column("outbox_id", sa.Text(), nullable=True),
        sa.Column("fired_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["schedule_id"],
            ["schedules.id"],
            name="fk_schedule_fires_schedule_id",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("schedule_id", "slot_ms", name="pk_schedule_fires"),
    )
    op.create_table(
        "person_zones",
        sa.Column("person_id", sa.Text(), nullable=False),
        sa.Column("zone", sa.Text(), nullable=False),
        sa.Column("updated_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("person_id", name="pk_person_zones"),
    )
