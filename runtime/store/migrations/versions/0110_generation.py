"""How the model of a session writes."""

import sqlalchemy as sa
from alembic import op

revision = "0110"
down_revision = "0109"
branch_labels = None
depends_on = None
compatible_from = "0100"


def upgrade() -> None:
    op.add_column("sessions", sa.Column("generation", sa.Text(), nullable=True))
