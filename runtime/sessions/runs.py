"""Run rows: their states, who holds them, and what they cost."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    Row,
    RowMapping,
    Text,
    bindparam,
    exists,
    insert,
    literal_column,
    or_,
    select,
    update,
)

from runtime.domain.errors import NotFound, StaleLease
from runtime.domain.messages import ChatAddress
from runtime.domain.people import Speaker
from runtime.domain.runs import TERMINAL, Holder, RunKind, RunState, Usage, check_transition
from runtime.sessions.tables import runs
from runtime.store.database import DIALECTS, STORE_TIME, DialectName, clock_ms
from runtime.store.dialect import dialect_name, one_of
from runtime.store.leases import PROCESS
from runtime.store.payloads import kept, quoted
from runtime.store.row_values import from_row
from runtime.store.statements import Hot, hot
from runtime.store.tables import leases

MOST_DOUBLINGS: Final = 8
"""Doublings of a retry's wait at most."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run. `cancel` holds the reason once somebody asked for its end, `replaced` says that a
    newer message did; `summary` is what it is about, for people; `steered`, that messages wait for
    its next step; `late`, that it gathers what arrived late. `attempt` counts the workers that died
    with it."""

    id: str
    session_id: str
    seq: int
    kind: RunKind
    ready_ms: int
    target: ChatAddress
    reply_to: str | None
    speaker: Speaker
    created_ms: int
    state: RunState = RunState.QUEUED
    collecting: bool = False
    transcript: int = 0
    step: int = 0
    attempt: int = 0
    worker: str | None = None
    fence: int | None = None
    cancel: str | None = None
    replaced: bool = False
    steered: bool = False
    late: bool = False
    model: str = ""
    usage: Usage = field(default_factory=Usage)
    tainted: bool = False
    error: str | None = None
    summary: str = ""
    started_ms: int | None = None
    ended_ms: int | None = None
    undone_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Retry:
    """Leave to begin anew: at most `most` times, first after `base_ms`, then after twice as long.
    `jitter`, in [0, 1), makes a wait longer by up to half of it."""

    most: int
    base_ms: int
    jitter: float

    def wait_ms(self, retries: int) -> int:
        """How long the next try waits, after so many."""
        doubled: int = self.base_ms * 2 ** min(retries, MOST_DOUBLINGS)
        return int(doubled * (1 + self.jitter / 2))


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How a run ended. `text` is what it said, `why` it ended where it gave no answer. `cut_short`:
    it ended with what it had so far. `over`: its session has nothing more to do, whatever it waits
    for. `retry` lets it begin anew."""

    state: RunState
    text: str = ""
    why: str = ""
    cut_short: bool = False
    over: bool = False
    retry: Retry | None = None


# Written out: SQLite uses a partial index only for a condition that it can read.
QUEUED = literal_column("'queued'", Text)
_RUNNING = literal_column("'running'", Text)
RUNNING = runs.c.state == _RUNNING
_ONE = hot(select(runs).where(runs.c.id == bindparam("the_run")))
_WAITING = select(runs).where(runs.c.session_id == bindparam("of_session"), runs.c.state == QUEUED)
_HEAD = hot(_WAITING.order_by(runs.c.seq).limit(literal_column("1")))
_QUEUED = hot(_WAITING.order_by(runs.c.seq))
_LAST = hot(_WAITING.order_by(runs.c.seq.desc()).limit(literal_column("1")))
_CLAIM = hot(
    update(runs)
    .where(runs.c.id == bindparam("run"))
    .values(
        state=RunState.RUNNING.value,
        collecting=False,
        worker=bindparam("by"),
        fence=bindparam("under"),
        transcript=bindparam("part"),
        started_ms=bindparam("since"),
    )
)
_REQUEUE = hot(
    update(runs)
    .where(runs.c.id == bindparam("run"))
    .values(state=RunState.QUEUED.value, worker=None, fence=None, attempt=bindparam("tried"))
)


def worker_is_dead(on: DialectName) -> ColumnElement[bool]:
    """Whether the worker of a row of `runs` has no unexpired process lease; for a WHERE clause."""
    # Read once: a time of its own for each row could not be looked for in an index.
    now = select(STORE_TIME[on]).scalar_subquery()
    return ~exists().where(
        leases.c.holder == runs.c.worker,
        leases.c.name.startswith(literal_column(f"'{PROCESS}'", Text())),
        leases.c.expires_ms > now,
    )


