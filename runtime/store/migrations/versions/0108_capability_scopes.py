"""The scope that a program gives a session of its own."""

import sqlalchemy as sa
from alembic import op

revision = "0108"
down_revision = "0107"
branch_labels = None
depends_on = None
compatible_from = "0100"


def upgrade() -> None:
    op.add_column("sessions", sa.Column("capability_scope", sa.Text(), nullable=True))
