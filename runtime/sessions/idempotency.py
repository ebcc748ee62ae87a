"""Keys of what was done once: a repeated request gets the first one's answer.

A request claims its key in the unit that creates what it asks for, before anything else. Whoever
comes with the same key meanwhile waits for the end of that unit, and finds its answer or, where it
was undone, does the work. So there is one creation, whatever crashes in between.
"""

import json

from sqlalchemy import Connection, delete, select, update

from runtime.domain.errors import Conflict
from runtime.domain.request_keys import RequestKey
from runtime.domain.value import JsonObject
from runtime.sessions.tables import idempotency
from runtime.store.database import now_ms
from runtime.store.statements import insert_new

MOST_AT_ONCE = 1_000
"""Keys that one unit forgets."""


def first_time(conn: Connection, key: str) -> bool:
    """Whether `key` was never seen before; it is from now on, for good."""
    return _insert(conn, key, "", None)


def was_seen(conn: Connection, key: str) -> bool:
    """Whether `first_time` was asked about `key` before."""
    found = conn.execute(select(idempotency.c.key).where(idempotency.c.key == key))
    return found.first() is not None


def note(conn: Connection, name: str, fact: JsonObject) -> None:
    """Keep a fact under a name for good, unless there is one."""
    _insert(conn, name, "", None, fact)


def noted(conn: Connection, name: str) -> JsonObject | None:
    """What `note` kept under a name."""
    row = conn.execute(select(idempotency.c.response).where(idempotency.c.key == name)).first()
    if row is None:
        return None
    found: JsonObject = json.loads(row.response)
    return found


def recall(conn: Connection, key: RequestKey | None) -> JsonObject | None:
    """The answer to an earlier request of this key. Raises `Conflict` where that was another."""
    if key is None:
        return None
    row = conn.execute(
        select(idempotency.c.digest, idempotency.c.response, idempotency.c.expires_ms).where(
            idempotency.c.key == key.name
        )
    ).first()
    if row is None or (row.expires_ms is not None and row.expires_ms <= now_ms(conn)):
        return None
    if row.digest != key.digest:
        raise Conflict(
            "this Idempotency-Key came with another request before; give a new request a new key",
            "used",
        )
    found: JsonObject = json.loads(row.response)
    return found or None


def claim(conn: Connection, key: RequestKey | None) -> JsonObject | None:
    """Take a key for what this unit is about to create, before it locks anything; `keep` ends it.
    Where it was created before, the answer of then. Raises `Conflict` as `recall` does."""
    if key is None:
        return None
    now = now_ms(conn)
    # What waited longer than keys are kept is no repeat of this request.
    conn.execute(
        delete(idempotency).where(idempotency.c.key == key.name, idempotency.c.expires_ms <= now)
    )
    expires_ms = None if key.kept_ms is None else now + key.kept_ms
    if _insert(conn, key.name, key.digest, expires_ms):
        return None
    return recall(conn, key)


def keep(conn: Connection, key: RequestKey | None, answer: JsonObject) -> None:
    """Keep the answer to the request that claimed the key."""
    if key is not None:
        conn.execute(
            update(idempotency)
            .where(idempotency.c.key == key.name)
            .values(response=json.dumps(answer, ensure_ascii=False))
        )


def give_back(conn: Connection, key: RequestKey | None) -> None:
    """Forget a key whose request created nothing, so that it may be tried again."""
    if key is not None:
        conn.execute(delete(idempotency).where(idempotency.c.key == key.name))


def expire(conn: Connection) -> int:
    """Forget some keys that are too old to be repeated; how many."""
    old = (
        select(idempotency.c.key)
        .where(idempotency.c.expires_ms.is_not(None), idempotency.c.expires_ms <= now_ms(conn))
        .limit(MOST_AT_ONCE)
    )
    return conn.execute(delete(idempotency).where(idempotency.c.key.in_(old))).rowcount


def _insert(
    conn: Connection,
    key: str,
    digest: str,
    expires_ms: int | None,
    response: JsonObject | None = None,
) -> bool:
    return insert_new(
        conn,
        idempotency,
        {
            "key": key,
            "digest": digest,
            "response": json.dumps(response or {}, ensure_ascii=False),
            "created_ms": now_ms(conn),
            "expires_ms": expires_ms,
        },
    )
