"""How a child's result reaches its parent (SUB-8), in the parent's locked lane.

It is the result of the call that awaits the child; else a notice that a run of the parent hears.
What it says is in `result_text`.
"""

from runtime.domain.events import EventKind
from runtime.domain.ids import IdPrefix, new_id
from runtime.domain.people import trusted_less
from runtime.domain.runs import RunKind, RunState
from runtime.features.subagents import notices
from runtime.features.subagents.ends import result_text
from runtime.features.subagents.notices import Told, notice, queue_run
from runtime.features.subagents.rows import agents
from runtime.features.subagents.rows.agents import Agent
from runtime.ports import bus
from runtime.sessions import inputs, lanes, open_calls, runs
from runtime.sessions.lanes import Lane
from runtime.sessions.open_calls import CHILDREN, OpenCall
from runtime.sessions.runs import Run
from runtime.sessions.unit import Unit
from runtime.store import Connection


def awaiting(conn: Connection, agent: Agent) -> OpenCall | None:
    """The open call of the run that awaits an agent; None where nobody does any more."""
    wanted = (CHILDREN, agent.step, agent.call_place)
    waiting = open_calls.of_run(conn, agent.run_id, state="open")
    return next((one for one in waiting if (one.kind, one.step, one.place) == wanted), None)


def complete_call(conn: Connection, parent: Lane, agent: Agent) -> None:
    """Give the call that awaits a child its result, once the last of its children has settled."""
    call = awaiting(conn, agent)
    if call is None:
        return
    there = agents.of_call(conn, agent.run_id, agent.step, agent.call_place)
    # One that was spoken to after its end is awaited no longer: its next end is a notice.
    siblings = [one for one in there if one.mode == "await"]
    if all(one.settled for one in siblings):
        _complete(conn, parent, call, result_text.together(conn, siblings))


def let_go(unit: Unit, call: OpenCall) -> None:
    """An awaited child that takes long is awaited no longer (SUB-7): its result comes later."""
    lane = unit.lane(call.session_id)
    if open_calls.get(unit.conn, call.id) is not None:
        go_on(unit.conn, lane, call)
        unit.say(bus.RUNS)
        unit.say(bus.CHILDREN)


def go_on(conn: Connection, lane: Lane, call: OpenCall, lead: Told | None = None) -> None:
    """Let a run await the children of a call no longer: they go on in the background. The call's
    result begins with the `lead`."""
    agents.to_background(conn, call.run_id, call.step, call.place)
    there = agents.of_call(conn, call.run_id, call.step, call.place)
    names = ", ".join(one.name for one in there if not one.settled)
    text = f"Still at work, in the background from now on: {names}. You will be told the results."
    if any(one.share == "isolated" for one in there):
        text += " Read the results of isolated ones with subagents, action output."
    ended = [one for one in there if one.settled and one.mode == "await"]
    parts = (lead or Told(""), Told(text), result_text.together(conn, ended))
    text = "\n\n".join(part.text for part in parts if part.text)
    _complete(conn, lane, call, Told(text, any(part.tainted for part in parts)))


def _complete(conn: Connection, lane: Lane, call: OpenCall, told: Told) -> None:
    if open_calls.settle(conn, call, state="answered", answer={}, by=None):
        notices.end(conn, lane, open_calls.row_of(conn, call), told)
        open_calls.resume(conn, lane, call.run_id)


def notify(conn: Connection, parent: Lane, agent: Agent, told: Told, identity: str) -> None:
    """Put a word about a child into its parent's lane, once.

    A run at work hears it at its next step; those that wait for a run are taken by one. It joins
    only a run of the person who asked for the child, or told it to go on, with the same trust,
    and answers where that was asked: nobody's words get another's rights, no result another's
    thread, and no question a run whose answer the child would not hear.
    """
    origin = _asked_by(conn, agent)
    run = _at_work(conn, parent, origin) or _waiting(conn, parent, origin)
    run_id = run.id if run else new_id(IdPrefix.RUN, parent.now_ms)
    new = notice(parent, origin, told, identity, run_id=run_id)
    if not inputs.add(conn, new):
        parent.input_seq -= 1
        return
    if run is None:
        # What a child said is below the first line, fenced for the model.
        about = told.text.partition("\n")[0]
        queue_run(conn, parent, origin, RunKind.HANDOFF, about=about, run_id=run_id)
        lanes.settle(conn, parent)
    elif run.state is not RunState.QUEUED or run.started_ms is not None:
        runs.change(conn, run_id, {"steered": True})
    if told.tainted:
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
    same_rights = run.speaker.has_rights_of(origin.speaker)
    return same_rights and run.target == origin.target and run.cancel is None


def _at_work(conn: Connection, lane: Lane, origin: Run) -> Run | None:
    """The run that has the lane, if it will still hear something."""
    if lane.active_run is None:
        return None
    run = runs.get(conn, lane.active_run)
    return run if _alike(run, origin) and run.transcript == lane.transcript else None


def _waiting(conn: Connection, lane: Lane, origin: Run) -> Run | None:
    """The run that is to take results, if one waits; or one that was put back in its middle."""
    alike = [one for one in runs.queued(conn, lane.session_id) if _alike(one, origin)]
    begun = [one for one in alike if one.started_ms is not None]
    fresh = [one for one in alike if one.kind is RunKind.HANDOFF and one.started_ms is None]
    return next(iter([*begun, *fresh]), None)
