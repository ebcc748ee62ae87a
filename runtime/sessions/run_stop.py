"""Stopping: the end of a run because somebody asked for it (MSG-13)."""

from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace as replace_fields

from runtime.domain.runs import TERMINAL, WAITING, RunState
from runtime.ports.bus import CANCEL, OUTBOX, RUNS
from runtime.sessions import approvals, audit, lanes, open_calls, runs
from runtime.sessions.lanes import Lane
from runtime.sessions.open_calls import FOR_PEOPLE
from runtime.sessions.run_close import end_as_asked
from runtime.sessions.runs import Run
from runtime.sessions.unit import Unit
from runtime.store import Connection

REPLACED = "replaced by a newer message"


@dataclass(frozen=True, slots=True)
class Stopped:
    """`running` are runs whose worker must be told; `ended` are over already. `elsewhere` is how
    many sessions that it gave work to are to end too, each by a unit of its own (SUB-19)."""

    running: tuple[str, ...]
    ended: tuple[str, ...]
    still_queued: int = 0
    elsewhere: int = 0


NOTHING = Stopped((), ())


def stop_session(unit: Unit, session_id: str, *, by: str, reason: str) -> Stopped:
    """Stop a session's active run, or where there is none, what is queued. Raises `NotFound`."""
    conn, lane = unit.conn, unit.lane(session_id)
    unit.kind(lane).asked_to_end(unit, lane, reason)
    waiting = runs.queued(conn, lane.session_id)
    if lane.active_run is not None:
        found: Sequence[Run] = [runs.get(conn, lane.active_run)]
    else:
        found, waiting = waiting, ()
    # What a run was told and never heard comes next, like all that waits.
    unheard = sum(run.steered for run in found)
    stopped = _stop(unit, lane, found, by=by, reason=reason)
    elsewhere = unit.kinds.delegations.stop(unit, session_id, reason)
    return Stopped(stopped.running, stopped.ended, len(waiting) + unheard, elsewhere)


def stop_run(unit: Unit, run_id: str, *, by: str, reason: str) -> Stopped:
    """Stop one run; doing it twice changes nothing. Raises `NotFound`."""
    run = runs.get(unit.conn, run_id)
    lane = unit.lane(run.session_id)
    stopped = _stop(unit, lane, [run], by=by, reason=reason)
    if stopped == NOTHING:
        return NOTHING
    elsewhere = unit.kinds.delegations.stop(unit, lane.session_id, reason)
    return replace_fields(stopped, elsewhere=elsewhere)


def _stop(unit: Unit, lane: Lane, found: Sequence[Run], *, by: str, reason: str) -> Stopped:
    conn = unit.conn
    running, ended = [], []
    for one in found:
        # The end of a run before it may have ended a child, and this with it.
        run = runs.get(conn, one.id)
        if run.state in TERMINAL:
            continue
        if run.state is RunState.RUNNING:
            if run.cancel is None:
                runs.change(conn, run.id, {"cancel": reason})
            running.append(run.id)
            unit.say(CANCEL, {"run_id": run.id, "reason": reason})
        else:
            _end(unit, lane, run, reason)
            ended.append(run.id)
    if running or ended:
        audit.append(
            conn,
            actor=by,
            action="run.stop",
            session_id=lane.session_id,
            data={"runs": [*running, *ended], "reason": reason},
        )
    lanes.settle(conn, lane)
    unit.say(RUNS, {"session_id": lane.session_id})
    unit.say(OUTBOX)
    return Stopped(tuple(running), tuple(ended))


def replace(unit: Unit, lane: Lane, run: Run) -> None:
    """End a locked lane's run for newer input (MSG-5).

    What it gave others to do ends with it (SUB-19). A run that waits for a person keeps waiting
    (MSG-4), and one that was stopped stays so.
    """
    if run.state is RunState.RUNNING and run.cancel is None:
        runs.change(unit.conn, run.id, {"cancel": REPLACED, "replaced": True})
        unit.say(CANCEL, {"run_id": run.id, "reason": REPLACED})
    elif run.state is RunState.QUEUED or _waits_for_no_person(unit.conn, run):
        _end(unit, lane, run, REPLACED, replaced=True)
    else:
        return
    unit.kinds.delegations.stop(unit, lane.session_id, REPLACED, run.id)


def _waits_for_no_person(conn: Connection, run: Run) -> bool:
    if run.state not in WAITING:
        return False
    opened = open_calls.of_run(conn, run.id, state="open")
    return all(call.kind not in FOR_PEOPLE for call in opened)


def _end(unit: Unit, lane: Lane, run: Run, reason: str, *, replaced: bool = False) -> None:
    if run.state in WAITING:
        approvals.withdraw(unit.conn, lane, run, reason)
        lane.active_run = None
    end_as_asked(unit, lane, run, reason, replaced=replaced)
