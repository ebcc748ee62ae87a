"""Claiming runs: a worker takes the head runs of free lanes, with all that a turn needs."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from runtime.domain.errors import StaleLease
from runtime.domain.events import EventKind
from runtime.domain.runs import RunState
from runtime.domain.transcript import UserMessage
from runtime.inbox.closing import close_step, last_word
from runtime.sessions.window import Window, WindowCache
from runtime.store import (
    Connection,
    calls,
    inputs,
    lanes,
    leases,
    open_calls,
    runs,
    sessions,
    transcripts,
)
from runtime.store.calls import CallRow
from runtime.store.lanes import Lane
from runtime.store.runs import Run
from runtime.store.sessions import Session
from runtime.store.transcripts import Line

MAX_ATTEMPTS = 5
"""A run whose worker died so often is not tried again: it may be what kills the workers."""


@dataclass(frozen=True, slots=True)
class Holder:
    """Who writes for a run: a process under the fence of its lease."""

    worker: str
    fence: int


@dataclass(frozen=True, slots=True)
class Claimed:
    """One run in a worker's hands. `calls` are those of its last step when it had begun."""

    run: Run
    session: Session
    window: Window
    window_from: int
    calls: tuple[CallRow, ...]


def claim(conn: Connection, holder: Holder, *, most: int, cache: WindowCache) -> Sequence[Claimed]:
    """Take at most `most` runs; the inputs they answer enter the transcript in this unit.

    Nothing is taken under a lease that ran out by the store's time: what such a process held may
    be given away already, and could come back to it under the fence that it still writes with.
    """
    name = f"{leases.PROCESS}{holder.worker}"
    if not leases.holds(conn, name=name, holder=holder.worker, fence=holder.fence):
        return ()
    taken = []
    for lane in lanes.lock_ready(conn, most=most):
        run = runs.head(conn, lane.session_id)
        if run is None or lane.active_run is not None:
            lanes.settle(conn, lane)
            lanes.save(conn, lane)
            continue
        taken.append(_take(conn, lane, run, holder, cache))
    return taken


def _take(conn: Connection, lane: Lane, run: Run, holder: Holder, cache: WindowCache) -> Claimed:
    resumed = run.started_ms is not None
    session = sessions.get(conn, lane.session_id)
    remembered = cache.get(lane.session_id, lane.transcript)
    first = max(lane.window_from, remembered.last + 1)
    lines = [line for line in remembered.lines if line.seq >= lane.window_from]
    if lane.message_seq >= first:
        lines.extend(
            transcripts.since(conn, lane.session_id, transcript=lane.transcript, first=first)
        )
    lines.extend(_take_inputs(conn, lane, run))
    claimed = runs.claim(
        conn,
        run,
        worker=holder.worker,
        fence=holder.fence,
        transcript=lane.transcript,
        now=lane.now_ms,
    )
    lane.active_run, lane.ready_ms = run.id, None
    kind = EventKind.RUN_RESUMED if resumed else EventKind.RUN_STARTED
    lane.record(kind, run.id, {"step": run.step, "attempt": run.attempt})
    lanes.save(conn, lane)
    return Claimed(
        run=claimed,
        session=session,
        window=Window(lane.transcript, tuple(lines)),
        window_from=lane.window_from,
        calls=tuple(calls.of_step(conn, run.id, run.step)) if run.step else (),
    )


def _take_inputs(conn: Connection, lane: Lane, run: Run) -> Sequence[Line]:
    taken = []
    for item in inputs.pending_of_run(conn, run.id):
        message = UserMessage(
            text=item.message.text,
            name=item.speaker.name,
            trust=item.speaker.trust,
            attachments=item.message.attachments,
            input_id=item.id,
        )
        taken.append(line_of(lane, message, run_id=run.id, step=0))
    if taken:
        inputs.take(conn, run.id)
    return taken


def line_of(lane: Lane, message: UserMessage, *, run_id: str, step: int) -> Line:
    """Append a message and give it back as the window sees it."""
    seq = lane.say(message, run_id=run_id, step=step)
    tokens = lane.new_messages[-1]["tokens"]
    return Line(seq, run_id, step, int(str(tokens)), lane.now_ms, message)


@dataclass(frozen=True, slots=True)
class Care:
    """What the timer loop has to do now."""

    abandoned: bool
    expired: bool


def needs_care(conn: Connection) -> Care:
    """Whether runs lost their worker or open calls their time; reads only."""
    return Care(
        abandoned=bool(runs.abandoned(conn, leases.live_workers(conn))),
        expired=bool(open_calls.expired(conn, limit=1)),
    )


def recover(conn: Connection) -> Sequence[Run]:
    """Requeue the runs of workers whose lease ran out; each goes on from its last durable step.

    A run that was asked to end is ended instead, and one whose workers keep dying is failed.
    """
    released = []
    for run in runs.abandoned(conn, leases.live_workers(conn)):
        with suppress(StaleLease):
            release(conn, run)
            released.append(run)
    return released


def release(conn: Connection, run: Run, *, died: bool = True) -> None:
    """Put a running run back to the head of its lane, or end it where that is due."""
    lane = lanes.lock(conn, run.session_id)
    # Another unit may have ended it, or given it to somebody else, before the lane was ours.
    run = runs.owned(conn, run.id, worker=run.worker or "", fence=run.fence or 0)
    attempt = run.attempt + 1 if died else run.attempt
    values: dict[str, object] = {"worker": None, "fence": None, "attempt": attempt}
    runs.move(conn, run, RunState.QUEUED, values)
    lane.active_run = None
    queued = replace(run, state=RunState.QUEUED)
    if run.cancel is not None:
        close_step(conn, lane, run, run.cancel)
        runs.move(conn, queued, RunState.CANCELLED, {"ended_ms": lane.now_ms})
        lane.record(EventKind.RUN_CANCELLED, run.id, {"reason": run.cancel})
    elif attempt >= MAX_ATTEMPTS:
        _give_up(conn, lane, queued, attempt)
    else:
        lane.record(EventKind.RUN_QUEUED, run.id, {"kind": run.kind.value, "attempt": attempt})
    lanes.settle(conn, lane)
    lanes.save(conn, lane)


def _give_up(conn: Connection, lane: Lane, run: Run, attempt: int) -> None:
    """Interrupt a run that its workers do not survive: the lane goes on, and the person knows."""
    reason = f"its worker died {attempt} times"
    close_step(conn, lane, run, "The gateway stopped while this ran.")
    runs.move(conn, run, RunState.INTERRUPTED, {"ended_ms": lane.now_ms, "error": reason})
    text = (
        f"I was stopped {attempt} times while I worked on this, so I gave up. "
        f"If it happens again, quote `{run.id}` to whoever runs me."
    )
    last_word(conn, lane, run, text)
    lane.record(EventKind.RUN_INTERRUPTED, run.id, {"reason": reason})
