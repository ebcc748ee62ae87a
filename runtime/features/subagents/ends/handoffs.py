"""A settled child's way to its parent: an input of its lane, and a run that takes it (SUB-8).

What it says is in `handoff_text`.
"""

from collections.abc import Sequence

from runtime.domain.events import EventKind
from runtime.domain.ids import IdPrefix, new_id
from runtime.domain.messages import InboundMessage
from runtime.domain.people import Sender, trusted_less
from runtime.domain.runs import RunKind, RunState
from runtime.features.subagents.rows.agents import Agent
from runtime.sessions import inputs, lanes, runs
from runtime.sessions.inputs import NOTICE, Input
from runtime.sessions.lanes import Lane
from runtime.sessions.runs import Run
from runtime.store import Connection


def notice(lane: Lane, run: Run, text: str, identity: str, *, run_id: str) -> Input:
    """An input by which the machinery tells a session something, said where `run` is answered."""
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


def hand_over(conn: Connection, parent: Lane, agent: Agent, text: str, *, tainted: bool) -> None:
    """Put a child's end into its parent's locked lane; the caller saves it."""
    # One that was spoken to after its end settles again, and is told again.
    identity = f"handoff:{agent.session_id}:{agent.settled_ms}"
    put(conn, parent, agent, text, identity=identity, tainted=tainted)


def put(
    conn: Connection, parent: Lane, agent: Agent, text: str, *, identity: str, tainted: bool
) -> None:
    """Put a word about a child into its parent's locked lane, once; the caller saves it.

    A run at work hears it at its next step; those that wait for a run are taken by one. It joins
    only a run that is trusted as much as the one that asked for the child, or told it to go on,
    and answers where that was asked: nobody's words get another's rights, and no result another's
    thread.
    """
    origin = _asked_by(conn, agent)
    run = _at_work(conn, parent, origin) or _waiting(conn, parent, origin)
    run_id = run.id if run else new_id(IdPrefix.RUN, parent.now_ms)
    new = notice(parent, origin, text, identity, run_id=run_id)
    if not inputs.add(conn, new):
        parent.input_seq -= 1
        return
    if run is None:
        _begin(conn, parent, origin, run_id)
    elif run.state is not RunState.QUEUED or run.started_ms is not None:
        runs.change(conn, run_id, {"steered": True})
    if tainted:
        runs.change(conn, run_id, {"tainted": True})
    parent.record(
        EventKind.INPUT_ACCEPTED, run_id, {"input_id": new.id, "handoff": agent.session_id}
    )


def _asked_by(conn: Connection, agent: Agent) -> Run:
    """The run that spawned an agent, or for one that was told to go on after its end, the one at
    the root that did: where an agent of the root says so, or where that is trusted less."""
    origin = runs.get(conn, agent.run_id)
    if not agent.payer or agent.payer == agent.run_id:
        return origin
    payer = runs.get(conn, agent.payer)
    less = trusted_less(payer.speaker.trust, origin.speaker.trust)
    return payer if agent.depth == 1 or less else origin


def _alike(run: Run, origin: Run) -> bool:
    same_rights = run.speaker.trust is origin.speaker.trust
    return same_rights and run.target == origin.target and run.cancel is None


def _at_work(conn: Connection, lane: Lane, origin: Run) -> Run | None:
    """The run that has the lane, if it will still hear something."""
    if lane.active_run is None:
        return None
    run = runs.get(conn, lane.active_run)
    return run if _alike(run, origin) and run.transcript == lane.transcript else None


def _waiting(conn: Connection, lane: Lane, origin: Run) -> Run | None:
    """The run that is to take handoffs, if one waits; or one that was put back in its middle."""
    waiting: Sequence[Run] = runs.queued(conn, lane.session_id)
    last = [one for one in waiting if _alike(one, origin)]
    begun = [one for one in last if one.started_ms is not None]
    fresh = [one for one in last if one.kind is RunKind.HANDOFF and one.started_ms is None]
    return next(iter([*begun, *fresh]), None)


def _begin(conn: Connection, lane: Lane, origin: Run, run_id: str) -> None:
    lane.run_seq += 1
    run = Run(
        id=run_id,
        session_id=lane.session_id,
        seq=lane.run_seq,
        kind=RunKind.HANDOFF,
        state=RunState.QUEUED,
        collecting=False,
        ready_ms=lane.now_ms,
        target=origin.target,
        reply_to=origin.reply_to,
        speaker=origin.speaker,
        created_ms=lane.now_ms,
    )
    runs.add(conn, run)
    lane.record(EventKind.RUN_QUEUED, run_id, {"kind": run.kind.value})
    if lane.active_run is None:
        lanes.settle(conn, lane)
