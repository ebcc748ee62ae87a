"""Who stops a child, and how it ends then (SUB-19).

Stopping goes from parent to child, and locks are taken from child to parent. So a stop only marks
the rows of agents, and the keeper ends each of them in a unit of its own.
"""

from runtime.features.subagents import agent_rights
from runtime.features.subagents.ends import child_end
from runtime.features.subagents.rows import agents
from runtime.ports import bus
from runtime.sessions import run_stop, runs
from runtime.sessions.lanes import Lane
from runtime.sessions.run_stop import Stopped
from runtime.sessions.unit import Unit


def asked_to_end(unit: Unit, lane: Lane, reason: str) -> None:
    """Mark the child of a locked lane that somebody stops by itself."""
    # Also one that has nothing to do now: it would wait for children that tell it nothing.
    # A unit that stops the parent has its lane first, and this child's row then.
    unit.lane(agents.get(unit.conn, lane.session_id).parent_id)
    agents.ask_to_stop(unit.conn, lane.session_id, reason)


def ask_one(unit: Unit, session_id: str, reason: str, *, run_id: str) -> bool:
    """Mark a child that the run `run_id` of an agent above it stops; False where it had ended, or
    was marked. Raises `Forbidden` as `agent_rights.check_stop`."""
    conn = unit.conn
    agent = agents.get(conn, session_id)
    if not agent.settled:
        agent_rights.check_stop(conn, agent, runs.get(conn, run_id).speaker)
    unit.say(bus.CHILDREN)
    unit.say(bus.EVENTS, {"session_id": session_id})
    return agents.ask_to_stop(conn, session_id, reason)


def stop(unit: Unit, session_id: str) -> Stopped:
    """End a child that is marked, and mark its own children."""
    conn, lane = unit.conn, unit.lane(session_id)
    agent = agents.get(conn, session_id)
    if agent.settled or agent.stop is None:
        return Stopped((), ())
    stopped = run_stop.stop_session(unit, session_id, by="system", reason=agent.stop)
    agent = agents.get(conn, session_id)
    if not stopped.running and not agent.settled:
        # Nothing of it ran or waited: it had answered, and its own children were at work.
        child_end.settle(unit, lane, agent, "cancelled", agent.result)
    unit.say(bus.EVENTS, {"session_id": session_id})
    return stopped
