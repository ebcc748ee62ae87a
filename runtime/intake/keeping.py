"""Keeping messages that are applied at once, so that a redelivery is recognised (MSG-2)."""

from runtime.domain.events import EventKind
from runtime.domain.ids import IdPrefix, new_id
from runtime.domain.messages import InboundMessage
from runtime.domain.people import Speaker
from runtime.ports.gatehouse import Accepted
from runtime.store import Connection, inputs
from runtime.store.inputs import Input
from runtime.store.lanes import Lane


def keep(
    conn: Connection, lane: Lane, message: InboundMessage, speaker: Speaker, state: str
) -> bool:
    """Store a message that is applied at once; False when it was applied before."""
    lane.input_seq += 1
    kept = inputs.add(
        conn,
        Input(
            id=new_id(IdPrefix.INPUT, lane.now_ms),
            session_id=lane.session_id,
            seq=lane.input_seq,
            identity=message.identity,
            origin="person",
            run_id=None,
            state=state,
            speaker=speaker,
            message=message,
            received_ms=message.received_at_ms,
        ),
    )
    if kept:
        lane.record(EventKind.INPUT_ACCEPTED, None, {"state": state})
    return kept


def duplicate_of(conn: Connection, message: InboundMessage) -> Accepted:
    found = inputs.known(conn, message.identity)
    if found is None:
        return Accepted(disposition="duplicate")
    return Accepted(
        disposition="duplicate", input_id=found[0], session_id=found[1], run_id=found[2]
    )
