"""Putting an accepted message into its lane, by the session's queue mode (MSG-5)."""

from dataclasses import dataclass
from typing import Final

from runtime.domain.events import EventKind
from runtime.domain.ids import IdPrefix, new_id
from runtime.domain.messages import InboundMessage
from runtime.domain.people import Speaker
from runtime.domain.runs import RunKind, RunState
from runtime.store import Connection, inputs, lanes, runs
from runtime.store.inputs import Input
from runtime.store.lanes import Lane
from runtime.store.runs import Run

QUEUE_MODES: Final = ("followup", "collect", "steer", "interrupt")


@dataclass(frozen=True, slots=True)
class Enqueued:
    """Where a message went. `joined` says that it became part of a run that was queued."""

    input_id: str
    run_id: str
    joined: bool


def enqueue(
    conn: Connection,
    lane: Lane,
    message: InboundMessage,
    speaker: Speaker,
    *,
    queue_mode: str,
    debounce_ms: int,
) -> Enqueued | None:
    """Add a message to a locked lane; None when it is there already. The caller saves the lane.

    ``collect``: what arrives while a run is active becomes one following run after a quiet
    `debounce_ms`; an idle lane is never delayed.
    """
    joinable = _joinable(conn, lane, message, speaker) if queue_mode == "collect" else None
    run_id = joinable.id if joinable else new_id(IdPrefix.RUN, lane.now_ms)
    lane.input_seq += 1
    new = Input(
        id=new_id(IdPrefix.INPUT, lane.now_ms),
        session_id=lane.session_id,
        seq=lane.input_seq,
        identity=message.identity,
        origin="person",
        run_id=run_id,
        state="pending",
        speaker=speaker,
        message=message,
        received_ms=message.received_at_ms,
    )
    if not inputs.add(conn, new):
        lane.input_seq -= 1
        return None
    if joinable is not None:
        _join(conn, lane, joinable, message, debounce_ms=debounce_ms)
        lane.record(EventKind.INPUT_ACCEPTED, run_id, {"input_id": new.id})
    else:
        collecting = queue_mode == "collect" and lane.active_run is not None
        lane.run_seq += 1
        runs.add(
            conn,
            Run(
                id=run_id,
                session_id=lane.session_id,
                seq=lane.run_seq,
                kind=RunKind.INPUT,
                state=RunState.QUEUED,
                collecting=collecting,
                ready_ms=lane.now_ms + (debounce_ms if collecting else 0),
                target=message.address,
                reply_to=message.message_id,
                speaker=speaker,
                created_ms=lane.now_ms,
            ),
        )
        lane.record(EventKind.RUN_QUEUED, run_id, {"input_id": new.id, "kind": "input"})
    if lane.active_run is None and (lane.ready_ms is None or joinable is not None):
        lanes.settle(conn, lane)
    return Enqueued(new.id, run_id, joinable is not None)


def _joinable(
    conn: Connection, lane: Lane, message: InboundMessage, speaker: Speaker
) -> Run | None:
    """The last queued run, if it has not begun and a message of this sender may share its turn.

    People of different trust never share one: the run would have to act on the lower.
    """
    if lane.active_run is None and lane.ready_ms is None:
        return None
    waiting = runs.queued(conn, lane.session_id)
    if not waiting:
        return None
    last = waiting[-1]
    fresh = last.step == 0 and last.started_ms is None and last.kind is RunKind.INPUT
    same = last.speaker.trust is speaker.trust and last.target == message.address
    return last if fresh and same else None


def _join(
    conn: Connection, lane: Lane, run: Run, message: InboundMessage, *, debounce_ms: int
) -> None:
    values: dict[str, object] = {"reply_to": message.message_id}
    if run.collecting:
        values["ready_ms"] = lane.now_ms + debounce_ms
    runs.change(conn, run.id, values)
