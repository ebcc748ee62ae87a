"""Putting an accepted message into its lane, by the session's queue mode (MSG-5, MSG-17).

``followup``: each message has a run of its own. ``collect``: what arrives while a run is active
becomes one following run after a quiet pause. ``steer``: it reaches the run that is at work, at
its next step. ``interrupt``: the run that is at work ends, and this one is next. What cannot be
steered is collected. An idle lane is never delayed.

What arrives late, and the parts of an album, are collected in every mode, also by an idle lane:
more of it may follow.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from runtime.domain.events import EventKind
from runtime.domain.ids import IdPrefix, new_id
from runtime.domain.messages import InboundMessage
from runtime.domain.people import Speaker, trusted_less
from runtime.domain.runs import RunKind
from runtime.domain.summaries import said_in
from runtime.domain.value import JsonObject
from runtime.ports.bus import RUNS
from runtime.sessions import inputs, lanes, run_stop, runs, steering
from runtime.sessions.inputs import Input
from runtime.sessions.lanes import Lane
from runtime.sessions.runs import Run
from runtime.sessions.unit import Unit
from runtime.store import Connection

QUEUE_MODES: Final = ("followup", "collect", "steer", "interrupt")
COLLECTING: Final = frozenset({"collect", "steer"})


@dataclass(frozen=True, slots=True)
class Enqueued:
    """Where a message went. `joined` says that it became part of a run that was there: one that
    is queued, or, `steered`, one that is at work."""

    input_id: str
    run_id: str
    joined: bool
    steered: bool = False


@dataclass(frozen=True, slots=True)
class Refused:
    """The message would have begun a run and may not; nothing of it is kept, and no run ended."""


@dataclass(frozen=True, slots=True)
class _Place:
    """The run that a message becomes part of, None for one of its own; and the one it ends."""

    run: Run | None = None
    steered: bool = False
    ends: Run | None = None


def enqueue(
    unit: Unit,
    lane: Lane,
    message: InboundMessage,
    speaker: Speaker,
    *,
    queue_mode: str,
    debounce_ms: int,
    may_begin: Callable[[], bool] = lambda: True,
) -> Enqueued | Refused | None:
    """Add a message to a locked lane; None when it is there already.

    `may_begin` is asked about a message that is new and needs a run of its own.
    """
    conn = unit.conn
    place = _place(conn, lane, message, speaker, mode=queue_mode)
    run_id = place.run.id if place.run else new_id(IdPrefix.RUN, lane.now_ms)
    new = inputs.new_input(lane, message, speaker, run_id=run_id)
    if not inputs.add(conn, new):
        lane.input_seq -= 1
        return None
    if place.run is None and not may_begin():
        inputs.take_back(conn, new.id)
        lane.input_seq -= 1
        return Refused()
    if place.ends is not None:
        run_stop.replace(unit, lane, place.ends)
    if place.run is None:
        busy = queue_mode in COLLECTING and lane.active_run is not None
        collecting = message.late or message.album is not None or busy
        pause = debounce_ms if collecting else 0
        _begin(conn, lane, new, collecting=collecting, ready_ms=lane.now_ms + pause)
    elif place.steered:
        runs.change(conn, run_id, {"steered": True})
        lane.record(EventKind.INPUT_ACCEPTED, run_id, {"input_id": new.id, "steered": True})
    else:
        _join(conn, place.run, new, ready_ms=lane.now_ms + debounce_ms)
        lane.record(EventKind.INPUT_ACCEPTED, run_id, {"input_id": new.id})
    if lane.active_run is None and place != _Place():
        lanes.settle(conn, lane)
    unit.say(RUNS, {"session_id": lane.session_id})
    return Enqueued(new.id, run_id, place.run is not None, place.steered)


def _place(
    conn: Connection, lane: Lane, message: InboundMessage, speaker: Speaker, *, mode: str
) -> _Place:
    if lane.is_idle:
        return _Place()
    if mode == "steer" and not message.late:
        at_work = steering.steerable(conn, lane, message, speaker)
        if at_work is not None:
            return _Place(at_work, steered=True)
    ends = None
    if mode == "interrupt" and not message.late:
        ends = _replaceable(conn, lane, speaker)
    # Where each message has its own run, only what waits because it came late is joined.
    late_only = mode == "followup" and not message.late
    return _Place(_joinable(conn, lane, message, speaker, late_only=late_only), ends=ends)


def _replaceable(conn: Connection, lane: Lane, speaker: Speaker) -> Run | None:
    """The run that newer input of this speaker may end: never one of somebody trusted more."""
    run = steering.begun(conn, lane)
    if run is None or trusted_less(speaker.trust, run.speaker.trust):
        return None
    return run


def _joinable(
    conn: Connection, lane: Lane, message: InboundMessage, speaker: Speaker, *, late_only: bool
) -> Run | None:
    """The last queued run, if it has not begun and a message of this sender may share its turn.

    People of different trust never share one: the run would have to act on the lower. Only what
    came late does, because it is answered once (MSG-17), and there it does act on the lower.
    """
    last = runs.last_queued(conn, lane.session_id)
    if last is None:
        return None
    fresh = last.step == 0 and last.started_ms is None and last.kind is RunKind.INPUT
    if not fresh or last.target != message.address:
        return None
    if late_only and not last.late and not _same_album(conn, last, message):
        return None
    both_late = last.late and message.late
    return last if both_late or last.speaker.trust is speaker.trust else None


def _same_album(conn: Connection, run: Run, message: InboundMessage) -> bool:
    """Whether a person sent `message` together with one that the waiting run will answer."""
    if message.album is None:
        return False
    waiting = inputs.pending_of_run(conn, run.id)
    return any(one.message.album == message.album for one in waiting)


def _begin(conn: Connection, lane: Lane, new: Input, *, collecting: bool, ready_ms: int) -> None:
    lane.run_seq += 1
    run = Run(
        id=new.run_id or "",
        session_id=lane.session_id,
        seq=lane.run_seq,
        kind=RunKind.INPUT,
        collecting=collecting,
        late=new.message.late,
        ready_ms=ready_ms,
        target=new.message.address,
        reply_to=new.message.message_id,
        speaker=new.speaker,
        summary=lane.summary(said_in(new.message)),
        created_ms=lane.now_ms,
    )
    runs.add(conn, run)
    if lane.is_idle:
        # Nothing waited, so this is the head, and nobody needs to ask for it.
        lane.begin_at(ready_ms)
    told: JsonObject = {"input_id": new.id, "kind": "input", "summary": run.summary}
    lane.record(EventKind.RUN_QUEUED, run.id, told)


def _join(conn: Connection, run: Run, new: Input, *, ready_ms: int) -> None:
    values: dict[str, object] = {"reply_to": new.message.message_id}
    if run.collecting or new.message.late:
        values["ready_ms"] = ready_ms
    if trusted_less(new.speaker.trust, run.speaker.trust):
        values["speaker"] = new.speaker.model_dump_json()
    runs.change(conn, run.id, values)
