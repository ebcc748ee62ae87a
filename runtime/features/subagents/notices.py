"""What the machinery tells a session: a notice in its locked lane, and a run that hears it."""

from dataclasses import dataclass

from runtime.domain.events import EventKind
from runtime.domain.ids import IdPrefix, new_id
from runtime.domain.messages import InboundMessage
from runtime.domain.people import Sender
from runtime.domain.runs import RunKind, RunState
from runtime.sessions import runs
from runtime.sessions.inputs import NOTICE, Input
from runtime.sessions.lanes import Lane
from runtime.sessions.runs import Run
from runtime.store import Connection


@dataclass(frozen=True, slots=True)
class Told:
    """Words for an agent, `tainted` where a run that they come from read what is untrusted."""

    text: str
    tainted: bool = False


def notice(lane: Lane, run: Run, text: str, identity: str, *, run_id: str) -> Input:
    """An input for the run `run_id`, with the rights of `run` and said where that is answered."""
    lane.input_seq += 1
    target = run.target
    return Input(
        id=new_id(IdPrefix.INPUT, lane.now_ms),
        session_id=lane.session_id,
        seq=lane.input_seq,
        identity=identity,
        origin=NOTICE,
        run_id=run_id,
        state="pending",
        speaker=run.speaker,
        message=InboundMessage(
            channel=target.channel,
            account=target.account,
            chat_id=target.chat_id,
            chat_kind=target.chat_kind,
            thread_id=target.thread_id,
            message_id=run.reply_to or "",
            sender=Sender(id="gatehouse", name="Gatehouse"),
            text=text,
            received_at_ms=lane.now_ms,
        ),
        received_ms=lane.now_ms,
    )


def new_run(lane: Lane, asker: Run, kind: RunKind, *, seq: int, run_id: str = "") -> Run:
    """A run that may start now, with the rights of `asker`, and answers where that does."""
    return Run(
        id=run_id or new_id(IdPrefix.RUN, lane.now_ms),
        session_id=lane.session_id,
        seq=seq,
        kind=kind,
        state=RunState.QUEUED,
        collecting=False,
        ready_ms=lane.now_ms,
        target=asker.target,
        reply_to=asker.reply_to,
        speaker=asker.speaker,
        created_ms=lane.now_ms,
    )


def queue_run(conn: Connection, lane: Lane, asker: Run, kind: RunKind, run_id: str = "") -> Run:
    """Add such a run behind all that wait in the lane. The caller settles the lane."""
    lane.run_seq += 1
    run = new_run(lane, asker, kind, seq=lane.run_seq, run_id=run_id)
    runs.add(conn, run)
    lane.record(EventKind.RUN_QUEUED, run.id, {"kind": kind.value})
    return run
