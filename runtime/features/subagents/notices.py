"""What the machinery tells a session: a notice in its locked lane and a run that hears it, or the
result of a call by which an agent waits."""

from dataclasses import dataclass
from typing import Literal

from runtime.domain.events import EventKind
from runtime.domain.ids import IdPrefix, new_id
from runtime.domain.messages import InboundMessage
from runtime.domain.people import Sender
from runtime.domain.runs import RunKind
from runtime.sessions import calls, runs
from runtime.sessions.calls import CallRow
from runtime.sessions.inputs import NOTICE, Input, new_input
from runtime.sessions.lanes import Lane
from runtime.sessions.runs import Run
from runtime.store import Connection


@dataclass(frozen=True, slots=True)
class Told:
    """Words for an agent, `tainted` where a run that they come from read what is untrusted."""

    text: str
    tainted: bool = False


def notice(lane: Lane, run: Run, told: Told, identity: str, *, run_id: str) -> Input:
    """An input for the run `run_id`, with the rights of `run` and said where that is answered.

    Tainted words mark whoever is given them, also the later runs that have them in their window.
    """
    target = run.target
    message = InboundMessage(
        channel=target.channel,
        account=target.account,
        chat_id=target.chat_id,
        chat_kind=target.chat_kind,
        thread_id=target.thread_id,
        joins_chat=target.joins_chat,
        message_id=run.reply_to or "",
        sender=Sender(id="gatehouse", name="Gatehouse"),
        text=told.text,
        received_at_ms=lane.now_ms,
        authorship="forwarded" if told.tainted else "own",
    )
    return new_input(lane, message, run.speaker, run_id=run_id, identity=identity, origin=NOTICE)


def new_run(
    lane: Lane, asker: Run, kind: RunKind, *, seq: int, about: str, run_id: str = ""
) -> Run:
    """A run that may start now, with the rights of `asker`, and answers where that does. `about`
    is what it hears."""
    return Run(
        id=run_id or new_id(IdPrefix.RUN, lane.now_ms),
        session_id=lane.session_id,
        seq=seq,
        kind=kind,
        ready_ms=lane.now_ms,
        target=asker.target,
        reply_to=asker.reply_to,
        speaker=asker.speaker,
        summary=lane.summary(about),
        created_ms=lane.now_ms,
    )


def queue_run(
    conn: Connection, lane: Lane, asker: Run, kind: RunKind, *, about: str, run_id: str = ""
) -> Run:
    """Add such a run behind all that wait in the lane. The caller settles the lane."""
    lane.run_seq += 1
    run = new_run(lane, asker, kind, seq=lane.run_seq, about=about, run_id=run_id)
    runs.add(conn, run)
    lane.record(EventKind.RUN_QUEUED, run.id, {"kind": kind.value, "summary": run.summary})
    return run


def end(
    conn: Connection,
    lane: Lane,
    row: CallRow,
    told: Told,
    status: Literal["ok", "error", "denied"] = "ok",
) -> None:
    """Give a call its result. The run is tainted where the result is."""
    result = row.ended(status, told.text, untrusted=told.tainted)
    calls.end(conn, row, result, None, now=lane.now_ms)
    if told.tainted:
        runs.change(conn, row.run_id, {"tainted": True})
