"""Keys of what was done once: a repeated request gets the first one's answer."""

import json

from sqlalchemy import Connection, select

from runtime.domain.errors import Conflict
from runtime.domain.value import JsonObject
from runtime.sessions.tables import idempotency
from runtime.store.database import now_ms
from runtime.store.insert_once import insert_new


def first_time(conn: Connection, key: str) -> bool:
    """Whether `key` was never seen before; it is from now on."""
    return _keep(conn, key, "", {})


def was_seen(conn: Connection, key: str) -> bool:
    """Whether `first_time` was asked about `key` before."""
    found = conn.execute(select(idempotency.c.key).where(idempotency.c.key == key))
    return found.first() is not None


def remember(conn: Connection, key: str, *, digest: str, response: JsonObject) -> None:
    """Keep the answer to a request; a later one under the same key gets it again."""
    _keep(conn, key, digest, response)


def recall(conn: Connection, key: str, *, digest: str) -> JsonObject | None:
    """The answer given before. Raises `Conflict` when the key came with another request."""
    row = conn.execute(
        select(idempotency.c.digest, idempotency.c.response).where(idempotency.c.key == key)
    ).first()
    if row is None:
        return None
    if row.digest != digest:
        raise Conflict("this idempotency key was used for another request", "used")
    found: JsonObject = json.loads(row.response)
    return found


def _keep(conn: Connection, key: str, digest: str, response: JsonObject) -> bool:
    return insert_new(
        conn,
        idempotency,
        {
            "key": key,
            "digest": digest,
            "response": json.dumps(response, ensure_ascii=False),
            "created_ms": now_ms(conn),
        },
    )
