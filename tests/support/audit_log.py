"""What the audit log holds. The product only appends to it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, select

from runtime.domain.value import JsonObject
from runtime.sessions.tables import audit


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One entry; `actor` is a person's id, ``policy``, ``operator`` or ``system``."""

    at_ms: int
    actor: str
    action: str
    session_id: str | None
    run_id: str | None
    data: JsonObject


def entries(conn: Connection) -> Sequence[AuditEntry]:
    """All entries, oldest first."""
    return [
        AuditEntry(
            row.at_ms, row.actor, row.action, row.session_id, row.run_id, json.loads(row.data)
        )
        for row in conn.execute(select(audit).order_by(audit.c.position))
    ]
