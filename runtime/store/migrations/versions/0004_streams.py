"""Streams: the post in which a reply grew (REN-4). Only adds a column that may be null.

Frozen: it says what the column was, whatever `tables.py` says today.
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None
compatible_from = "0003"


def upgrade() -> None:
    op.add_column("outbox", sa.Column("stream", sa.Text(), nullable=True))
