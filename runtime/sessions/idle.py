"""What changes between the runs of a session only, never under one."""

from runtime.domain.errors import Conflict
from runtime.sessions import runs
from runtime.sessions.lanes import Lane
from runtime.store import Connection


def check_idle(conn: Connection, lane: Lane, what: str) -> None:
    """Raise `Conflict` with the state of a session in which a run is at work or waits: a run keeps
    the `what` with which it began."""
    state = _state(conn, lane)
    if state != "idle":
        doing = state.replace("_", " ")
        text = f"the {what} changes only while the session is idle, and it is {doing}: wait until "
        raise Conflict(f"{text}that is over or stop it, then ask again", state)


def _state(conn: Connection, lane: Lane) -> str:
    if lane.active_run is not None:
        return runs.get(conn, lane.active_run).state.value
    return "queued" if runs.queued(conn, lane.session_id) else "idle"
