"""The store: the database's engine and its schema. Rows are read and written in `sessions`."""

from sqlalchemy import Connection

from runtime.domain.errors import CommitUnknown, StoreCorrupt, StoreFull, StoreUnavailable
from runtime.ports.clock import Clock
from runtime.store.database import Database, Point, no_point, now_ms
from runtime.store.dialect import database_url, sqlite_path
from runtime.store.sqlite import SqliteDatabase

__all__ = [
    "CommitUnknown",
    "Connection",
    "Database",
    "Point",
    "StoreCorrupt",
    "StoreFull",
    "StoreUnavailable",
    "no_point",
    "now_ms",
    "open_database",
]


def open_database(
    url: str, *, clock: Clock, points: Point = no_point, pool_size: int = 10
) -> Database:
    """The database that `url` names, not started yet.

    `points` is called around each write, see `Database.write`; `pool_size` counts connections to
    PostgreSQL. Raises InvalidInput for a URL that is neither a SQLite file nor PostgreSQL.
    """
    parsed = database_url(url)
    path = sqlite_path(parsed)
    if path is not None:
        return SqliteDatabase(path, clock=clock, points=points)
    # Lazy: PostgreSQL's half of SQLAlchemy takes 9 MB.
    from runtime.store.postgres import PostgresDatabase

    return PostgresDatabase(parsed, clock=clock, points=points, pool_size=pool_size)
