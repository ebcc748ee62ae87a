"""Lanes: the one row through which everything that happens to a session is put in order.

A unit locks the lane, changes the `Lane` that it got, collects events and messages in it, and
saves it once. All counters of a session live here, so its numbers are dense and in order.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVarTuple

from sqlalchemy import (
    ColumnElement,
    CompoundSelect,
    Connection,
    Integer,
    Row,
    Select,
    Table,
    Text,
    bindparam,
    cast,
    delete,
    exists,
    func,
    insert,
    literal,
    literal_column,
    select,
    union_all,
    update,
)

from runtime.domain.errors import NotFound
from runtime.domain.events import EventKind
from runtime.domain.ids import IdPrefix, new_id
from runtime.domain.messages import ChatAddress
from runtime.domain.runs import Holder
from runtime.domain.summaries import summary
from runtime.domain.transcript import TranscriptMessage, message_tokens
from runtime.domain.value import JsonObject
from runtime.sessions import events, lane_writes
from runtime.sessions.lane_writes import FIELDS, FIXED
from runtime.sessions.runs import QUEUED, RUNNING, Run, run_of, worker_is_dead
from runtime.sessions.sessions import Session, session_of
from runtime.sessions.tables import lanes, runs, sessions
from runtime.sessions.transcripts import Line
from runtime.store.database import DIALECTS, STORE_TIME, DialectName, clock_ms, now_ms
from runtime.store.dialect import by_bytes, dialect_name, lock_rows, one_of, timed
from runtime.store.leases import PROCESS, held_by, held_params
from runtime.store.payloads import message_payload
from runtime.store.statements import Hot, hot, insert_new

Ts = TypeVarTuple("Ts")


SHUT, OPEN = "shut", "open"
CONVERSATION: Final = "conversation"
"""The kind of a session that people talk in."""


@dataclass(slots=True)
class Lane:
    """A session's lane while one unit holds it; mutable on purpose, saved by `save`.

    What kind of session it is and its place in a tree of sessions never change: `parent_id` is None
    and `depth` 0 at the root, whose `root_id` is its own.

    `gate` is None but for a subagent's lane: `SHUT` or held it never is ready, and where it is shut
    `wants_ms` says since when its head run could start if there was a slot.
    """

    session_id: str
    now_ms: int
    kind: str = CONVERSATION
    parent_id: str | None = None
    root_id: str = ""
    depth: int = 0
    input_seq: int = 0
    run_seq: int = 0
    event_seq: int = 0
    message_seq: int = 0
    transcript: int = 1
    transcript_from: int = 1
    window_from: int = 1
    undone: int = 0
    active_run: str | None = None
    ready_ms: int | None = None
    gate: str | None = None
    wants_ms: int | None = None
    new_events: list[dict[str, object]] = field(default_factory=list)
    new_messages: list[dict[str, object]] = field(default_factory=list)
    redact: Callable[[str], str] = field(default=str, compare=False)
    """Takes the gateway's secrets out of a text."""

    @property
    def is_idle(self) -> bool:
        """Whether nothing runs in it and nothing waits to."""
        return self.active_run is None and self.ready_ms is None and self.wants_ms is None

    def summary(self, text: str) -> str:
        """What a run is about that answers `text`, in one line for people."""
        return summary(self.redact(text))

    def begin_at(self, when: int | None) -> None:
        """Set when its head run may start; None where there is none."""
        self.ready_ms = when if self.gate in (None, OPEN) else None
        self.wants_ms = when if self.gate == SHUT else None

    @property
    def is_new(self) -> bool:
        """Whether the unit that holds it made it: all its events are still to be saved."""
        return self.event_seq == len(self.new_events)

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
    ) -> Line:
        """Append a message to the present transcript, or to an earlier one, where its run began."""
        self.message_seq += 1
        tokens = message_tokens(message)
        self.new_messages.append(
            {
                "session_id": self.session_id,
                "seq": self.message_seq,
                "transcript": transcript or self.transcript,
                "run_id": run_id,
                "step": step,
                "role": message.role,
                "payload": message_payload(message),
                "tokens": tokens,
                "created_ms": self.now_ms,
            }
        )
        return Line(self.message_seq, run_id, step, tokens, self.now_ms, message)


