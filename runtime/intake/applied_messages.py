"""Keeping messages that are applied at once, so that a redelivery is recognised (MSG-2)."""

from typing import Final

from runtime.domain.events import EventKind
from runtime.domain.ids import IdPrefix, new_id
from runtime.domain.messages import InboundMessage
from runtime.domain.people import Speaker
from runtime.ports.gatehouse import Accepted, Applied
from runtime.sessions import inputs
from runtime.sessions.inputs import Input
from runtime.sessions.lanes import Lane
from runtime.store import Connection

_APPLIED: Final[dict[str, Applied]] = {"command": "command", "answer": "answer"}


def keep(
    conn: Connection,
    lane: Lane,
    message: InboundMessage,
    speaker: Speaker,
    state: Applied,
    *,
    run_id: str | None = None,
) -> str | None:
    """Store a message that is applied at once, for an answer to the run that asked; the input's
    id, None when it was applied before."""
    lane.input_seq += 1
    input_id = new_id(IdPrefix.INPUT, lane.now_ms)
    kept = inputs.add(
        conn,
        Input(
            id=input_id,
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
    if not kept:
        lane.input_seq -= 1
        return None
    if run_id is not None:
        inputs.name_run(conn, input_id, run_id)
    lane.record(EventKind.INPUT_ACCEPTED, None, {"state": state})
    return input_id


def duplicate_of(conn: Connection, message: InboundMessage) -> Accepted:
    """What a message that was taken before became, as its sender was told then."""
    found = inputs.known(conn, message.identity)
    if found is None:
        return Accepted(disposition="duplicate")
    return Accepted(
        disposition="duplicate",
        session_id=found.session_id,
        input_id=found.id,
        run_id=found.run_id,
        applied=_APPLIED.get(found.state),
    )
