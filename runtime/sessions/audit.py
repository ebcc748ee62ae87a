"""The audit log: appended in the transaction of the effect's intent, never changed."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, insert, select

from runtime.domain.value import JsonObject
from runtime.store.database import now_ms
from runtime.store.statements import hot
from runtime.store.tables import audit

_INSERT = hot(insert(audit))


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One entry; `actor` is a person's id, ``policy``, ``operator`` or ``system``."""

    position: int
    at_ms: int
    actor: str
    action: str
    session_id: str | None
    run_id: str | None
    data: JsonObject


def append(
    conn: Connection,
    *,
    actor: str,
    action: str,
    data: JsonObject,
    session_id: str | None = None,
    run_id: str | None = None,
) -> None:
    """Record one action. `data` holds no secrets: callers redact first (I9)."""
    _INSERT.change(
        conn,
        at_ms=now_ms(conn),
        actor=actor,
        action=action,
        session_id=session_id,
        run_id=run_id,
        data=json.dumps(data, ensure_ascii=False),
    )


def listing(conn: Connection, *, after: int = 0, limit: int = 200) -> Sequence[AuditRow]:
    """Entries past a position, oldest first."""
    rows = conn.execute(
        select(audit).where(audit.c.position > after).order_by(audit.c.position).limit(limit)
    )
    return [
        AuditRow(
            row.position,
            row.at_ms,
            row.actor,
            row.action,
            row.session_id,
            row.run_id,
            json.loads(row.data),
        )
        for row in rows
    ]
