"""Letting a run go on that waited: once none of its open calls is left, it is queued again."""

from runtime.domain.events import EventKind
from runtime.domain.runs import RunState
from runtime.sessions import lanes, open_calls, runs
from runtime.sessions.lanes import Lane
from runtime.store import Connection


def resume(conn: Connection, lane: Lane, run_id: str) -> bool:
    """Queue a parked run at the head of its lane; False while an open call of it is left.

    The caller saves the lane.
    """
    if open_calls.of_run(conn, run_id, state="open"):
        return False
    run = runs.get(conn, run_id)
    runs.move(conn, run, RunState.QUEUED, {"ready_ms": lane.now_ms})
    lane.active_run = None
    lane.record(EventKind.RUN_QUEUED, run.id, {"kind": run.kind.value, "attempt": run.attempt})
    lanes.settle(conn, lane)
    return True
