"""How a child ends, in one unit: its slot is free, its row closed, its parent told (SUB-8).

Lanes are locked from the child to the parent, never the other way.
"""

from typing import Final, Literal

from runtime.domain.events import EventKind
from runtime.domain.runs import RunState
from runtime.domain.tools import ToolResult
from runtime.inbox import handoffs, resuming
from runtime.store import Connection, agents, calls, lanes, open_calls, runs, seen_files, slots
from runtime.store.agents import Agent, Status
from runtime.store.lanes import Lane
from runtime.store.open_calls import CHILDREN, OpenCall

STATUS: Final[dict[RunState, Status]] = {
    RunState.COMPLETED: "completed",
    RunState.FAILED: "failed",
    RunState.INTERRUPTED: "failed",
    RunState.CANCELLED: "cancelled",
}
PARENT_ENDED: Final = "the agent that spawned it ended"
AGENT_ENDED: Final = "the agent ended"


def ended(
    conn: Connection, lane: Lane, state: RunState, text: str, *, forced: bool = False
) -> None:
    """A run of a locked lane is over: if the lane is a child's that has nothing more to do, the
    child settles. The caller settles and saves the lane."""
    if lane.gate is None:
        return
    slots.give_back(conn, lane)
    agent = agents.find(conn, lane.session_id)
    if agent is None or agent.settled_ms is not None:
        return
    if agent.stop is None:
        if runs.queued(conn, lane.session_id):
            return
        there = agents.live_children(conn, lane.session_id)
        if state is RunState.COMPLETED and any(not one.quiet for one in there):
            # It is run again by their handoffs, and answers then.
            return
    status = "forced" if forced and state is RunState.COMPLETED else STATUS[state]
    settle(conn, lane, agent, status, text)


def settle(conn: Connection, lane: Lane, agent: Agent, status: Status, text: str) -> None:
    """End a child whose lane is held, once, and tell its parent."""
    # Before any row of an agent changes: a unit that stops the parent takes them in this order.
    parent = lanes.lock(conn, agent.parent_id)
    _end_queued(conn, lane)
    agents.mark_stopped(conn, agent.session_id, PARENT_ENDED)
    used = agents.totals(conn, agent.session_id)
    agents.settle(conn, agent, status=status, result=text, used=used, now=lane.now_ms)
    seen_files.forget(conn, agent.session_id)
    lane.record(EventKind.AGENT_SETTLED, None, {"agent": agent.name, "status": status})
    agent = agents.get(conn, agent.session_id)
    words = handoffs.told(agent, used, lane.now_ms)
    parent.record(
        EventKind.AGENT_SETTLED,
        agent.run_id,
        {"agent": agent.name, "session_id": agent.session_id, "status": status},
    )
    if agent.mode == "await":
        _fill(conn, parent, agent)
    elif not agent.quiet:
        handoffs.hand_over(conn, parent, agent, words, tainted=used.tainted)
    lanes.save(conn, parent)


def _end_queued(conn: Connection, lane: Lane) -> None:
    """What a child that was stopped had not heard is not run: nobody would hear of it."""
    for run in runs.queued(conn, lane.session_id):
        runs.move(conn, run, RunState.CANCELLED, {"ended_ms": lane.now_ms, "cancel": AGENT_ENDED})
        lane.record(EventKind.RUN_CANCELLED, run.id, {"reason": AGENT_ENDED})


def _fill(conn: Connection, parent: Lane, agent: Agent) -> None:
    """Give an awaiting call its result, once the last of its children has settled."""
    call = awaiting(conn, agent)
    if call is None:
        return
    siblings = agents.of_call(conn, agent.run_id, agent.step, agent.call_place)
    if any(one.settled_ms is None for one in siblings):
        return
    done = [(one, agents.totals(conn, one.session_id)) for one in siblings]
    content = "\n\n".join(
        handoffs.told(one, used, one.settled_ms or parent.now_ms) for one, used in done
    )
    tainted = any(used.tainted for _, used in done)
    fill(conn, parent, call, "ok", content, untrusted=tainted)


def fill(
    conn: Connection,
    lane: Lane,
    call: OpenCall,
    status: Literal["ok", "error", "cancelled"],
    content: str,
    *,
    untrusted: bool = False,
) -> None:
    """End the call that awaited children, and let its run go on."""
    if not open_calls.settle(conn, call, state="answered", answer={}, by=None):
        return
    rows = calls.of_step(conn, call.run_id, call.step)
    row = next(one for one in rows if one.place == call.place)
    result = ToolResult(
        call_id=row.call.id,
        name=row.call.name,
        status=status,
        content=content,
        untrusted=untrusted,
    )
    calls.end(conn, row, result, None, now=lane.now_ms)
    if untrusted:
        runs.change(conn, call.run_id, {"tainted": True})
    resuming.resume(conn, lane, call.run_id)


def awaiting(conn: Connection, agent: Agent) -> OpenCall | None:
    """The open call of the run that awaits an agent; None where nobody does any more."""
    waiting = open_calls.of_run(conn, agent.run_id, state="open")
    return next(
        (
            one
            for one in waiting
            if (one.kind, one.step, one.place) == (CHILDREN, agent.step, agent.call_place)
        ),
        None,
    )


def let_go(conn: Connection, call: OpenCall) -> bool:
    """An awaited child that takes long is awaited no longer (SUB-7): its result comes later."""
    lane = lanes.lock(conn, call.session_id)
    if open_calls.get(conn, call.id) is None:
        return False
    agents.to_background(conn, call.run_id, call.step, call.place)
    there = agents.of_call(conn, call.run_id, call.step, call.place)
    names = ", ".join(one.name for one in there if one.settled_ms is None)
    text = f"Still at work, in the background from now on: {names}. You will be told the results."
    tainted = False
    for one in there:
        if one.settled_ms is not None:
            used = agents.totals(conn, one.session_id)
            text += "\n\n" + handoffs.told(one, used, one.settled_ms)
            tainted = tainted or used.tainted
    fill(conn, lane, call, "ok", text, untrusted=tainted)
    lanes.save(conn, lane)
    return True
