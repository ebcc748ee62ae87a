"""Uploads and who uses them, when the key of a request is forgotten, and what a run is about."""

import sqlalchemy as sa
from alembic import op

revision = "0107"
down_revision = "0106"
branch_labels = None
depends_on = None
compatible_from = "0100"


def upgrade() -> None:
    op.add_column("runs", sa.Column("summary", sa.Text(), server_default="", nullable=False))
    op.add_column("idempotency", sa.Column("expires_ms", sa.BigInteger(), nullable=True))
    some = sa.text("expires_ms IS NOT NULL")
    op.create_index(
        "ix_idempotency_expiry",
        "idempotency",
        ["expires_ms"],
        sqlite_where=some,
        postgresql_where=some,
    )
    op.create_table(
        "assets",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("file", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("media_type", sa.Text(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("uploaded_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_assets"),
    )
    op.create_index("ix_assets_owner", "assets", ["owner"])
    op.create_index("ix_assets_uploaded_ms", "assets", ["uploaded_ms"])
    op.create_table(
        "asset_uses",
        sa.Column("asset_id", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["asset_id"], ["assets.id"], name="fk_asset_uses_asset_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["session_id"],
            ["lanes.session_id"],
            name="fk_asset_uses_session_id",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("asset_id", "session_id", name="pk_asset_uses"),
    )
    op.create_index("ix_asset_uses_session_id", "asset_uses", ["session_id"])
