"""The feed of durable events, by session or over all of them.

On PostgreSQL positions are drawn before they are committed, so the global feed stops in front of
what any running transaction may still fill in; no reader ever skips a late commit.
"""

import json
from collections.abc import Sequence

from sqlalchemy import Connection, Row, func, insert, select

from runtime.domain.events import Event, EventKind
from runtime.store.dialect import settled_below, transaction_id
from runtime.store.hot import hot
from runtime.store.tables import events

_INSERT = hot(insert(events))


def add(conn: Connection, rows: Sequence[dict[str, object]]) -> None:
    """Append events, each with the transaction that writes it."""
    xid = transaction_id(conn)
    for row in rows:
        _INSERT.change(conn, **row, xid=xid)


def after(
    conn: Connection,
    position: int,
    *,
    session_id: str | None = None,
    run_id: str | None = None,
    limit: int = 500,
) -> Sequence[Event]:
    """Events past a position of the global feed, oldest first."""
    query = select(events).where(events.c.position > position)
    if session_id is not None:
        query = query.where(events.c.session_id == session_id)
    if run_id is not None:
        query = query.where(events.c.run_id == run_id)
    query = query.where(events.c.xid < settled_below(conn))
    return [_event(row) for row in conn.execute(query.order_by(events.c.position).limit(limit))]


def of_run(conn: Connection, run_id: str) -> Sequence[Event]:
    """A run's whole history."""
    rows = conn.execute(select(events).where(events.c.run_id == run_id).order_by(events.c.position))
    return [_event(row) for row in rows]


def last_position(conn: Connection) -> int:
    """Where the feed ends now."""
    found = conn.execute(
        select(func.max(events.c.position)).where(events.c.xid < settled_below(conn))
    ).scalar()
    return found or 0


def _event(row: Row[tuple[object, ...]]) -> Event:
    found = row._mapping
    return Event(
        position=found["position"],
        session_id=found["session_id"],
        seq=found["seq"],
        run_id=found["run_id"],
        kind=EventKind(found["kind"]),
        at_ms=found["at_ms"],
        data=json.loads(found["data"]),
    )
