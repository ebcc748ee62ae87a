"""Schedules that run under a condition: a gate, something to observe, a heartbeat."""

import sqlalchemy as sa
from alembic import op

revision = "0105"
down_revision = "0104"
branch_labels = None
depends_on = None
compatible_from = "0100"

_OF_SCHEDULES: tuple[sa.Column[object], ...] = (
    sa.Column("conditions", sa.Text(), nullable=True),
    sa.Column("gate_state", sa.Text(), nullable=True),
    sa.Column("gate_card", sa.Text(), nullable=True),
    sa.Column("gate_asked", sa.Text(), nullable=True),
    sa.Column("gate_digest", sa.Text(), nullable=True),
    sa.Column("seen", sa.Text(), nullable=True),
    sa.Column("check_token", sa.Text(), nullable=True),
    sa.Column("prepare_ms", sa.BigInteger(), nullable=True),
)


def upgrade() -> None:
    for column in _OF_SCHEDULES:
        op.add_column("schedules", column)
    op.add_column("schedule_fires", sa.Column("spoke", sa.Boolean(), nullable=True))
    some = sa.text("prepare_ms IS NOT NULL")
    op.create_index(
        "ix_schedules_prepare",
        "schedules",
        ["prepare_ms"],
        sqlite_where=some,
        postgresql_where=some,
    )
    op.create_index("ix_schedules_gate_card", "schedules", ["gate_card"])
