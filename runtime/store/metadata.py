"""The one MetaData, on which each room declares the tables that it owns; none stands here.

A process knows the tables that it imported. The whole is what `gateway.features` brings.
"""

from typing import Any

from sqlalchemy import BigInteger, Column, Connection, Index, Integer, MetaData, event, text

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def partial_index(
    name: str, *columns: str | Column[Any], where: str, unique: bool = False
) -> Index:
    """An index of the rows that `where` selects, in words that both databases understand.

    PostgreSQL is told by `_tell_postgres`: its own argument would load its half of SQLAlchemy.
    """
    return Index(name, *columns, unique=unique, sqlite_where=text(where))


@event.listens_for(metadata, "before_create")
def _tell_postgres(_metadata: MetaData, conn: Connection, **_options: object) -> None:
    if conn.dialect.name == "postgresql":
        for index in (index for table in metadata.tables.values() for index in table.indexes):
            options = index.dialect_options
            options["postgresql"]["where"] = options["sqlite"]["where"]


POSITION = BigInteger().with_variant(Integer, "sqlite")
"""A number that the database counts up by itself."""
