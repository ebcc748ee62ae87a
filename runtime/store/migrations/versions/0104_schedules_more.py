"""Schedules that ask the model: their requests, lanes, overlaps, retries and executions."""

import sqlalchemy as sa
from alembic import op

revision = "0104"
down_revision = "0103"
branch_labels = None
depends_on = None
compatible_from = "0100"

_OF_SCHEDULES: tuple[sa.Column[object], ...] = (
    sa.Column("request", sa.Text(), nullable=True),
    sa.Column("name", sa.Text(), server_default="", nullable=False),
    sa.Column("lane_id", sa.Text(), nullable=True),
    sa.Column("origin", sa.Text(), server_default="{}", nullable=False),
    sa.Column("overlap", sa.Text(), server_default="skip", nullable=False),
    sa.Column("queued_fire_ms", sa.BigInteger(), nullable=True),
    sa.Column("trigger_ms", sa.BigInteger(), nullable=True),
    sa.Column("retry_slot_ms", sa.BigInteger(), nullable=True),
    sa.Column("retry_after_ms", sa.BigInteger(), nullable=True),
    sa.Column("retry_attempt", sa.Integer(), server_default="0", nullable=False),
    sa.Column("last_scheduler_error", sa.Text(), nullable=True),
    sa.Column("last_fire_ms", sa.BigInteger(), nullable=True),
    sa.Column("last_run_id", sa.Text(), nullable=True),
    sa.Column("consecutive_failures", sa.Integer(), server_default="0", nullable=False),
    sa.Column("wake_ms", sa.BigInteger(), nullable=True),
)
_OF_FIRES: tuple[sa.Column[object], ...] = (
    sa.Column("run_id", sa.Text(), nullable=True),
    sa.Column("attempt", sa.Integer(), server_default="0", nullable=False),
    sa.Column("from_queued", sa.Boolean(), server_default=sa.text("false"), nullable=False),
    sa.Column("claimed_ms", sa.BigInteger(), nullable=True),
    sa.Column("dispatched_ms", sa.BigInteger(), nullable=True),
    sa.Column("settled_ms", sa.BigInteger(), nullable=True),
)


def upgrade() -> None:
    for table, columns in (("schedules", _OF_SCHEDULES), ("schedule_fires", _OF_FIRES)):
        for column in columns:
            op.add_column(table, column)
    op.create_table(
        "schedule_lanes",
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("schedule_id", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["schedule_id"],
            ["schedules.id"],
            name="fk_schedule_lanes_schedule_id",
            ondelete="SET NULL",
        ),
        sa.PrimaryKeyConstraint("session_id", name="pk_schedule_lanes"),
    )
    op.create_index("ix_schedule_lanes_schedule_id", "schedule_lanes", ["schedule_id"])
    _partial("ix_schedules_wake", "schedules", "wake_ms", "status = 'active'")
    _partial("ix_schedule_fires_open", "schedule_fires", "run_id", "status = 'dispatched'")
    _partial("ix_schedule_lanes_left", "schedule_lanes", "session_id", "schedule_id IS NULL")


def _partial(name: str, table: str, column: str, where: str) -> None:
    some = sa.text(where)
    op.create_index(name, table, [column], sqlite_where=some, postgresql_where=some)
