"""Personas as they were when they were bound: texts by file name, kept once for each content.

A row is never changed and never removed: sessions, and the children that they had, point to it.
"""

import json
from collections.abc import Mapping

from sqlalchemy import Connection, select

from runtime.domain.errors import NotFound
from runtime.sessions.tables import personas
from runtime.store.database import now_ms
from runtime.store.insert_once import insert_new


def keep(conn: Connection, digest: str, files: Mapping[str, str]) -> None:
    """Keep the files of a persona, where the same were not kept before."""
    # As ASCII: PostgreSQL takes no NUL in a text, and a file may hold one.
    row = {"digest": digest, "files": json.dumps(dict(files)), "created_ms": now_ms(conn)}
    insert_new(conn, personas, row)


def files(conn: Connection, digest: str) -> Mapping[str, str]:
    """The texts by file name. Raises `NotFound`."""
    found = conn.execute(select(personas.c.files).where(personas.c.digest == digest)).scalar()
    if found is None:
        raise NotFound("persona", digest)
    texts: dict[str, str] = json.loads(found)
    return texts
