"""The table of messages between agents. A row goes with the lane of the agent that it is for."""

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Integer, Table, Text, UniqueConstraint

from runtime.store.metadata import POSITION, metadata, partial_index

mailbox_messages = Table(
    "mailbox_messages",
    metadata,
    Column("position", POSITION, primary_key=True, autoincrement=True),
    # Whom it is for.
    Column("session_id", ForeignKey("lanes.session_id", ondelete="CASCADE"), nullable=False),
    Column("sender_id", Text, nullable=False),
    # Chosen by its sender, and unique among what that one sent.
    Column("message_id", Text, nullable=False),
    Column("subject", Text, nullable=False, server_default=""),
    # JSON.
    Column("payload", Text, nullable=False),
    # The input of the run that is to read it.
    Column("input_id", Text, nullable=False),
    # How many messages led to it, itself among them; 0 for one from outside.
    Column("hops", Integer, nullable=False, server_default="0"),
    Column("sent_ms", BigInteger, nullable=False),
    Column("expires_ms", BigInteger),
    # queued, delivered or dead; since when, and why nobody read a dead one.
    Column("state", Text, nullable=False, server_default="queued"),
    Column("settled_ms", BigInteger),
    Column("reason", Text),
    UniqueConstraint("sender_id", "message_id"),
    Index(None, "session_id", "position"),
    Index(None, "input_id"),
    partial_index("ix_mailbox_messages_queued", "expires_ms", where="state = 'queued'"),
)
