"""How a child ends, in one unit: its slot is free, its row closed, its parent told (SUB-8).

Lanes are locked from the child to the parent, never the other way.
"""

from dataclasses import replace
from typing import Final

from runtime.domain.events import EventKind
from runtime.domain.results import plain, shortened
from runtime.domain.runs import RunState
from runtime.features.subagents import batch_card, slots
from runtime.features.subagents.ends import child_retry, parent_results, result_text
from runtime.features.subagents.notices import Told
from runtime.features.subagents.rows import agents, results, retries
from runtime.features.subagents.rows.agents import Agent, Status, Totals
from runtime.features.subagents.rows.agents_due import OVER
from runtime.features.subagents.rows.retries import HANDOFF
from runtime.ports.bus import CHILDREN, EVENTS, OUTBOX, RUNS
from runtime.sessions import runs, seen_files
from runtime.sessions.lanes import Lane
from runtime.sessions.runs import Run, RunEnd
from runtime.sessions.streams import last_said
from runtime.sessions.unit import Unit
from runtime.store import Connection

STATUS: Final[dict[RunState, Status]] = {
    RunState.COMPLETED: "completed",
    RunState.FAILED: "failed",
    RunState.INTERRUPTED: "failed",
    RunState.CANCELLED: "cancelled",
}
PARENT_ENDED: Final = "the agent that spawned it ended"
AGENT_ENDED: Final = "the agent ended"


def ended(unit: Unit, lane: Lane, run: Run, end: RunEnd) -> None:
    """A run of a child's locked lane is over: a child that has nothing more to do settles."""
    conn = unit.conn
    slots.give_back(unit, lane)
    for topic in (RUNS, OUTBOX):
        unit.say(topic)
    agent = agents.find(conn, lane.session_id)
    if agent is None or agent.settled:
        return
    if not end.text:
        end = replace(end, text=_partial(conn, run, end.why))
    if agent.stop is None and _has_more_work(conn, lane, agent, end):
        return
    settle(unit, lane, agent, _status(end), end.text)


def _status(end: RunEnd) -> Status:
    if end.over and end.state is RunState.CANCELLED:
        # The watchdog's word, which nobody asked for (SUB-21).
        return "timed_out"
    forced = end.cut_short and end.state is RunState.COMPLETED
    return "forced" if forced else STATUS[end.state]


def _partial(conn: Connection, run: Run, why: str) -> str:
    """What a run had that ended without an answer: why, and what it said last."""
    last = last_said(conn, run.session_id, run.id)
    return "\n\n".join(part for part in (why, last) if part)


def _has_more_work(conn: Connection, lane: Lane, agent: Agent, end: RunEnd) -> bool:
    """Whether a child that nobody stopped has more to do than the run that ended."""
    waiting = runs.queued(conn, lane.session_id)
    if end.over:
        if end.state is RunState.COMPLETED:
            # Another's words are no circle of its own; what its children hand over may be.
            ids = [one.id for one in waiting]
            return not all(retries.only_handoffs(conn, lane.session_id, one) for one in ids)
        return False
    if end.retry is not None and child_retry.again(conn, lane, agent, end.retry):
        return True
    if waiting:
        return True
    there = [one for one in agents.live_children(conn, lane.session_id) if not one.quiet]
    if end.state is not RunState.COMPLETED or not there:
        return False
    if all(_isolated(one) for one in there):
        # Nobody runs it again: this is its answer, once the last of them has settled.
        kept: Status = "forced" if end.cut_short else "completed"
        agents.answer(conn, agent.session_id, status=kept, result=plain(end.text))
    # Else it is run again by their handoffs, and answers then.
    return True


def settle(unit: Unit, lane: Lane, agent: Agent, status: Status, text: str) -> None:
    """End a child whose lane is held, once, and tell its parent."""
    # Before any row of an agent changes: a unit that stops the parent takes them in this order.
    conn, parent = unit.conn, unit.lane(agent.parent_id)
    if agent.stop == OVER and status == "cancelled":
        status, text = "timed_out", _late(agent, text)
    _end_queued(conn, lane)
    agents.mark_stopped(conn, agent.session_id, PARENT_ENDED)
    used = agents.totals(conn, agent.session_id)
    _close(conn, agent, plain(text), status=status, used=used, now=lane.now_ms)
    seen_files.forget(conn, agent.session_id)
    lane.record(EventKind.AGENT_SETTLED, None, {"agent": agent.name, "status": status})
    agent = agents.get(conn, agent.session_id)
    batch_card.settled(conn, agent, now=lane.now_ms)
    parent.record(
        EventKind.AGENT_SETTLED,
        agent.run_id,
        {"agent": agent.name, "session_id": agent.session_id, "status": status},
    )
    if agent.mode == "await":
        parent_results.complete_call(conn, parent, agent)
    elif _isolated(agent):
        _settle_behind(unit, parent)
    elif not agent.quiet:
        told = Told(result_text.told(conn, agent, reader=agent.parent_id), used.tainted)
        # One that was spoken to after its end settles again, and is told again.
        identity = f"{HANDOFF}{agent.session_id}:{agent.settled_ms}"
        parent_results.notify(conn, parent, agent, told, identity)
    for topic in (RUNS, OUTBOX, CHILDREN):
        unit.say(topic)
    unit.say(EVENTS, {"session_id": parent.session_id})


def _late(agent: Agent, text: str) -> str:
    seconds = ((agent.deadline_ms or agent.created_ms) - agent.created_ms) / 1000
    words = f"(It was ended here: its {seconds:g} s were over.)"
    return f"{text}\n\n{words}" if text else words


def _close(
    conn: Connection, agent: Agent, words: str, *, status: Status, used: Totals, now: int
) -> None:
    short = shortened(words)
    if short.digest is not None:
        results.keep(conn, agent.session_id, short.digest, words, now=now)
    files = results.written(conn, agent.session_id) if used.tool_calls else ()
    agents.settle(conn, agent.session_id, status, short, artifacts=files, used=used, now=now)


def _isolated(agent: Agent) -> bool:
    """Whether its parent is told nothing of its end (SUB-16)."""
    return agent.share == "isolated" and agent.mode == "background"


def _settle_behind(unit: Unit, lane: Lane) -> None:
    """The last isolated child of an agent settled: what that answered before is its result."""
    conn = unit.conn
    agent = agents.find(conn, lane.session_id)
    if agent is None or agent.settled or agent.status is None:
        return
    busy = lane.active_run is not None or runs.queued(conn, lane.session_id)
    if agent.stop is None and not busy and not agents.live_children(conn, lane.session_id):
        settle(unit, lane, agent, agent.status, agent.result)


def _end_queued(conn: Connection, lane: Lane) -> None:
    """What a child that was stopped had not heard is not run: nobody would hear of it."""
    for run in runs.queued(conn, lane.session_id):
        runs.move(conn, run, RunState.CANCELLED, {"ended_ms": lane.now_ms, "cancel": AGENT_ENDED})
        lane.record(EventKind.RUN_CANCELLED, run.id, {"reason": AGENT_ENDED})
