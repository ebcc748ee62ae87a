"""Whether a model chose the words of a schedule."""

import sqlalchemy as sa
from alembic import op

revision = "0111"
down_revision = "0110"
branch_labels = None
depends_on = None
compatible_from = "0100"


def upgrade() -> None:
    words: sa.Column[bool] = sa.Column(
        "worded_by_model", sa.Boolean(), server_default=sa.text("true"), nullable=False
    )
    op.add_column("schedules", words)
