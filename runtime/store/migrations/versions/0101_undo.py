"""Turns that were taken back: when, on their runs, and how many in a lane."""

import sqlalchemy as sa
from alembic import op

revision = "0101"
down_revision = "0100"
branch_labels = None
depends_on = None
compatible_from = "0100"


def upgrade() -> None:
    op.add_column("runs", sa.Column("undone_ms", sa.BigInteger(), nullable=True))
    op.add_column("lanes", sa.Column("undone", sa.BigInteger(), server_default="0", nullable=False))
