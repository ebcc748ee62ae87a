"""Messages between agents."""

import sqlalchemy as sa
from alembic import op

revision = "0106"
down_revision = "0105"
branch_labels = None
depends_on = None
compatible_from = "0100"


def upgrade() -> None:
    op.create_table(
        "mailbox_messages",
        sa.Column(
            "position",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("sender_id", sa.Text(), nullable=False),
        sa.Column("message_id", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), server_default="", nullable=False),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.Column("input_id", sa.Text(), nullable=False),
        sa.Column("hops", sa.Integer(), server_default="0", nullable=False),
        sa.Column("sent_ms", sa.BigInteger(), nullable=False),
        sa.Column("expires_ms", sa.BigInteger(), nullable=True),
        sa.Column("state", sa.Text(), server_default="queued", nullable=False),
        sa.Column("settled_ms", sa.BigInteger(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["session_id"],
            ["lanes.session_id"],
            name="fk_mailbox_messages_session_id",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("position", name="pk_mailbox_messages"),
        sa.UniqueConstraint(
            "sender_id", "message_id", name="uq_mailbox_messages_sender_id_message_id"
        ),
    )
    op.create_index(
        "ix_mailbox_messages_session_id_position", "mailbox_messages", ["session_id", "position"]
    )
    op.create_index("ix_mailbox_messages_input_id", "mailbox_messages", ["input_id"])
    queued = sa.text("state = 'queued'")
    op.create_index(
        "ix_mailbox_messages_queued",
        "mailbox_messages",
        ["expires_ms"],
        sqlite_where=queued,
        postgresql_where=queued,
    )
