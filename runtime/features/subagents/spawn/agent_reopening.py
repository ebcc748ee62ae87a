"""An agent that settled goes on (SUB-24): it is live again, so all that bounds live ones holds.

The unit has the agent's lane. It locks those above it as well, from the child upwards: a parent
that is stopped or settles meanwhile finds the agent live, or refuses it; and spawns of the same
tree come before it or behind it.
"""

from collections.abc import Sequence
from dataclasses import replace

from runtime.domain.errors import Conflict
from runtime.domain.runs import TERMINAL
from runtime.features.subagents.rows import agents
from runtime.features.subagents.rows.agents import HELD, Agent
from runtime.features.subagents.settings import Limits
from runtime.features.subagents.spawn import children
from runtime.features.subagents.spawn.spawn_requests import attended, crowded
from runtime.sessions import runs
from runtime.sessions.lanes import Lane
from runtime.sessions.runs import Run
from runtime.sessions.unit import Unit
from runtime.store import Connection


def reopen(unit: Unit, lane: Lane, agent: Agent, speaker: Run, limits: Limits) -> None:
    """Let it be live again for the run `speaker`; who calls gives it something to do.

    Raises `Conflict` where that run is to end or is over, where the parent is, where another of its
    group is at work, where it would wait for itself, and where a limit is reached.
    """
    conn = unit.conn
    unit.lanes((agent.parent_id, speaker.session_id, agent.tree_id))
    parent = agents.find(conn, agent.parent_id)
    if parent is not None and (parent.settled or parent.stop is not None):
        detail = (
            f"{agent.name} settled, and so did {parent.name}, which spawned it: "
            f"send the message to {parent.name}"
        )
        raise Conflict(detail, "settled")
    now = runs.get(conn, speaker.id)
    if now.cancel is not None or now.state in TERMINAL:
        raise Conflict(
            f"{agent.name} settled, and the agent that sends this is being stopped", "stopping"
        )
    held_ms = lane.now_ms if lane.gate == HELD else None
    again = replace(agent, settled_ms=None, held_ms=held_ms)
    everybody = [
        again if one.session_id == agent.session_id else one
        for one in agents.of_tree(conn, agent.tree_id)
    ]
    _check_group(conn, again, everybody)
    _check_bounds(conn, again, everybody, speaker, limits)
    payer = agents.payer_of(conn, speaker)
    agents.reopen(conn, agent.session_id, held_ms=held_ms, payer=payer)


def _check_group(conn: Connection, agent: Agent, everybody: Sequence[Agent]) -> None:
    """One of a group at a time (SUB-12): others may be live that it stands behind, because it never
    began, and those that never began and stand behind it."""
    if agent.group_name is None:
        return
    ahead = _sessions_ahead(conn, agent)
    for one in everybody:
        same = one.group_name == agent.group_name and one.session_id != agent.session_id
        if not same or one.settled:
            continue
        if agent.held_ms is not None and one.session_id in ahead:
            continue
        if one.held_ms is None or agent.session_id not in _sessions_ahead(conn, one):
            detail = f"{agent.name} settled, and {one.name} of its group is at work: wait for it"
            raise Conflict(detail, "settled")


def _sessions_ahead(conn: Connection, agent: Agent) -> frozenset[str]:
    return frozenset(one.agent.session_id for one in agents.in_front(conn, agent.session_id))


def _check_bounds(
    conn: Connection, agent: Agent, everybody: Sequence[Agent], speaker: Run, limits: Limits
) -> None:
    tree = children.tree_of(conn, agent.tree_id, everybody)
    circle = tree.path(agent.name, agent.name)
    if circle is not None:
        detail = f"{agent.name} settled, and would wait for itself: {' -> '.join(circle)}"
        raise Conflict(detail, "settled")
    unattended = children.unattended(conn, speaker.session_id, agent.tree_id)
    parent = tree.nodes[agent.name].parent or children.ROOT
    # It is one of the live ones already.
    wrong = (*crowded(tree, parent, limits, more=0), *attended(unattended, limits))
    if wrong:
        raise Conflict(f"{agent.name} settled, and cannot go on: {'; '.join(wrong)}", "settled")
