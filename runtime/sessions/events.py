"""The feed of durable events, by session or over all of them.

On PostgreSQL positions are drawn before they are committed, and not in the order of transactions.
So the global feed stops at a number that is missing, because it may still come. It is passed once
the row behind it is older than any unit can be and no unit of its time runs any more: then the
writer of the missing one was rolled back.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Final

from sqlalchemy import Connection, Row, bindparam, func, insert, or_, select

from runtime.domain.events import Event, EventKind
from runtime.sessions.tables import events
from runtime.store.database import DIALECTS, now_ms
from runtime.store.dialect import NO_BOUND, dialect_name, settled_below, transaction_id
from runtime.store.statements import hot

HOLE_MS: Final = 10_000
"""Twice what the server lets a unit pause (`runtime.store.postgres`)."""
_WINDOW: Final = 20_000
"""Events that may be younger than that; holes further back are old."""
COLUMNS: Final = ("session_id", "seq", "run_id", "kind", "data", "at_ms")
_INSERT: Final = {
    name: hot(
        insert(events).values(
            {column: bindparam(column) for column in COLUMNS} | {"xid": transaction_id(name)}
        )
    )
    for name in DIALECTS
}


def add(conn: Connection, rows: Sequence[Mapping[str, object]]) -> None:
    """Append events, each with the transaction that writes it."""
    _INSERT[dialect_name(conn)].each(conn, rows)


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
    query = query.where(events.c.position < _whole(conn, position))
    return [_event(row) for row in conn.execute(query.order_by(events.c.position).limit(limit))]


def last_position(conn: Connection) -> int:
    """Where the feed ends now."""
    found = conn.execute(
        select(func.max(events.c.position)).where(events.c.position < _whole(conn, 0))
    ).scalar()
    return found or 0


def _whole(conn: Connection, position: int) -> int:
    """Behind `position`, nothing in front of this is missing that may still come."""
    if dialect_name(conn) == "sqlite":
        return NO_BOUND
    newest = conn.execute(select(func.max(events.c.position))).scalar() or 0
    if newest <= position:
        return NO_BOUND
    since = max(position, newest - _WINDOW)
    ordered = (
        select(
            events.c.position,
            events.c.at_ms,
            events.c.xid,
            func.lag(events.c.position, 1, since).over(order_by=events.c.position).label("before"),
        )
        .where(events.c.position > since)
        .subquery()
    )
    hole = select(func.min(ordered.c.position)).where(
        ordered.c.position > ordered.c.before + 1,
        or_(
            ordered.c.at_ms > now_ms(conn) - HOLE_MS,
            ordered.c.xid >= settled_below(conn),
        ),
    )
    return conn.execute(hole).scalar() or NO_BOUND


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
