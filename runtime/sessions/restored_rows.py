"""What a backup that was put back changes in the rows, so that a gateway can go on with them."""

from typing import Final

from sqlalchemy import Connection, func, select, update

from runtime.domain.backups import Settled
from runtime.domain.events import EventKind
from runtime.domain.runs import TERMINAL
from runtime.sessions import audit, lanes
from runtime.sessions.outbox import UNSETTLED
from runtime.sessions.tables import outbox, runs
from runtime.store.database import now_ms

RESTORED: Final = "restored from a backup"


def settle_restored(conn: Connection, *, resend: bool) -> Settled:
    """Make a restored database fit to go on.

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
    return Settled(held, unfinished)


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
