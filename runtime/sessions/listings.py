"""Reads for people: pages of sessions, runs, and what a conversation looks like. Writes nothing.

A conversation is shown by time. It holds the transcript, what the gateway itself said (notices,
cards, the last words of a failed run) and what people wrote that is in no transcript: commands,
answers, and messages that still wait for their run.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    and_,
    case,
    exists,
    false,
    func,
    or_,
    select,
)

from runtime.domain.messages import OutboundMessage
from runtime.sessions.inputs import Input, input_of
from runtime.sessions.lanes import tree
from runtime.sessions.outbox import LIVE_CARD, OutboxRow, row_of
from runtime.sessions.tables import events, inputs, lanes, messages, outbox, runs, sessions
from runtime.sessions.transcripts import Line, line_of
from runtime.store.payloads import kept

INPUT, MESSAGE, POST = 0, 1, 2
"""The order of things of the same millisecond."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands in a conversation: time in ms, kind, number within the kind."""

    at_ms: int
    rank: int
    number: int


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a conversation: `since` inclusive, `until` exclusive, both in ms."""

    since: int
    until: int


@dataclass(frozen=True, slots=True)
class SessionLine:
    """A session in a list. `last_ms` is its last activity; `archived`: nothing happened in it since
    it was put aside."""

    id: str
    last_ms: int
    active_run: str | None
    archived: bool = False


@dataclass(frozen=True, slots=True)
class SessionFilter:
    """Which sessions are wanted. `children`: those of subagents too. `title` is a part of the
    title, in letters of either case. `archived`: None for all.
    A `key` is the whole key of one session: it alone is wanted, whatever the rest says. `unlisted`
    are conditions of those that no list shows (`SessionKind.unlisted`)."""

    children: bool = True
    title: str = ""
    key: str = ""
    archived: bool | None = None
    unlisted: tuple[ColumnElement[bool], ...] = field(default=(), compare=False)


EVERY_SESSION: Final = SessionFilter()


@dataclass(frozen=True, slots=True)
class LaneFigures:
    """All lanes together: how many there are, are busy, are ready; inputs ever accepted."""

    lanes: int
    active: int
    ready: int
    inputs: int


_POSTS = ("notice", "card", "file", LIVE_CARD)
_OVER = ("completed", "failed", "interrupted", "cancelled")
_last_activity = case(
    (messages.c.created_ms > sessions.c.updated_ms, messages.c.created_ms),
    else_=sessions.c.updated_ms,
)
_archived = func.coalesce(sessions.c.archived_ms >= _last_activity, false())
_LISTED = sessions.join(lanes, lanes.c.session_id == sessions.c.id).join(
    messages,
    and_(messages.c.session_id == sessions.c.id, messages.c.seq == lanes.c.message_seq),
    isouter=True,
)
_SESSIONS = (
    select(
        sessions.c.id,
        _last_activity.label("last_ms"),
        lanes.c.active_run,
        _archived.label("archived"),
    )
    .select_from(_LISTED)
    .order_by(_last_activity.desc(), sessions.c.id.desc())
)


_NO_CHILD: Final = lanes.c.parent_id.is_(None)


def session_lines(
    conn: Connection,
    *,
    limit: int,
    before: tuple[int, str] | None,
    wanted: SessionFilter = EVERY_SESSION,
) -> Sequence[SessionLine]:
    """Newest activity first; `before` is (last_ms, id) of the last one seen."""
    query = _SESSIONS.where(*_listed(wanted)).limit(limit)
    if before is not None:
        last, seen = before
        query = query.where(
            or_(_last_activity < last, and_(_last_activity == last, sessions.c.id < seen))
        )
    return [_session_line(row) for row in conn.execute(query)]


def session_line(conn: Connection, session_id: str) -> SessionLine | None:
    """One session's."""
    row = conn.execute(_SESSIONS.where(sessions.c.id == session_id)).first()
    return None if row is None else _session_line(row)