@dataclass(frozen=True, slots=True)
class NewSession:
    """What a session starts with. `parent` is the lane of the session that it belongs to."""

    key: str
    address: ChatAddress
    mode: str
    queue_mode: str
    title: str = ""
    kind: str = CONVERSATION
    parent: Lane | None = None


@dataclass(frozen=True, slots=True)
class Head:
    """The run that is first in its lane, with its session. `delegates`: other sessions are below
    that one."""

    run: Run
    session: Session
    delegates: bool


@dataclass(frozen=True, slots=True)
class Ready:
    """Lanes that a claim has locked. `passed_over`: others are ready too, which other units hold;
    never true where it has as many as it may."""

    lanes: Sequence[Lane]
    passed_over: bool


def _locking(
    found: Callable[[DialectName], Select[*Ts]], *, wait: bool = False
) -> Mapping[DialectName, Hot[Any]]:
    """Locks the lanes that no other unit holds, or with `wait` all of them. A lane is told the time
    at which the unit had its lock, by the statement that locks it."""
    return {
        name: hot(timed(name, lock_rows(found(name), skip_locked=not wait, of=lanes)))
        for name in DIALECTS
    }


def _waiting(found: Select[*Ts], *others: Table) -> Mapping[DialectName, Hot[Any]]:
    """Locks lanes and the rows of `others` beside them, behind them, once nobody else does."""
    locking = lock_rows(found, skip_locked=False, of=(lanes, *others))
    return {name: hot(timed(name, locking)) for name in DIALECTS}


_NAMES: Final = ("session_id", *FIXED, *FIELDS)
_COLUMNS = tuple(lanes.c[name] for name in _NAMES)
_RUN_NAMES: Final = tuple(runs.c.keys())
_SESSION_NAMES: Final = tuple(sessions.c.keys())
_keyed = sessions.alias("keyed")


def _columns_of(table: Table) -> Sequence[ColumnElement[Any]]:
    """The columns of a table beside those of the lane; they are read by their places."""
    return [column.label(f"{table.name}_{column.name}") for column in table.c]


_LOCK = _waiting(select(*_COLUMNS).where(lanes.c.session_id == bindparam("lane_session")))
# Locks are had in the order of the rows, and depth and id never change while others are waited for.
_LOCK_ALL = _locking(
    lambda on: (
        select(*_COLUMNS)
        .where(one_of(on, lanes.c.session_id, "lane_sessions"))
        .order_by(lanes.c.depth.desc(), by_bytes(on, lanes.c.session_id))
    ),
    wait=True,
)
_LOCK_OF_RUN = _waiting(
    select(*_COLUMNS).where(
        lanes.c.session_id
        == select(runs.c.session_id).where(runs.c.id == bindparam("lane_run")).scalar_subquery()
    )
)
# The key is looked up beforehand: the session that has it then is waited for, and is read after the
# wait, whatever its key is by then.
_LOCK_BY_KEY = _waiting(
    select(*_COLUMNS, *_columns_of(sessions))
    .join(sessions, sessions.c.id == lanes.c.session_id)
    .where(
        lanes.c.session_id
        == select(_keyed.c.id).where(_keyed.c.key == bindparam("session_key")).scalar_subquery()
    ),
    sessions,
)
# The rows beside the lane are locked as well, behind it: whoever waits for a lane would otherwise
# get them as they were before the wait, and take a lost run for its own.
_OF_RUN = runs.c.id == bindparam("lane_run")
_LOCK_RUN = _waiting(
    select(*_COLUMNS, *_columns_of(runs))
    .join(runs, runs.c.session_id == lanes.c.session_id)
    .where(_OF_RUN),
    runs,
)
_LOCK_RUN_IN_SESSION = _waiting(
    select(*_COLUMNS, *_columns_of(runs), *_columns_of(sessions))
    .join(runs, runs.c.session_id == lanes.c.session_id)
    .join(sessions, sessions.c.id == lanes.c.session_id)
    .where(_OF_RUN),
    runs,
    sessions,
)
_below = lanes.alias("below")
DELEGATES = (
    exists()
    .where(_below.c.root_id == lanes.c.root_id, _below.c.parent_id == lanes.c.session_id)
    .label("delegates")
)
"""Whether sessions are below that of a lane."""
_earlier = runs.alias("earlier")
_HEADS: Mapping[DialectName, Hot[Any]] = {
    name: hot(
        select(
            *_columns_of(runs),
            *_columns_of(sessions),
            lanes.c.transcript,
            lanes.c.kind,
            lanes.c.parent_id,
            DELEGATES,
        )
        .join(runs, runs.c.session_id == lanes.c.session_id)
        .join(sessions, sessions.c.id == lanes.c.session_id)
        .where(
            one_of(name, lanes.c.session_id, "of_sessions"),
            # All of it is in the index of queued runs, so SQLite has no reason to read others.
            runs.c.seq
            == select(func.min(_earlier.c.seq))
            .where(
                _earlier.c.session_id == lanes.c.session_id,
                literal_column("earlier.state", Text) == QUEUED,
            )
            .scalar_subquery(),
        )
    )
    for name in DIALECTS
}
# A plain parameter here is Core's for each execution; an expression is not.
_MOST = cast(bindparam("most", type_=Integer()), Integer)
_beside = lanes.alias("beside")


