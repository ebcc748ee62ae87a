"""Stopping: the end of a run because somebody asked for it (MSG-13)."""

from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace as replace_fields

from runtime.domain.runs import TERMINAL, WAITING, RunState
from runtime.inbox import parking
from runtime.inbox.closing import end_as_asked
from runtime.store import Connection, agents, audit, lanes, open_calls, runs
from runtime.store.lanes import Lane
from runtime.store.open_calls import CHILDREN
from runtime.store.runs import Run

REPLACED = "replaced by a newer message"


@dataclass(frozen=True, slots=True)
class Stopped:
    """`running` are runs whose worker must be told; `ended` are over already. `children` are agents
    that are to end now too, each by a unit of its own (SUB-19)."""

    running: tuple[str, ...]
    ended: tuple[str, ...]
    still_queued: int = 0
    children: int = 0
    reason: str = ""


NOTHING = Stopped((), ())


def stop_session(conn: Connection, session_id: str, *, by: str, reason: str) -> Stopped:
    """Stop what a session is doing; `stop_in` says what that is. Raises `NotFound`."""
    lane = lanes.lock(conn, session_id)
    stopped = stop_in(conn, lane, by=by, reason=reason)
    lanes.save(conn, lane)
    return stopped


def stop_in(conn: Connection, lane: Lane, *, by: str, reason: str) -> Stopped:
    """Stop a locked lane's active run, or where there is none, what is queued; a child is to end.

    The caller saves the lane.
    """
    if lane.gate is not None:
        # Also one that has nothing to do now: it would wait for children that tell it nothing.
        # A unit that stops the parent has its lane first, and this child's row then.
        lanes.lock(conn, agents.get(conn, lane.session_id).parent_id)
        agents.ask_to_stop(conn, lane.session_id, reason)
    waiting = runs.queued(conn, lane.session_id)
    if lane.active_run is not None:
        found: Sequence[Run] = [runs.get(conn, lane.active_run)]
    else:
        found, waiting = waiting, ()
    # What a run was told and never heard comes next, like all that waits.
    unheard = sum(run.steered for run in found)
    stopped = _stop(conn, lane, found, by=by, reason=reason)
    children = agents.mark_stopped(conn, lane.session_id, reason)
    return Stopped(stopped.running, stopped.ended, len(waiting) + unheard, children)


def stop_run(conn: Connection, run_id: str, *, by: str, reason: str) -> Stopped:
    """Stop one run; doing it twice changes nothing. Raises `NotFound`."""
    run = runs.get(conn, run_id)
    lane = lanes.lock(conn, run.session_id)
    stopped = _stop(conn, lane, [run], by=by, reason=reason)
    children = agents.mark_stopped(conn, lane.session_id, reason) if stopped != NOTHING else 0
    lanes.save(conn, lane)
    return replace_fields(stopped, children=children)


def _stop(conn: Connection, lane: Lane, found: Sequence[Run], *, by: str, reason: str) -> Stopped:
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
        else:
            _end(conn, lane, run, reason)
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
    return Stopped(tuple(running), tuple(ended))


def replace(conn: Connection, lane: Lane, run: Run) -> str | None:
    """End a locked lane's run for newer input; its id where its worker must be told (MSG-5).

    The children that it spawned end with it (SUB-19). A run that waits for a person keeps waiting
    (MSG-4), and one that was stopped stays so.
    """
    running = run.state is RunState.RUNNING and run.cancel is None
    if running:
        runs.change(conn, run.id, {"cancel": REPLACED, "replaced": True})
    elif run.state is RunState.QUEUED or _awaits_children_alone(conn, run):
        _end(conn, lane, run, REPLACED, replaced=True)
    else:
        return None
    agents.mark_stopped(conn, lane.session_id, REPLACED, run_id=run.id)
    return run.id if running else None


def _awaits_children_alone(conn: Connection, run: Run) -> bool:
    if run.state not in WAITING:
        return False
    return all(call.kind == CHILDREN for call in open_calls.of_run(conn, run.id, state="open"))


def _end(conn: Connection, lane: Lane, run: Run, reason: str, *, replaced: bool = False) -> None:
    if run.state in WAITING:
        parking.withdraw(conn, lane, run, reason)
        lane.active_run = None
    end_as_asked(conn, lane, run, reason, replaced=replaced)