def count_sessions(conn: Connection, wanted: SessionFilter = EVERY_SESSION) -> int:
    """All that are listed."""
    query = select(func.count()).select_from(_LISTED).where(*_listed(wanted))
    return conn.execute(query).scalar_one()


def _session_line(row: Row[tuple[str, int, str | None, bool]]) -> SessionLine:
    return SessionLine(row.id, row.last_ms, row.active_run, bool(row.archived))


def _listed(wanted: SessionFilter) -> list[ColumnElement[bool]]:
    if wanted.key:
        return [sessions.c.key == wanted.key]
    found: list[ColumnElement[bool]] = [_NO_CHILD]
    if wanted.children:
        found = [~one for one in wanted.unlisted]
    if wanted.title:
        title = func.lower(sessions.c.title)
        found.append(title.contains(wanted.title.lower(), autoescape=True))
    if wanted.archived is not None:
        found.append(_archived if wanted.archived else ~_archived)
    return found


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs are wanted; None wants all."""

    session_id: str | None = None
    state: str | None = None


def run_ids(
    conn: Connection, wanted: RunFilter, *, limit: int, before: str | None
) -> Sequence[str]:
    """Newest first, by id; `before` is the last one seen."""
    query = select(runs.c.id).where(*_wanted(wanted)).order_by(runs.c.id.desc()).limit(limit)
    if before is not None:
        query = query.where(runs.c.id < before)
    return [row.id for row in conn.execute(query)]


def count_runs(conn: Connection, wanted: RunFilter) -> int:
    """How many there are."""
    query = select(func.count()).select_from(runs).where(*_wanted(wanted))
    return conn.execute(query).scalar_one()


def _wanted(wanted: RunFilter) -> list[ColumnElement[bool]]:
    found = []
    if wanted.session_id is not None:
        found.append(runs.c.session_id == wanted.session_id)
    if wanted.state is not None:
        found.append(runs.c.state == wanted.state)
    return found


def spans(conn: Connection, session_id: str) -> Mapping[int, int]:
    """Transcript number -> when it was begun, in ms; the first one at 0."""
    rows = conn.execute(
        select(events.c.at_ms, events.c.data)
        .where(events.c.session_id == session_id, events.c.kind == "session.changed")
        .order_by(events.c.seq)
    )
    begun = {1: 0}
    for row in rows:
        number = json.loads(row.data).get("transcript")
        if isinstance(number, int):
            begun[number] = row.at_ms
    return begun


def lines_before(
    conn: Connection, session_id: str, *, transcript: int, before: Place | None, limit: int
) -> Sequence[Line]:
    """The newest messages in front of a place, newest first; a step's results are not among
    them, because they are shown with their calls."""
    query = (
        select(messages)
        .where(
            messages.c.session_id == session_id,
            messages.c.transcript == transcript,
            messages.c.role != "tool",
        )
        .order_by(messages.c.created_ms.desc(), messages.c.seq.desc())
        .limit(limit)
    )
    if before is not None:
        query = query.where(_earlier(messages.c.created_ms, messages.c.seq, MESSAGE, before))
    return [line_of(row) for row in conn.execute(query)]


def posts_before(
    conn: Connection, session_id: str, span: Span, *, before: Place | None, limit: int
) -> Sequence[OutboxRow]:
    """Notices, cards (also those of agents at work), files and the last words of failed runs in
    front of a place, newest first.

    What subagents ask and send stands in the chat of their root as well (APR-7).
    """
    failed = exists().where(runs.c.id == outbox.c.run_id, runs.c.state == "failed")
    query = (
        select(outbox)
        .where(
            outbox.c.session_id.in_(tree(session_id).scalar_subquery()),
            outbox.c.created_ms >= span.since,
            outbox.c.created_ms < span.until,
            or_(outbox.c.kind.in_(_POSTS), and_(outbox.c.kind == "final", failed)),
        )
        .order_by(outbox.c.created_ms.desc(), outbox.c.position.desc())
        .limit(limit)
    )
    if before is not None:
        query = query.where(_earlier(outbox.c.created_ms, outbox.c.position, POST, before))
    return [row_of(row) for row in conn.execute(query)]


def inputs_before(
    conn: Connection, session_id: str, span: Span, *, before: Place | None, limit: int
) -> Sequence[Input]:
    """What was applied at once, or stopped before its run began, newest first."""
    stopped = exists().where(runs.c.id == inputs.c.run_id, runs.c.state.in_(_OVER))
    query = (
        select(inputs)
        .where(
            inputs.c.session_id == session_id,
            inputs.c.received_ms >= span.since,
            inputs.c.received_ms < span.until,
            or_(
                inputs.c.state.in_(("command", "answer")),
                and_(inputs.c.state == "pending", stopped),
            ),
        )
        .order_by(inputs.c.received_ms.desc(), inputs.c.seq.desc())
        .limit(limit)
    )
    if before is not None:
        query = query.where(_earlier(inputs.c.received_ms, inputs.c.seq, INPUT, before))
    return [input_of(row) for row in conn.execute(query)]


def inputs_waiting(conn: Connection, session_id: str) -> Sequence[Input]:
    """Messages whose run has not begun, oldest first."""
    query = (
        select(inputs)
        .join(runs, runs.c.id == inputs.c.run_id)
        .where(
            inputs.c.session_id == session_id,
            inputs.c.state == "pending",
            runs.c.state.not_in(_OVER),
        )
        .order_by(inputs.c.seq)
        .limit(200)
    )
    return [input_of(row) for row in conn.execute(query)]


def outcomes(conn: Connection, open_call_ids: Sequence[str]) -> Mapping[str, str]:
    """Open call -> the sentence on its changed card."""
    rows = conn.execute(
        select(outbox.c.open_call_id, outbox.c.message)
        .where(outbox.c.open_call_id.in_(open_call_ids), outbox.c.kind == "edit")
        .order_by(outbox.c.position)
    )
    found = {}
    for row in rows:
        for part in kept(OutboundMessage, row.message).parts:
            if part.kind in ("approval", "question"):
                found[str(row.open_call_id)] = part.outcome
    return found


def final_states(conn: Connection, run_ids: Sequence[str]) -> Mapping[str, str]:
    """Run -> what became of its reply on the way to the person."""
    rows = conn.execute(
        select(outbox.c.run_id, outbox.c.state).where(
            outbox.c.run_id.in_(run_ids), outbox.c.kind == "final"
        )
    )
    return {str(row.run_id): str(row.state) for row in rows}


def undone(conn: Connection, run_ids: Collection[str]) -> frozenset[str]:
    """Those of these runs that were taken back."""
    query = select(runs.c.id).where(runs.c.id.in_(run_ids), runs.c.undone_ms.is_not(None))
    return frozenset(conn.execute(query).scalars())


def problems(conn: Connection, *, limit: int, before: int | None) -> Sequence[OutboxRow]:
    """Messages that were given up or may have been sent twice or never, newest first (I7)."""
    query = (
        select(outbox)
        .where(outbox.c.state.in_(("dead", "unknown")))
        .order_by(outbox.c.position.desc())
        .limit(limit)
    )
    if before is not None:
        query = query.where(outbox.c.position < before)
    return [row_of(row) for row in conn.execute(query)]


def lane_figures(conn: Connection) -> LaneFigures:
    """For metrics."""
    row = conn.execute(
        select(
            func.count(),
            func.count(lanes.c.active_run),
            func.count(lanes.c.ready_ms),
            func.coalesce(func.sum(lanes.c.input_seq), 0),
        ).select_from(lanes)
    ).one()
    return LaneFigures(int(row[0]), int(row[1]), int(row[2]), int(row[3]))


def _earlier(
    time: ColumnElement[int], number: ColumnElement[int], rank: int, place: Place
) -> ColumnElement[bool]:
    if rank < place.rank:
        return time <= place.at_ms
    if rank > place.rank:
        return time < place.at_ms
    return or_(time < place.at_ms, and_(time == place.at_ms, number < place.number))
