"""When an agent's time is over, and a line about what it is for.

Only adds, and yet nothing older may run beside it: that knows no budget of an agent, and would end
the wait of an agent that waits by a tool as if it awaited its own children.

Frozen: it says what the tables were, whatever `tables_agents.py` says today.
"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None
compatible_from = "0006"

_TIMED = sa.text("deadline_ms IS NOT NULL AND settled_ms IS NULL AND stop IS NULL")


def upgrade() -> None:
    op.add_column("agents", sa.Column("description", sa.Text(), server_default="", nullable=False))
    op.add_column("agents", sa.Column("deadline_ms", sa.BigInteger(), nullable=True))
    op.create_index(
        "ix_agents_timed",
        "agents",
        ["deadline_ms"],
        sqlite_where=_TIMED,
        postgresql_where=_TIMED,
    )