_ABANDONED = {
    name: hot(
        select(runs).where(
            one_of(name, runs.c.session_id, "of_sessions"),
            RUNNING,
            worker_is_dead(name),
        )
    )
    for name in DIALECTS
}
_TO_END = {
    name: hot(
        select(runs)
        .where(
            RUNNING,
            or_(runs.c.cancel.is_not(None), runs.c.attempt >= bindparam("most")),
            worker_is_dead(name),
        )
        .limit(literal_column("1"))
    )
    for name in DIALECTS
}
_INSERT = hot(insert(runs))


def add(conn: Connection, run: Run) -> None:
    """Keep a new run."""
    _INSERT.change(
        conn,
        id=run.id,
        session_id=run.session_id,
        seq=run.seq,
        kind=run.kind.value,
        state=run.state.value,
        collecting=run.collecting,
        late=run.late,
        ready_ms=run.ready_ms,
        target=run.target.model_dump_json(),
        reply_to=run.reply_to,
        speaker=run.speaker.model_dump_json(),
        summary=run.summary,
        created_ms=run.created_ms,
    )


def get(conn: Connection, run_id: str) -> Run:
    """Raises `NotFound`."""
    row = _ONE.first(conn, the_run=run_id)
    if row is None:
        raise NotFound("run", run_id)
    return _run(row)


def newest(conn: Connection, session_id: str) -> Run | None:
    """The run of a session that was asked for last."""
    query = select(runs).where(runs.c.session_id == session_id)
    row = conn.execute(query.order_by(runs.c.seq.desc()).limit(1)).first()
    return None if row is None else _run(row)


def newest_in(conn: Connection, session_id: str, thread_id: str) -> Run | None:
    """The last run of a session that answers in a thread."""
    place = f'"thread_id":{quoted(thread_id)}'
    found = conn.execute(
        select(runs)
        .where(runs.c.session_id == session_id, runs.c.target.contains(place, autoescape=True))
        .order_by(runs.c.seq.desc())
        .limit(1)
    ).first()
    return None if found is None else _run(found)


def begun_before(conn: Connection, run: Run) -> Run | None:
    """The run of the same session that began last before a run that has not begun."""
    earlier = (runs.c.session_id == run.session_id) & (runs.c.seq < run.seq)
    query = select(runs).where(earlier, runs.c.started_ms.is_not(None))
    row = conn.execute(query.order_by(runs.c.seq.desc()).limit(1)).first()
    return None if row is None else _run(row)


def owned(conn: Connection, run_id: str, holder: Holder) -> Run:
    """The run, if it is still the holder's. Raises `StaleLease` (I6)."""
    return checked(get(conn, run_id), holder)


def checked(run: Run, holder: Holder) -> Run:
    """The run, if it is still the holder's. Raises `StaleLease` (I6)."""
    if run.state is not RunState.RUNNING or (run.worker, run.fence) != (
        holder.worker,
        holder.fence,
    ):
        raise StaleLease(f"run {run.id}")
    return run


def head(conn: Connection, session_id: str) -> Run | None:
    """The queued run that is first in its lane."""
    row = _HEAD.first(conn, of_session=session_id)
    return None if row is None else _run(row)


def last_queued(conn: Connection, session_id: str) -> Run | None:
    """The queued run that is last in its lane, however many there are."""
    row = _LAST.first(conn, of_session=session_id)
    return None if row is None else _run(row)


def queued(conn: Connection, session_id: str) -> Sequence[Run]:
    """All queued runs of a lane, in order."""
    return [_run(row) for row in _QUEUED.rows(conn, of_session=session_id)]


def claimed(run: Run, holder: Holder, *, transcript: int, now: int) -> Run:
    """A queued run in a worker's hands; one that begins now speaks in `transcript`."""
    check_transition(run.id, run.state, RunState.RUNNING)
    return replace(
        run,
        state=RunState.RUNNING,
        collecting=False,
        transcript=run.transcript or transcript,
        worker=holder.worker,
        fence=holder.fence,
        started_ms=run.started_ms if run.started_ms is not None else now,
    )


