"""What a backup counts, and what a restore changes in the rows; both databases."""

from collections.abc import Mapping
from typing import Final

from sqlalchemy import Connection, Table, func, inspect, select, update

from runtime.domain.backups import Manifest
from runtime.domain.errors import StoreCorrupt, StoreUnavailable
from runtime.domain.events import EventKind
from runtime.domain.runs import TERMINAL
from runtime.sessions import audit, lanes
from runtime.sessions.outbox import UNSETTLED
from runtime.store.database import now_ms
from runtime.store.tables import inputs, messages, outbox, runs, sessions

RESTORED: Final = "restored from a backup"
_COUNTED: Final[tuple[Table, ...]] = (sessions, inputs, runs, messages, outbox)


def counts(conn: Connection) -> dict[str, int]:
    """Rows by table, for the tables that a manifest speaks of. Raises StoreCorrupt without them."""
    missing = sorted({table.name for table in _COUNTED} - set(inspect(conn).get_table_names()))
    if missing:
        raise StoreCorrupt(f"The database has no table {missing[0]}.")
    return {
        table.name: int(conn.execute(select(func.count()).select_from(table)).scalar_one())
        for table in _COUNTED
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
    for table, amount in rows.items():
        told = manifest.counts.get(table)
        if told != amount:
            raise StoreCorrupt(
                f"The database of the backup holds {amount} {table}, its manifest says {told}."
            )


def settle_restored(conn: Connection, *, resend: bool) -> tuple[int, int]:
    """Make a restored database fit to go on: messages held back, unfinished runs.

    What waited to be sent when the backup was made may have been sent since, which nobody can
    tell. So it ends as `unknown`, where the operator sees it (I7), unless `resend` says that it
    shall go out as after a restart. Runs are left as they are.
    """
    held = 0 if resend else _hold_back(conn)
    finished = [state.value for state in TERMINAL]
    unfinished = int(
        conn.execute(
            select(func.count()).select_from(runs).where(runs.c.state.not_in(finished))
        ).scalar_one()
    )
    audit.append(
        conn,
        actor="operator",
        action="backup.restored",
        data={"held": held, "unfinished": unfinished, "resend": resend},
    )
    return held, unfinished


def _hold_back(conn: Connection) -> int:
    waiting = outbox.c.state.in_(UNSETTLED)
    rows = conn.execute(
        select(outbox.c.id, outbox.c.session_id, outbox.c.run_id)
        .where(waiting)
        .order_by(outbox.c.position)
    ).all()
    conn.execute(
        update(outbox)
        .where(waiting)
        .values(state="unknown", error=RESTORED, settled_ms=now_ms(conn))
    )
    for row in rows:
        if row.session_id is not None:
            data = {"outbox_id": row.id, "reason": RESTORED}
            kind = EventKind.DELIVERY_UNKNOWN
            lanes.record_event(conn, row.session_id, kind, row.run_id, dict(data))
    return len(rows)
