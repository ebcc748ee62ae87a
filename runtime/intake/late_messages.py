"""Messages that a platform delivers long after they were sent, as after an outage (MSG-17).

They are kept, answered together and once (`queue_modes`). A late word that would stop, approve or
change something acts only while nothing newer was said in its session: what it was meant for may be
over, and what is there now is not what its sender saw. It says what is late, and decides nothing
else.
"""

from runtime.domain.messages import InboundMessage
from runtime.domain.runs import RunKind
from runtime.sessions import inputs, runs
from runtime.sessions.lanes import Lane
from runtime.store import Connection

LOOK_BACK = 50
"""Newest inputs of a session that a late word is compared with."""
PASSED = (
    "`/{name}` arrived {minutes} minutes after you sent it, and other things have happened here "
    "since, so I did not run it. Send it again if you still want it."
)


def marked(message: InboundMessage, *, now_ms: int, after_ms: int) -> InboundMessage:
    """The message as it is kept. An edit has no time of its own that all platforms tell."""
    late = (
        message.sent_at_ms is not None
        and message.edited_at is None
        and now_ms - message.sent_at_ms > after_ms
    )
    return message.model_copy(update={"late": late}) if late != message.late else message


def passed_by(conn: Connection, lane: Lane, message: InboundMessage) -> bool:
    """Whether something newer than a late message was said or begun in its session."""
    sent = message.sent_at_ms
    if not message.late or sent is None:
        return False
    if any(moment > sent for moment in inputs.said_last(conn, lane.session_id, most=LOOK_BACK)):
        return True
    run = None if lane.active_run is None else runs.get(conn, lane.active_run)
    return run is not None and run.kind is not RunKind.INPUT and run.created_ms > sent


def left(name: str, lane: Lane, message: InboundMessage) -> str:
    """What the sender of a late word is told that was left undone."""
    since = lane.now_ms - (message.sent_at_ms or lane.now_ms)
    return PASSED.format(name=name, minutes=since // 60_000)
