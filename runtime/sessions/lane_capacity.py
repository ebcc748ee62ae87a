"""How many messages may wait in a lane (SCALE-5), so that one session fills no database."""

from runtime.sessions import inputs
from runtime.sessions.lanes import Lane
from runtime.store import Connection


def is_full(conn: Connection, lane: Lane, *, most: int) -> bool:
    """Whether `most` messages wait in a locked lane.

    Counted from the first that waits to the newest input, commands and answers between them too,
    so that a lane never has more and nothing is counted one by one.
    """
    idle = lane.is_idle
    if idle or lane.input_seq < most:
        return False
    first = inputs.oldest_waiting(conn, lane.session_id, at_work=lane.active_run)
    return first is not None and lane.input_seq - first + 1 >= most
