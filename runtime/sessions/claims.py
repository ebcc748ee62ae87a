"""Claiming runs: a worker takes the head runs of free lanes, with all that a turn needs."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from runtime.domain.counts import counted
from runtime.domain.errors import StaleLease
from runtime.domain.events import EventKind
from runtime.domain.runs import Holder, RunState
from runtime.ports.bus import RUNS
from runtime.sessions import calls, lanes, runs, steering, transcripts
from runtime.sessions.calls import CallRow
from runtime.sessions.inputs import Input
from runtime.sessions.lanes import Head, Lane
from runtime.sessions.run_close import close_step, end_as_asked, last_word, stands_open
from runtime.sessions.runs import Run, RunEnd
from runtime.sessions.sessions import Session
from runtime.sessions.unit import Unit
from runtime.sessions.window import Window, WindowCache
from runtime.store import Connection

MAX_ATTEMPTS = 5
"""A run whose worker died so often is not tried again: it may be what kills the workers."""
AT_ONCE = 100
"""Runs that are taken over in one unit: more would hold their lanes for long."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """One run in a worker's hands. `calls` are those of its last step when it had begun. `alone`:
    its session has no others above or below it."""

    run: Run
    session: Session
    window: Window
    window_from: int
    calls: tuple[CallRow, ...]
    alone: bool


@dataclass(frozen=True, slots=True)
class Claims:
    """What a claim got. `full`: it had as many lanes as it may take, so there may be more.
    `passed_over`: it left ready lanes out, because other units held them."""

    runs: Sequence[Claimed]
    full: bool = False
    passed_over: bool = False


def claim(unit: Unit, holder: Holder, *, most: int, cache: WindowCache) -> Claims:
    """Take at most `most` runs; the inputs they answer enter the transcript in this unit.

    Nothing is taken under a lease that ran out by the store's time: what such a process held may
    be given away already, and could come back to it under the fence that it still writes with.
    """
    conn = unit.conn
    found = lanes.lock_ready(conn, holder, most=most)
    ready = unit.hold(found.lanes)
    if not ready:
        return Claims((), passed_over=found.passed_over)
    # For all of them at once: an exchange with a server costs more than the rows in it.
    ids = [lane.session_id for lane in ready]
    heads = lanes.heads(conn, ids)
    free = {lane.session_id for lane in ready if lane.active_run is None} & heads.keys()
    begin = [heads[one].run for one in free if heads[one].run.started_ms is None]
    first = steering.take_first(conn, begin)
    taken = []
    for lane in ready:
        if lane.session_id not in free:
            lanes.settle(conn, lane)
            continue
        head = heads[lane.session_id]
        head = replace(head, session=unit.kind(lane).standing(conn, head.session))
        said = first.get(lane.session_id)
        taken.append(_take(conn, lane, head, holder, cache=cache, said=said))
        unit.changed(lane.session_id)
    runs.keep_claims(conn, [one.run for one in taken])
    return Claims(taken, full=len(ready) == most, passed_over=found.passed_over)


def _take(
    conn: Connection,
    lane: Lane,
    head: Head,
    holder: Holder,
    *,
    cache: WindowCache,
    said: Sequence[Input] | None,
) -> Claimed:
    """The run as claimed; the caller writes it and the lane. `said` is what it begins with, None
    where it began before."""
    run = head.run
    resumed = run.started_ms is not None
    remembered = cache.get(lane.session_id, lane.transcript, lane.undone)
    first = max(lane.window_from, remembered.last + 1)
    lines = [line for line in remembered.lines if line.seq >= lane.window_from]
    if lane.message_seq >= first:
        lines.extend(
            transcripts.since(conn, lane.session_id, transcript=lane.transcript, first=first)
        )
    if said is not None:
        lines.extend(steering.first_words(conn, lane, run, said))
    elif not stands_open(conn, lane, run):
        # What was said to a run in the middle of a step is heard behind its results.
        lines.extend(steering.heard(conn, lane, run))
    claimed = runs.claimed(run, holder, transcript=lane.transcript, now=lane.now_ms)
    lane.active_run, lane.ready_ms = run.id, None
    kind = EventKind.RUN_RESUMED if resumed else EventKind.RUN_STARTED
    lane.record(kind, run.id, {"step": run.step, "attempt": run.attempt})
    return Claimed(
        run=claimed,
        session=head.session,
        window=Window(lane.transcript, tuple(lines), lane.undone),
        window_from=lane.window_from,
        calls=tuple(calls.of_step(conn, run.id, run.step)) if run.step else (),
        alone=lane.parent_id is None and not head.delegates,
    )


def recover(unit: Unit) -> int:
    """Requeue runs of workers whose lease ran out, which go on from their last durable step; how
    many. 0 where there are none that no other unit has in hand.

    Many processes may do so at once: each takes the lanes that no other holds, and waits for none.
    A run that was asked to end is ended instead, and one whose workers keep dying is failed: one a
    unit, because its end may need the lane of its parent, and whoever held several lanes before
    would hold that of a parent before that of its child.
    """
    conn = unit.conn
    found = lanes.lock_abandoned(conn, most=AT_ONCE, attempts=MAX_ATTEMPTS - 1)
    if not found:
        return _end_one(unit)
    unit.hold(found)
    # Before the lanes were ours another unit may have ended a run, or given it to somebody else.
    lost = runs.abandoned(conn, [lane.session_id for lane in found])
    taken = [lane for lane in found if lane.session_id in lost]
    runs.keep_requeued(conn, [lost[lane.session_id] for lane in taken])
    for lane in taken:
        run = lost[lane.session_id]
        lane.active_run = None
        # It has the lowest number of those that wait, so it is the head of its lane.
        lane.begin_at(run.ready_ms)
        _requeued(lane, run, run.attempt + 1, "takeover")
    unit.say(RUNS)
    return len(found)


def _end_one(unit: Unit) -> int:
    run = runs.first_to_end(unit.conn, attempts=MAX_ATTEMPTS - 1)
    if run is None:
        return 0
    with suppress(StaleLease):
        release(unit, run)
    return 1


def _requeued(lane: Lane, run: Run, attempt: int, why: str) -> None:
    lane.record(
        EventKind.RUN_QUEUED,
        run.id,
        {
            "kind": run.kind.value,
            "attempt": attempt,
            "summary": run.summary,
            "resumed_by": {"kind": why},
        },
    )


def release(unit: Unit, run: Run, *, died: bool = True) -> None:
    """Put a running run back to the head of its lane, or end it where that is due."""
    conn, lane = unit.conn, unit.lane(run.session_id)
    # Another unit may have ended it, or given it to somebody else, before the lane was ours.
    run = runs.owned(conn, run.id, Holder(run.worker or "", run.fence or 0))
    attempt = run.attempt + 1 if died else run.attempt
    values: dict[str, object] = {"worker": None, "fence": None, "attempt": attempt}
    runs.move(conn, run, RunState.QUEUED, values)
    lane.active_run = None
    queued = replace(run, state=RunState.QUEUED)
    if run.cancel is not None:
        end_as_asked(unit, lane, queued, run.cancel)
    elif attempt >= MAX_ATTEMPTS:
        _give_up(unit, lane, queued, attempt)
    else:
        _requeued(lane, run, attempt, "takeover" if died else "handover")
    lanes.settle(conn, lane)
    unit.say(RUNS)


def _give_up(unit: Unit, lane: Lane, run: Run, attempt: int) -> None:
    """Interrupt a run that its workers do not survive: the lane goes on, and the person knows."""
    conn = unit.conn
    reason = f"its worker died {counted(attempt, 'time')}"
    close_step(conn, lane, run, "The gateway stopped while this ran.")
    runs.move(conn, run, RunState.INTERRUPTED, {"ended_ms": lane.now_ms, "error": reason})
    text = (
        f"I was stopped {counted(attempt, 'time')} while I worked on this, so I gave up. "
        f"If it happens again, quote `{run.id}` to whoever runs me."
    )
    last_word(unit, lane, run, text)
    lane.record(EventKind.RUN_INTERRUPTED, run.id, {"reason": reason})
    steering.pass_on(conn, lane, run)
    unit.kind(lane).ended(unit, lane, run, RunEnd(RunState.FAILED, text))
