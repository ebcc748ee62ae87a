"""Transcript rows: appended, never changed; read as a bounded window or as pages.

Lines of runs that were taken back stay, and are left out of what goes into a prompt (MSG-22).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, Row, bindparam, exists, select

from runtime.domain.transcript import TranscriptMessage
from runtime.sessions.tables import messages, runs
from runtime.store.payloads import kept_message


@dataclass(frozen=True, slots=True)
class Line:
    """One message of a transcript with its place, run and cost in the window."""

    seq: int
    run_id: str | None
    step: int
    tokens: int
    created_ms: int
    message: TranscriptMessage


_STANDS = ~exists().where(runs.c.id == messages.c.run_id, runs.c.undone_ms.is_not(None))
_SINCE = (
    select(messages)
    .where(
        messages.c.session_id == bindparam("session"),
        messages.c.seq >= bindparam("first"),
        messages.c.transcript == bindparam("part"),
        _STANDS,
    )
    .order_by(messages.c.seq)
)


def since(conn: Connection, session_id: str, *, transcript: int, first: int) -> Sequence[Line]:
    """Messages of one transcript from sequence number `first` on, oldest first."""
    rows = conn.execute(_SINCE, {"session": session_id, "first": first, "part": transcript})
    return [line_of(row) for row in rows]


def has_results(conn: Connection, session_id: str, *, run_id: str, step: int, since: int) -> bool:
    """Whether the results of a run's step are in the transcript, at or after a number.

    Only an active run is asked about, and what it said last is at the end: no index by run is
    kept for this.
    """
    found = conn.execute(
        select(messages.c.seq).where(
            messages.c.session_id == session_id,
            messages.c.seq >= since,
            messages.c.run_id == run_id,
            messages.c.step == step,
            messages.c.role == "tool",
        )
    )
    return found.first() is not None


def page(
    conn: Connection, session_id: str, *, transcript: int, before: int, limit: int
) -> Sequence[Line]:
    """At most `limit` messages with a number below `before`, oldest first."""
    rows = conn.execute(
        select(messages)
        .where(
            messages.c.session_id == session_id,
            messages.c.transcript == transcript,
            messages.c.seq < before,
            _STANDS,
        )
        .order_by(messages.c.seq.desc())
        .limit(limit)
    ).all()
    return [line_of(row) for row in reversed(rows)]


def line_of(row: Row[tuple[object, ...]]) -> Line:
    """A row as it was read."""
    found = row._mapping
    message = kept_message(found["payload"])
    return Line(
        found["seq"], found["run_id"], found["step"], found["tokens"], found["created_ms"], message
    )
