"""The tables of the engine itself. Times are milliseconds since the epoch."""

from sqlalchemy import BigInteger, Column, Table, Text

from runtime.store.metadata import metadata

leases = Table(
    "leases",
    metadata,
    Column("name", Text, primary_key=True),
    Column("holder", Text, nullable=False),
    Column("fence", BigInteger, nullable=False),
    Column("expires_ms", BigInteger, nullable=False),
)

settings = Table(
    "settings",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
    Column("updated_ms", BigInteger, nullable=False),
)
