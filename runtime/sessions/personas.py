"""Giving a session a persona, and taking it away: between its runs only (CTX-11).

The texts are kept once for each content, as they were when they were bound. Their row is never
changed and never removed: sessions, and the children that they had, point to it.
"""

import json
from collections.abc import Mapping

from sqlalchemy import select

from runtime.domain.errors import NotFound
from runtime.domain.events import EventKind
from runtime.domain.personas import Persona
from runtime.domain.value import JsonObject
from runtime.sessions import audit, sessions
from runtime.sessions.idle import check_idle
from runtime.sessions.lanes import Lane
from runtime.sessions.tables import personas
from runtime.store import Connection
from runtime.store.database import now_ms
from runtime.store.statements import insert_new


def bind(conn: Connection, lane: Lane, persona: Persona | None, *, by: str) -> None:
    """Give the session of a held lane the persona as it is, or with None the live workspace again.

    The caller saves the lane. Raises `Conflict` while a run is at work or waits: a run keeps the
    identity with which it began.
    """
    check_idle(conn, lane, "persona")
    name = persona.name if persona else None
    digest = persona.digest if persona else None
    if persona is not None:
        keep(conn, persona.digest, persona.files)
    sessions.change(conn, lane.session_id, {"persona": name, "persona_digest": digest})
    data: JsonObject = {"persona": name, "persona_digest": digest}
    lane.record(EventKind.SESSION_CHANGED, None, data)
    audit.append(conn, actor=by, action="session.changed", session_id=lane.session_id, data=data)


def keep(conn: Connection, digest: str, files: Mapping[str, str]) -> None:
    """Keep the files of a persona, where the same were not kept before."""
    # As ASCII: PostgreSQL takes no NUL in a text, and a file may hold one.
    row = {"digest": digest, "files": json.dumps(dict(files)), "created_ms": now_ms(conn)}
    insert_new(conn, personas, row)


def files_of(conn: Connection, digest: str) -> Mapping[str, str]:
    """The texts by file name. Raises `NotFound`."""
    found = conn.execute(select(personas.c.files).where(personas.c.digest == digest)).scalar()
    if found is None:
        raise NotFound("persona", digest)
    texts: dict[str, str] = json.loads(found)
    return texts
