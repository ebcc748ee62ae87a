"""What becomes of a message for a lane that is full (SCALE-5): it is not taken, and it is said so.

Not every one of a flood is answered: a line a minute is enough for a person, and no flood itself.
What is refused is not kept, so that a flood fills nothing.
"""

from typing import Final

from runtime.domain.messages import InboundMessage
from runtime.sessions import inputs
from runtime.sessions.idempotency import first_time
from runtime.sessions.lanes import Lane
from runtime.store import Connection

TELL_EVERY_MS: Final = 60_000
FULL: Final = (
    "{most} messages wait here already, so I did not take this one. Please send it again when I "
    "have answered some of them."
)


def is_full(conn: Connection, lane: Lane, message: InboundMessage, *, most: int) -> bool:
    """Whether `most` messages wait already. One that was taken before is a duplicate."""
    return _holds(conn, lane, most) and inputs.known(conn, message.identity) is None


def _holds(conn: Connection, lane: Lane, most: int) -> bool:
    """Whether `most` messages wait in a locked lane.

    Counted from the first that waits to the newest input, commands and answers between them too,
    so that a lane never has more and nothing is counted one by one.
    """
    if lane.is_idle or lane.input_seq < most:
        return False
    first = inputs.oldest_waiting(conn, lane.session_id, at_work=lane.active_run)
    return first is not None and lane.input_seq - first + 1 >= most


def tells(conn: Connection, lane: Lane) -> bool:
    """Whether it is to be said now: once a minute in each session, whichever replica asks."""
    return first_time(conn, f"full:{lane.session_id}:{lane.now_ms // TELL_EVERY_MS}")
