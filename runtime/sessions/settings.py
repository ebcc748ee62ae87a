"""Small facts that the gateway keeps across restarts: codes, keys, cursors; by name."""

from sqlalchemy import Connection, delete, select, update

from runtime.store.database import now_ms
from runtime.store.dialect import upsert
from runtime.store.statements import insert_new
from runtime.store.tables import settings


def get(conn: Connection, name: str) -> str | None:
    """The value, or None where it was never set."""
    return conn.execute(select(settings.c.value).where(settings.c.name == name)).scalar()


def named(conn: Connection, prefix: str) -> dict[str, str]:
    """Every value whose name begins with `prefix`, by the rest of its name."""
    rows = conn.execute(
        select(settings.c.name, settings.c.value).where(
            settings.c.name.startswith(prefix, autoescape=True)
        )
    )
    return {row.name.removeprefix(prefix): row.value for row in rows}


def put(conn: Connection, name: str, value: str) -> None:
    """Set or replace a value."""
    statement = upsert(conn, settings, key=("name",), change=("value", "updated_ms"))
    conn.execute(statement, _row(conn, name, value))


def put_new(conn: Connection, name: str, value: str) -> bool:
    """Set a value that was never set; False, with nothing changed, where it was.

    Of units that run at once on several replicas one is told True.
    """
    return insert_new(conn, settings, _row(conn, name, value))


def swap(conn: Connection, name: str, old: str, new: str) -> bool:
    """Replace a value that is still `old`; of units that try at once one is told True."""
    changed = conn.execute(
        update(settings)
        .where(settings.c.name == name, settings.c.value == old)
        .values(value=new, updated_ms=now_ms(conn))
    )
    return changed.rowcount == 1


def remove(conn: Connection, name: str) -> bool:
    """Whether there was one to remove."""
    return conn.execute(delete(settings).where(settings.c.name == name)).rowcount == 1


def _row(conn: Connection, name: str, value: str) -> dict[str, object]:
    return {"name": name, "value": value, "updated_ms": now_ms(conn)}
