"""Lanes: the one row through which everything that happens to a session is put in order.

A unit locks the lane, changes the `Lane` that it got, collects events and messages in it, and
saves it once. All counters of a session live here, so its numbers are dense and in order.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection, Row, bindparam, insert, literal_column, select, update

from runtime.domain.errors import NotFound
from runtime.domain.events import EventKind
from runtime.domain.ids import IdPrefix, new_id
from runtime.domain.messages import ChatAddress
from runtime.domain.transcript import TranscriptMessage, message_tokens
from runtime.domain.value import JsonObject
from runtime.store import events
from runtime.store.database import now_ms
from runtime.store.dialect import lock_rows
from runtime.store.hot import hot
from runtime.store.rows import insert_new
from runtime.store.runs import QUEUED
from runtime.store.tables import inputs, lanes, messages, runs, sessions


@dataclass(slots=True)
class Lane:
    """A session's lane while one unit holds it; mutable on purpose, saved by `save`."""

    session_id: str
    now_ms: int
    input_seq: int = 0
    run_seq: int = 0
    event_seq: int = 0
    message_seq: int = 0
    transcript: int = 1
    transcript_from: int = 1
    window_from: int = 1
    active_run: str | None = None
    ready_ms: int | None = None
    new_events: list[dict[str, object]] = field(default_factory=list)
    new_messages: list[dict[str, object]] = field(default_factory=list)

    def record(self, kind: EventKind, run_id: str | None, data: JsonObject | None = None) -> None:
        """Add a durable event; it gets its place in the session now."""
        self.event_seq += 1
        self.new_events.append(
            {
                "session_id": self.session_id,
                "seq": self.event_seq,
                "run_id": run_id,
                "kind": kind.value,
                "data": json.dumps(data or {}, ensure_ascii=False),
                "at_ms": self.now_ms,
            }
        )

    def say(
        self,
        message: TranscriptMessage,
        *,
        run_id: str | None,
        step: int,
        transcript: int | None = None,
    ) -> int:
        """Append a message to the present transcript, or to an earlier one that its run began in;
        its sequence number."""
        self.message_seq += 1
        self.new_messages.append(
            {
                "session_id": self.session_id,
                "seq": self.message_seq,
                "transcript": transcript or self.transcript,
                "run_id": run_id,
                "step": step,
                "role": message.role,
                "payload": message.model_dump_json(),
                "tokens": message_tokens(message),
                "created_ms": self.now_ms,
            }
        )
        return self.message_seq


@dataclass(frozen=True, slots=True)
class NewSession:
    """What a session starts with."""

    key: str
    address: ChatAddress
    mode: str
    queue_mode: str
    title: str = ""


_FIELDS = (
    "input_seq",
    "run_seq",
    "event_seq",
    "message_seq",
    "transcript",
    "transcript_from",
    "window_from",
    "active_run",
    "ready_ms",
)
_COLUMNS = (lanes.c.session_id, *(lanes.c[name] for name in _FIELDS))
_LOCK = hot(
    lock_rows(
        select(*_COLUMNS).where(lanes.c.session_id == bindparam("lane_session")),
        skip_locked=False,
    )
)
_LOCK_OF_RUN = hot(
    lock_rows(
        select(*_COLUMNS).where(
            lanes.c.session_id
            == select(runs.c.session_id).where(runs.c.id == bindparam("lane_run")).scalar_subquery()
        ),
        skip_locked=False,
    )
)
_LOCK_BY_KEY = hot(
    lock_rows(
        select(*_COLUMNS)
        .join(sessions, sessions.c.id == lanes.c.session_id)
        .where(sessions.c.key == bindparam("session_key")),
        skip_locked=False,
        of=lanes,
    )
)
# A bound LIMIT is not a parameter that Core would let the driver see, so this one goes by Core.
_READY = lock_rows(
    select(*_COLUMNS)
    .where(lanes.c.ready_ms <= bindparam("moment"))
    .order_by(lanes.c.ready_ms)
    .limit(bindparam("most")),
    skip_locked=True,
)
_ANY_READY = select(lanes.c.session_id).where(lanes.c.ready_ms <= bindparam("moment")).limit(1)
_SAVE = hot(
    update(lanes)
    .where(lanes.c.session_id == bindparam("lane_session"))
    .values({name: bindparam(f"new_{name}") for name in _FIELDS})
)
_INSERT_MESSAGES = hot(insert(messages))
_NEXT_QUEUED = hot(
    select(runs.c.ready_ms)
    .where(runs.c.session_id == bindparam("lane_session"), runs.c.state == QUEUED)
    .order_by(runs.c.seq)
    .limit(literal_column("1"))
)
_NEXT_EVENT = hot(
    update(lanes)
    .where(lanes.c.session_id == bindparam("lane_session"))
    .values(event_seq=lanes.c.event_seq + 1)
    .returning(lanes.c.event_seq)
)


