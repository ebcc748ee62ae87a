"""When a conversation was put aside. It is in the list again once something happens in it.

Only adds. Frozen: it says what the table was, whatever `tables.py` says today.
"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None
compatible_from = "0006"


def upgrade() -> None:
    op.add_column("sessions", sa.Column("archived_ms", sa.BigInteger(), nullable=True))
