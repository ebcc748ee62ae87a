"""Small facts that the gateway keeps across restarts: codes, keys, cursors; by name."""

from sqlalchemy import Connection, delete, insert, select, update

from runtime.store.database import now_ms
from runtime.store.tables import settings


def get(conn: Connection, name: str) -> str | None:
    """The value, or None where it was never set."""
    return conn.execute(select(settings.c.value).where(settings.c.name == name)).scalar()


def put(conn: Connection, name: str, value: str) -> None:
    """Set or replace a value."""
    row = {"value": value, "updated_ms": now_ms(conn)}
    if conn.execute(update(settings).where(settings.c.name == name).values(row)).rowcount == 0:
        conn.execute(insert(settings).values(name=name, **row))


def remove(conn: Connection, name: str) -> bool:
    """Whether there was one to remove."""
    return conn.execute(delete(settings).where(settings.c.name == name)).rowcount == 1
