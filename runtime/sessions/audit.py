"""The audit log: appended in the transaction of the effect's intent, never changed."""

import json

from sqlalchemy import Connection, insert

from runtime.domain.value import JsonObject
from runtime.sessions.tables import audit
from runtime.store.database import now_ms
from runtime.store.statements import hot

_INSERT = hot(insert(audit))


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