def keep_claims(conn: Connection, taken: Sequence[Run]) -> None:
    """Write what `claimed` made of runs."""
    _CLAIM.each(
        conn,
        [
            {
                "run": run.id,
                "by": run.worker,
                "under": run.fence,
                "since": run.started_ms,
                "part": run.transcript,
            }
            for run in taken
        ],
    )


def move(
    conn: Connection, run: Run, state: RunState, values: Mapping[str, object] | None = None
) -> None:
    """Change a run's state, checked (MSG-6); further columns may change with it."""
    check_transition(run.id, run.state, state)
    change(conn, run.id, {"state": state.value, **(values or {})})


def change(conn: Connection, run_id: str, values: Mapping[str, object]) -> None:
    """Change columns other than the state."""
    given = {f"new_{name}": value for name, value in values.items()}
    _update_of(frozenset(values)).change(conn, the_run=run_id, **given)


@cache
def _update_of(columns: frozenset[str]) -> Hot[()]:
    """The prepared update of one set of columns; there are few sets."""
    values: dict[str, BindParameter[object]] = {
        name: bindparam(f"new_{name}") for name in sorted(columns)
    }
    return hot(update(runs).where(runs.c.id == bindparam("the_run")).values(values))


def any_tainted(conn: Connection, run_ids: Sequence[str]) -> bool:
    """Whether one of these runs read what is untrusted."""
    query = select(runs.c.id).where(runs.c.id.in_(run_ids), runs.c.tainted).limit(1)
    return conn.execute(query).first() is not None


def abandoned(conn: Connection, session_ids: Sequence[str]) -> Mapping[str, Run]:
    """The running runs of these sessions whose worker is dead, by session."""
    rows = _ABANDONED[dialect_name(conn)].rows(
        conn, of_sessions=list(session_ids), clock_ms=clock_ms(conn)
    )
    return {run.session_id: run for run in map(_run, rows)}


def first_to_end(conn: Connection, *, attempts: int) -> Run | None:
    """A running run whose worker is dead and that is not to go on: somebody asked for its end, or
    as many as `attempts` workers died with it before."""
    row = _TO_END[dialect_name(conn)].first(conn, most=attempts, clock_ms=clock_ms(conn))
    return None if row is None else _run(row)


def ended(conn: Connection, run_ids: Collection[str]) -> frozenset[str]:
    """Those of these runs that have ended, or were deleted with their session."""
    if not run_ids:
        return frozenset()
    over = [state.value for state in TERMINAL]
    query = select(runs.c.id).where(runs.c.id.in_(run_ids), runs.c.state.not_in(over))
    return frozenset(run_ids) - frozenset(conn.execute(query).scalars())


def keep_requeued(conn: Connection, taken: Sequence[Run]) -> None:
    """Put running runs whose worker died back into their lanes, for another attempt."""
    for run in taken:
        check_transition(run.id, run.state, RunState.QUEUED)
    _REQUEUE.each(conn, [{"run": run.id, "tried": run.attempt + 1} for run in taken])


def held_by(conn: Connection, *, worker: str) -> Sequence[tuple[str, int]]:
    """(run, fence) of this worker's running runs."""
    rows = conn.execute(select(runs.c.id, runs.c.fence).where(runs.c.worker == worker, RUNNING))
    return [(row.id, row.fence) for row in rows]


def cancelled_of(conn: Connection, *, worker: str) -> Sequence[tuple[str, str]]:
    """(run, reason) of this worker's running runs that somebody asked to end."""
    rows = conn.execute(
        select(runs.c.id, runs.c.cancel).where(
            runs.c.worker == worker,
            RUNNING,
            runs.c.cancel.is_not(None),
        )
    )
    return [(row.id, row.cancel) for row in rows]


def _run(row: Row[tuple[object, ...]]) -> Run:
    return run_of(row._mapping)


def run_of(found: RowMapping | Mapping[str, Any]) -> Run:
    """A run by the columns of its row."""
    return from_row(
        Run,
        found,
        kind=RunKind(found["kind"]),
        state=RunState(found["state"]),
        target=kept(ChatAddress, found["target"]),
        speaker=kept(Speaker, found["speaker"]),
        usage=Usage(
            input_tokens=found["input_tokens"],
            output_tokens=found["output_tokens"],
            cached_tokens=found["cached_tokens"],
            cost_usd=found["cost_usd"],
        ),
    )
