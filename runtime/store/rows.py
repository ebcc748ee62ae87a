"""The one insert that tolerates a present row, prepared once for each table and database."""

from collections.abc import Mapping
from functools import cache

from sqlalchemy import Connection, Insert, Table

from runtime.store.database import DialectName
from runtime.store.dialect import dialect_name, insert_ignore


def insert_new(conn: Connection, table: Table, values: Mapping[str, object]) -> bool:
    """Insert a row; False, with nothing changed, when a unique key of it is taken."""
    return conn.execute(_statement(dialect_name(conn), table), values).rowcount == 1


@cache
def _statement(dialect: DialectName, table: Table) -> Insert:
    return insert_ignore(dialect, table)
