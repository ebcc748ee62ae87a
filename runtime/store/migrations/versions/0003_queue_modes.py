"""Steered, replaced and late runs (MSG-5, MSG-17); outbox rows that ended badly, by an index.

Only adds columns with a default, and an index.

Frozen: it says what the columns were, whatever `tables.py` says today.
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None
compatible_from = "0003"


def upgrade() -> None:
    for name in ("replaced", "steered", "late"):
        op.add_column(
            "runs",
            sa.Column(name, sa.Boolean(), server_default=sa.text("false"), nullable=False),
        )
    problems = sa.text("state IN ('dead','unknown')")
    op.create_index(
        "ix_outbox_problems",
        "outbox",
        ["position"],
        unique=False,
        sqlite_where=problems,
        postgresql_where=problems,
    )