def _ready(on: DialectName) -> Hot[Any]:
    """Lanes that are free now, where the holder's lease is; `ready` is how many there are, also of
    those that others hold: on SQLite nobody does."""
    # A time of its own for each row could not be looked for in the index.
    now = select(STORE_TIME[on]).scalar_subquery()
    free = lock_rows(
        select(*_COLUMNS)
        .where(lanes.c.ready_ms <= now, held_by(on))
        .order_by(lanes.c.ready_ms)
        .limit(_MOST),
        skip_locked=True,
    )
    if on == "sqlite":
        return hot(timed(on, free))
    there = select(_beside.c.session_id).where(_beside.c.ready_ms <= now).limit(_MOST).subquery()
    count = select(func.count()).select_from(there).scalar_subquery()
    return hot(timed(on, free).add_columns(count.label("ready")))


_READY: Mapping[DialectName, Hot[Any]] = {name: _ready(name) for name in DIALECTS}
_WANTING = _locking(
    lambda on: (
        select(*_COLUMNS)
        .where(lanes.c.wants_ms <= select(STORE_TIME[on]).scalar_subquery())
        .order_by(lanes.c.wants_ms)
        .limit(_MOST)
    )
)
_ABANDONED = _locking(
    lambda on: (
        select(*_COLUMNS)
        .join(runs, runs.c.session_id == lanes.c.session_id)
        .where(
            RUNNING,
            runs.c.cancel.is_(None),
            runs.c.attempt < bindparam("attempts"),
            worker_is_dead(on),
        )
        .limit(_MOST)
    )
)
_ANY_READY = hot(
    select(lanes.c.session_id)
    .where(lanes.c.ready_ms <= select(STORE_TIME["postgresql"]).scalar_subquery())
    .limit(literal_column("1"))
)
_NEXT_QUEUED = hot(
    select(runs.c.ready_ms)
    .where(runs.c.session_id == bindparam("lane_session"), runs.c.state == QUEUED)
    .order_by(runs.c.seq)
    .limit(literal_column("1"))
)
# What RETURNING gives is worked out after the row was locked and changed.
_NEXT_EVENT: Mapping[DialectName, Hot[Any]] = {
    name: hot(
        update(lanes)
        .where(lanes.c.session_id == bindparam("lane_session"))
        .values(event_seq=lanes.c.event_seq + 1)
        .returning(lanes.c.event_seq, lanes.c.ready_ms, STORE_TIME[name].label("at_ms"))
    )
    for name in DIALECTS
}


def window(conn: Connection, session_id: str) -> tuple[int, int]:
    """The transcript of a session and where its window begins."""
    row = conn.execute(
        select(lanes.c.transcript, lanes.c.window_from).where(lanes.c.session_id == session_id)
    ).one()
    return row.transcript, row.window_from


def tree(session_id: str) -> CompoundSelect[str]:
    """The session at the root of a tree and all below it."""
    # One list of sessions: SQLite reads the whole table for two that are joined by OR.
    return union_all(select(literal(session_id)), below(session_id))


