"""Tasks of sessions, which of them wait for which, and input for commands in the background."""

import sqlalchemy as sa
from alembic import op

revision = "0103"
down_revision = "0102"
branch_labels = None
depends_on = None
compatible_from = "0100"

_POSITION = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _key_to_tasks(table: str, column: str) -> sa.ForeignKeyConstraint:
    name = f"fk_{table}_{column}"
    return sa.ForeignKeyConstraint([column], ["tasks.id"], name=name, ondelete="CASCADE")


def _partial_index(name: str, column: str, where: str) -> None:
    only = sa.text(where)
    op.create_index(name, "tasks", [column], sqlite_where=only, postgresql_where=only)


def upgrade() -> None:
    op.create_table(
        "tasks",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), server_default="", nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("owner_agent_id", sa.Text(), nullable=True),
        sa.Column("metadata", sa.Text(), server_default="{}", nullable=False),
        sa.Column("facts", sa.Text(), server_default="{}", nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("updated_ms", sa.BigInteger(), nullable=False),
        sa.Column("place", sa.Text(), nullable=True),
        sa.Column("notify", sa.Text(), server_default="silent", nullable=False),
        sa.Column("stop_requested_ms", sa.BigInteger(), nullable=True),
        sa.Column("stop_reason", sa.Text(), nullable=True),
        sa.Column("worker", sa.Text(), nullable=True),
        sa.Column("host", sa.Text(), nullable=True),
        sa.Column("token", sa.Text(), nullable=True),
        sa.Column("pid", sa.Integer(), nullable=True),
        sa.Column("started_ticks", sa.BigInteger(), nullable=True),
        sa.Column("tree_open", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("output_path", sa.Text(), nullable=True),
        sa.Column("output_dropped", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("rotations", sa.Integer(), server_default="0", nullable=False),
        sa.ForeignKeyConstraint(
            ["session_id"], ["lanes.session_id"], name="fk_tasks_session_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_tasks"),
    )
    op.create_index("ix_tasks_session_id_id", "tasks", ["session_id", "id"])
    _partial_index("ix_tasks_live", "worker", "kind = 'shell' AND status = 'in_progress'")
    _partial_index("ix_tasks_tree_open", "host", "tree_open")
    op.create_table(
        "task_blocks",
        sa.Column("task_id", sa.Text(), nullable=False),
        sa.Column("blocker_id", sa.Text(), nullable=False),
        _key_to_tasks("task_blocks", "task_id"),
        _key_to_tasks("task_blocks", "blocker_id"),
        sa.PrimaryKeyConstraint("task_id", "blocker_id", name="pk_task_blocks"),
    )
    op.create_index("ix_task_blocks_blocker_id", "task_blocks", ["blocker_id"])
    op.create_table(
        "task_inputs",
        sa.Column("position", _POSITION, autoincrement=True, nullable=False),
        sa.Column("task_id", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("closes", sa.Boolean(), nullable=False),
        _key_to_tasks("task_inputs", "task_id"),
        sa.PrimaryKeyConstraint("position", name="pk_task_inputs"),
    )
    op.create_index("ix_task_inputs_task_id", "task_inputs", ["task_id"])
