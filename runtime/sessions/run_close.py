"""Ending a run outside its turn: every call gets a result, and the person a word where due."""

from collections.abc import Sequence

from runtime.domain.events import EventKind
from runtime.domain.messages import TextPart
from runtime.domain.runs import TERMINAL, RunState
from runtime.domain.tools import Effect, ToolResult
from runtime.domain.transcript import ToolMessage
from runtime.ports.bus import RUNS
from runtime.sessions import (
    calls,
    inputs,
    lanes,
    outbox,
    received_files,
    runs,
    streams,
    transcripts,
)
from runtime.sessions.calls import CallRow
from runtime.sessions.lanes import Lane
from runtime.sessions.outbox import FINAL_RANK, NewRow
from runtime.sessions.runs import Run, RunEnd
from runtime.sessions.steering import MOST_HEARD, pass_on
from runtime.sessions.transcripts import Line
from runtime.sessions.unit import Unit
from runtime.store import Connection

LAST_MESSAGES = 8 * MOST_HEARD
"""How far from the end of a transcript an active run's last step can be: what it was told since,
which is more than once `MOST_HEARD` only where its workers died."""


def close_step(conn: Connection, lane: Lane, run: Run, reason: str) -> Sequence[Line]:
    """Every call of an unfinished step gets a result, so that the transcript stays well formed.

    A result that is there is kept. A call that had begun may have had its effect, and says so
    (MSG-8). Gives the line of the results; nothing where the step has one already.
    """
    rows = calls.of_step(conn, run.id, run.step) if run.step else ()
    if not rows or _has_results(conn, lane, run):
        return ()
    results = [row.result or _given_up(row, reason) for row in rows]
    for row, result in zip(rows, results, strict=True):
        if row.result is None:
            calls.end(conn, row, result, None, now=lane.now_ms)
    message = ToolMessage(results=tuple(results))
    return (lane.say(message, run_id=run.id, step=run.step, transcript=run.transcript),)


def end_as_asked(
    unit: Unit, lane: Lane, run: Run, reason: str, *, replaced: bool | None = None
) -> None:
    """End a run outside its turn because somebody asked for it; the caller settles the lane.

    `replaced` by newer input it is interrupted, stopped by somebody it is cancelled (MSG-6). What
    it was asked counts where nothing is said.
    """
    conn, kind = unit.conn, unit.kind(lane)
    close_step(conn, lane, run, reason)
    if kind.speaks:
        streams.cut(conn, run)
        received_files.tell_problems(conn, lane, run)
    ending = asked_ending(run) if replaced is None else _ENDINGS[replaced]
    runs.move(conn, run, ending, {"ended_ms": lane.now_ms, "cancel": reason})
    lane.record(EventKind(f"run.{ending.value}"), run.id, {"reason": reason})
    pass_on(conn, lane, run)
    if lane.active_run in (None, run.id):
        kind.ended(unit, lane, run, RunEnd(ending))


def end_unread(unit: Unit, lane: Lane, run: Run, reason: str) -> None:
    """End a run that never began and has nothing to read any more; nothing where it has, or did.

    For its session it is as if it had never been queued: one that has nothing else to do ends as
    the run before it did.
    """
    conn = unit.conn
    if run.state is not RunState.QUEUED or run.started_ms is not None:
        return
    if inputs.pending_of_run(conn, run.id):
        return
    runs.move(conn, run, RunState.CANCELLED, {"ended_ms": lane.now_ms, "cancel": reason})
    lane.record(EventKind.RUN_CANCELLED, run.id, {"reason": reason})
    before = runs.begun_before(conn, run)
    if lane.active_run is None and before is not None and before.state in TERMINAL:
        said = streams.last_said(conn, before.session_id, before.id)
        end = RunEnd(before.state, text=said, why=before.error or "")
        unit.kind(lane).ended(unit, lane, run, end)
    lanes.settle(conn, lane)
    unit.say(RUNS, {"session_id": lane.session_id})


def asked_ending(run: Run) -> RunState:
    """How a run ends that was asked to."""
    return _ENDINGS[run.replaced]


_ENDINGS = {True: RunState.INTERRUPTED, False: RunState.CANCELLED}


def stands_open(conn: Connection, lane: Lane, run: Run) -> bool:
    """Whether calls of the run's last step still wait for their results; an answer has none."""
    if run.step == 0 or not calls.of_step(conn, run.id, run.step):
        return False
    return not _has_results(conn, lane, run)


def _has_results(conn: Connection, lane: Lane, run: Run) -> bool:
    return transcripts.has_results(
        conn, run.session_id, run_id=run.id, step=run.step, since=lane.message_seq - LAST_MESSAGES
    )


def _given_up(row: CallRow, reason: str) -> ToolResult:
    if row.state == "started" and row.effect is not Effect.READ:
        content = f"{reason} This had begun, so it may have taken effect, fully or in part."
        return row.ended("unknown", content)
    return row.ended("cancelled", reason)


def last_word(unit: Unit, lane: Lane, run: Run, text: str) -> None:
    """Put the final reply of a run that no turn will finish into the outbox, where it has one."""
    if not unit.kind(lane).speaks:
        return
    message = outbox.message_of(run, (TextPart(markdown=text),), now=lane.now_ms, final=True)
    if streams.become(unit.conn, message) is None:
        outbox.add(unit.conn, NewRow(kind="final", message=message, rank=FINAL_RANK))