def below(session_id: str) -> Select[str]:
    """The sessions below the one at the root of a tree."""
    return select(lanes.c.session_id).where(
        lanes.c.root_id == session_id, lanes.c.parent_id.is_not(None)
    )


def parent_of(conn: Connection, session_id: str) -> str | None:
    """The session that one belongs to; None at the root of a tree."""
    query = select(lanes.c.parent_id).where(lanes.c.session_id == session_id)
    return conn.execute(query).scalar()


def lock(conn: Connection, session_id: str) -> Lane:
    """The lane, held until the unit ends. Raises `NotFound`."""
    row = _LOCK[dialect_name(conn)].first(conn, lane_session=session_id, clock_ms=clock_ms(conn))
    if row is None:
        raise NotFound("session", session_id)
    return _lane(row)


def lock_all(conn: Connection, session_ids: Collection[str]) -> Sequence[Lane]:
    """Those of these lanes that there are, locked in the order of locks by one statement."""
    wanted = {"lane_sessions": list(session_ids), "clock_ms": clock_ms(conn)}
    return [_lane(row) for row in _LOCK_ALL[dialect_name(conn)].rows(conn, **wanted)]


def lock_of_run(conn: Connection, run_id: str) -> Lane:
    """The lane of a run, held until the unit ends. Raises `NotFound`."""
    return _lane(_of_run(conn, _LOCK_OF_RUN, run_id))


def lock_run(conn: Connection, run_id: str) -> tuple[Lane, Run]:
    """A run and its lane, as they are once the lane is held, until the unit ends. Raises
    `NotFound`."""
    row = _of_run(conn, _LOCK_RUN, run_id)
    return _lane(row), _run(row)


def lock_run_in_session(conn: Connection, run_id: str) -> tuple[Lane, Run, Session]:
    """A run with its session and lane, as they are once the lane is held, until the unit ends.
    Raises `NotFound`."""
    row = _of_run(conn, _LOCK_RUN_IN_SESSION, run_id)
    return _lane(row), _run(row), _session(row, behind=len(_NAMES) + len(_RUN_NAMES))


def _of_run(conn: Connection, locking: Mapping[DialectName, Hot[Any]], run_id: str) -> Row[Any]:
    row = locking[dialect_name(conn)].first(conn, lane_run=run_id, clock_ms=clock_ms(conn))
    if row is None:
        raise NotFound("run", run_id)
    return row


def lock_by_key(conn: Connection, key: str) -> tuple[Lane, Session] | None:
    """The session that has `key` and its lane, as they are once the lane is held, until the unit
    ends. It may have lost the key while the lane was waited for."""
    row = _LOCK_BY_KEY[dialect_name(conn)].first(conn, session_key=key, clock_ms=clock_ms(conn))
    return None if row is None else (_lane(row), _session(row, behind=len(_NAMES)))


def heads(conn: Connection, session_ids: Sequence[str]) -> Mapping[str, Head]:
    """The queued runs that are first in these lanes, by session. The lanes are held."""
    rows = _HEADS[dialect_name(conn)].rows(conn, of_sessions=list(session_ids))
    found = [
        Head(_run(row, behind=0), _session(row, behind=len(_RUN_NAMES)), bool(row.delegates))
        for row in rows
    ]
    return {head.session.id: head for head in found}


def lock_ready(conn: Connection, holder: Holder, *, most: int) -> Ready:
    """Free lanes whose head run may start now, longest waiting first; busy rows are skipped.

    There is none for a holder whose process lease ran out.
    """
    dialect = dialect_name(conn)
    lease = held_params(f"{PROCESS}{holder.worker}", holder)
    rows = _READY[dialect].rows(conn, most=most, clock_ms=clock_ms(conn), **lease)
    if dialect == "sqlite" or len(rows) == most:
        return Ready([_lane(row) for row in rows], passed_over=False)
    passed_over = rows[0].ready > len(rows) if rows else _is_any_ready(conn)
    return Ready([_lane(row) for row in rows], passed_over)


def lock_wanting(conn: Connection, *, most: int) -> Sequence[Lane]:
    """Lanes of children whose head run could start if it had a slot, longest waiting first."""
    rows = _WANTING[dialect_name(conn)].rows(conn, most=most, clock_ms=clock_ms(conn))
    return [_lane(row) for row in rows]


