"""What a copy holds: its revision, and rows by table; both databases."""

from collections.abc import Mapping
from typing import Final

from sqlalchemy import Connection, func, inspect, select, table

from runtime.domain.backups import Manifest
from runtime.domain.errors import StoreCorrupt, StoreUnavailable

_COUNTED: Final = ("sessions", "inputs", "runs", "messages", "outbox")
"""By name, as the copy has them: what their rows mean is no business of the store."""


def counts(conn: Connection) -> dict[str, int]:
    """Rows by table, for the tables that a manifest speaks of. Raises StoreCorrupt without them."""
    missing = sorted(set(_COUNTED) - set(inspect(conn).get_table_names()))
    if missing:
        raise StoreCorrupt(f"The database has no table {missing[0]}.")
    return {
        name: int(conn.execute(select(func.count()).select_from(table(name))).scalar_one())
        for name in _COUNTED
    }


def revision(conn: Connection) -> str:
    """The schema's revision. Raises StoreUnavailable for a database without Gatehouse's schema."""
    found: str | None = None
    if inspect(conn).has_table("alembic_version"):
        found = conn.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
    if found is None:
        raise StoreUnavailable(
            "The database has no schema of Gatehouse.", hint="`gatehouse migrate` makes it."
        )
    return found


def compare(manifest: Manifest, found: str, rows: Mapping[str, int]) -> None:
    """Raises StoreCorrupt where the database is not the one that the manifest describes."""
    if found != manifest.revision:
        raise StoreCorrupt(
            f"The database of the backup is at {found}, its manifest says {manifest.revision}."
        )
    for name, amount in rows.items():
        told = manifest.counts.get(name)
        if told != amount:
            raise StoreCorrupt(
                f"The database of the backup holds {amount} {name}, its manifest says {told}."
            )
