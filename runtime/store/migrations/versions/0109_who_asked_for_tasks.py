"""Who asked for a task, so that a person finds their own."""

import sqlalchemy as sa
from alembic import op

revision = "0109"
down_revision = "0108"
branch_labels = None
depends_on = None
compatible_from = "0100"


def upgrade() -> None:
    op.add_column("tasks", sa.Column("asked_by", sa.Text(), nullable=True))
    some = sa.text("asked_by IS NOT NULL")
    op.create_index(
        "ix_tasks_asked_by",
        "tasks",
        ["asked_by"],
        sqlite_where=some,
        postgresql_where=some,
    )