def lock(conn: Connection, session_id: str) -> Lane:
    """The lane, held until the unit ends. Raises `NotFound`."""
    row = _LOCK.first(conn, lane_session=session_id)
    if row is None:
        raise NotFound("session", session_id)
    return _lane(row, now_ms(conn))


def lock_of_run(conn: Connection, run_id: str) -> Lane:
    """The lane of a run, held until the unit ends. Raises `NotFound`.

    What a unit reads of the run before it holds the lane may be over by the time it does.
    """
    row = _LOCK_OF_RUN.first(conn, lane_run=run_id)
    if row is None:
        raise NotFound("run", run_id)
    return _lane(row, now_ms(conn))


def lock_by_key(conn: Connection, key: str) -> Lane | None:
    """The lane of the session that has `key`, held until the unit ends."""
    row = _LOCK_BY_KEY.first(conn, session_key=key)
    return None if row is None else _lane(row, now_ms(conn))


def lock_ready(conn: Connection, *, most: int) -> Sequence[Lane]:
    """Free lanes whose head run may start now, longest waiting first; busy rows are skipped."""
    now = now_ms(conn)
    return [_lane(row, now) for row in conn.execute(_READY, {"moment": now, "most": most})]


def any_ready(conn: Connection) -> bool:
    """Whether a claim would find something; cheaper than claiming nothing."""
    return conn.execute(_ANY_READY, {"moment": now_ms(conn)}).first() is not None


def create(conn: Connection, new: NewSession) -> Lane | None:
    """Make a session and its lane; None when another unit made the key meanwhile."""
    now = now_ms(conn)
    session_id = new_id(IdPrefix.SESSION, now)
    made = insert_new(
        conn,
        sessions,
        {
            "id": session_id,
            "key": new.key,
            "address": new.address.model_dump_json(),
            "title": new.title,
            "status": "open",
            "mode": new.mode,
            "queue_mode": new.queue_mode,
            "agent": "main",
            "grants": "[]",
            "created_ms": now,
            "updated_ms": now,
        },
    )
    if not made:
        return None
    conn.execute(insert(lanes).values(session_id=session_id))
    lane = Lane(session_id, now)
    lane.record(EventKind.SESSION_CREATED, None, {"key": new.key})
    return lane


def save(conn: Connection, lane: Lane) -> None:
    """Write the lane and what was collected in it."""
    values: dict[str, object] = {f"new_{name}": getattr(lane, name) for name in _FIELDS}
    _SAVE.change(conn, lane_session=lane.session_id, **values)
    for message in lane.new_messages:
        _INSERT_MESSAGES.change(conn, **message)
    if lane.new_events:
        events.add(conn, lane.new_events)


def settle(conn: Connection, lane: Lane) -> None:
    """Set when the lane's head run may start: never while a run holds it."""
    if lane.active_run is not None:
        lane.ready_ms = None
    else:
        head = _NEXT_QUEUED.first(conn, lane_session=lane.session_id)
        lane.ready_ms = None if head is None else head.ready_ms


def record_event(
    conn: Connection, session_id: str, kind: EventKind, run_id: str | None, data: JsonObject
) -> None:
    """Add one event without holding the lane for more (a delivery's end)."""
    numbered = _NEXT_EVENT.first(conn, lane_session=session_id)
    if numbered is None:
        raise NotFound("session", session_id)
    lane = Lane(session_id, now_ms(conn), event_seq=numbered.event_seq - 1)
    lane.record(kind, run_id, data)
    events.add(conn, lane.new_events)


def depth(conn: Connection, session_id: str) -> int:
    """Inputs of the lane that no run has taken yet."""
    rows = conn.execute(
        select(inputs.c.id).where(inputs.c.session_id == session_id, inputs.c.state == "pending")
    )
    return len(rows.all())


def _lane(row: Row[tuple[object, ...]], now: int) -> Lane:
    values = row._asdict()
    return Lane(now_ms=now, **values)
