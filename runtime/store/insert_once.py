"""The one insert that tolerates a present row, prepared once for each table and database."""

from collections.abc import Mapping
from functools import cache

from sqlalchemy import Connection, Table

from runtime.store.database import DialectName
from runtime.store.dialect import dialect_name, insert_ignore
from runtime.store.statements import Hot, hot


def insert_new(conn: Connection, table: Table, values: Mapping[str, object]) -> bool:
    """Insert a row; False, with nothing changed, when a unique key of it is taken."""
    return _statement(dialect_name(conn), table).change(conn, **values) == 1


@cache
def _statement(dialect: DialectName, table: Table) -> Hot[()]:
    return hot(insert_ignore(dialect, table))