def lock_abandoned(conn: Connection, *, most: int, attempts: int) -> Sequence[Lane]:
    """Lanes whose run goes on elsewhere, because its worker is dead: nobody asked for its end, and
    fewer than `attempts` workers died with it. Lanes that another unit holds are skipped."""
    rows = _ABANDONED[dialect_name(conn)].rows(
        conn, most=most, attempts=attempts, clock_ms=clock_ms(conn)
    )
    return [_lane(row) for row in rows]


def _is_any_ready(conn: Connection) -> bool:
    return _ANY_READY.first(conn, clock_ms=clock_ms(conn)) is not None


def create(conn: Connection, new: NewSession, *, session_id: str = "") -> Lane | None:
    """Make a session and its lane; None when another unit made the key meanwhile.

    Its id is `session_id`, where the caller has told it to somebody already.
    """
    now = now_ms(conn)
    session_id = session_id or new_id(IdPrefix.SESSION, now)
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
    lane = _first(session_id, new, now)
    conn.execute(
        insert(lanes).values(session_id=session_id, **{name: getattr(lane, name) for name in FIXED})
    )
    lane.record(EventKind.SESSION_CREATED, None, {"key": new.key})
    return lane


def _first(session_id: str, new: NewSession, now: int) -> Lane:
    above = new.parent
    if above is None:
        return Lane(session_id, now, new.kind, root_id=session_id)
    return Lane(session_id, now, new.kind, above.session_id, above.root_id, above.depth + 1)


def take_back(conn: Connection, lane: Lane) -> None:
    """Remove a session and its lane that this unit made, instead of saving them."""
    conn.execute(delete(lanes).where(lanes.c.session_id == lane.session_id))
    conn.execute(delete(sessions).where(sessions.c.id == lane.session_id))


def save(conn: Connection, *held: Lane) -> None:
    """Write lanes and what was collected in them."""
    lane_writes.write(
        conn,
        [
            {"lane_session": lane.session_id}
            | {f"new_{name}": getattr(lane, name) for name in FIELDS}
            for lane in held
        ],
        [message for lane in held for message in lane.new_messages],
        [event for lane in held for event in lane.new_events],
    )


def settle(conn: Connection, lane: Lane, *, ended: int | None = None) -> None:
    """Set when the lane's head run may start: never while a run holds it.

    `ended` is the number of the run that had the lane. Where it is the last, none waits behind it.
    """
    if lane.active_run is not None or ended == lane.run_seq:
        lane.begin_at(None)
    else:
        head = _NEXT_QUEUED.first(conn, lane_session=lane.session_id)
        lane.begin_at(None if head is None else head.ready_ms)


@dataclass(frozen=True, slots=True)
class Recorded:
    """When a lane was locked for one event, and whether a run of it may start now."""

    at_ms: int
    ready: bool


def record_event(
    conn: Connection, session_id: str, kind: EventKind, run_id: str | None, data: JsonObject
) -> Recorded:
    """Add one event without reading the lane (a delivery's end)."""
    numbered = _NEXT_EVENT[dialect_name(conn)].first(
        conn, lane_session=session_id, clock_ms=clock_ms(conn)
    )
    if numbered is None:
        raise NotFound("session", session_id)
    now: int = numbered.at_ms
    lane = Lane(session_id, now, event_seq=numbered.event_seq - 1)
    lane.record(kind, run_id, data)
    events.add(conn, lane.new_events)
    return Recorded(now, numbered.ready_ms is not None and numbered.ready_ms <= now)


def _lane(row: Row[Any]) -> Lane:
    """The lane of a row that begins with its columns."""
    return Lane(now_ms=row.at_ms, **dict(zip(_NAMES, row, strict=False)))


def _run(row: Row[Any], *, behind: int = len(_NAMES)) -> Run:
    """The run of a row whose columns are behind so many others, mostly the lane's."""
    return run_of(dict(zip(_RUN_NAMES, row[behind:], strict=False)))


def _session(row: Row[Any], *, behind: int) -> Session:
    """The session of a row whose columns are behind so many others."""
    of_lane = {"transcript": row.transcript, "kind": row.kind, "parent_id": row.parent_id}
    return session_of(dict(zip(_SESSION_NAMES, row[behind:], strict=False)) | of_lane)
