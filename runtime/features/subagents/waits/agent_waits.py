"""A child that waits for others by `subagents`: an open call, so that it holds no slot (SUB-13).

The call runs once it has something to tell: all of them have settled, one asks its parent, or its
time is over. Until then it has not begun, and its run is parked like one that awaits.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from runtime.domain.errors import InvalidInput
from runtime.domain.value import JsonObject
from runtime.features.subagents.agent_selectors import below, select
from runtime.features.subagents.rows import agents
from runtime.ports.bus import CHILDREN, EVENTS, RUNS
from runtime.sessions import calls, open_calls
from runtime.sessions.lanes import Lane
from runtime.sessions.open_calls import AGENTS, CLARIFICATION, OpenCall
from runtime.sessions.runs import Run
from runtime.sessions.unit import Opening, Unit
from runtime.store import Connection

WAITED: Final = "waited"
"""What of such a call's payload names the sessions that it is about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentsOpening(Opening):
    """A call that waits `most_ms` at most for the agent that it names, or for all below it."""

    kind: str = AGENTS
    agent: str
    most_ms: int


@dataclass(frozen=True, slots=True)
class Waited:
    """Of agents that somebody waits for, those that have not settled; `asks` where one of these
    waits for its parent's answer."""

    left: Sequence[str]
    asks: bool

    @property
    def over(self) -> bool:
        """Whether there is something to tell."""
        return self.asks or not self.left


def waited_for(conn: Connection, session_ids: Collection[str]) -> Waited:
    """How agents stand that somebody waits for."""
    found = [agents.find(conn, one) for one in session_ids]
    left = [one.session_id for one in found if one is not None and not one.settled]
    asks = (open_calls.open_ones(conn, session_id=one, kind=CLARIFICATION) for one in left)
    return Waited(left, any(asks))


def begin(unit: Unit, lane: Lane, _run: Run, opening: Opening) -> None:
    """Open the call where there is somebody to wait for, else let it run. The lane is held."""
    if not isinstance(opening, AgentsOpening):
        raise TypeError(f"a wait for agents is not opened by {type(opening).__name__}")
    conn, row = unit.conn, opening.row
    waited = _waited(conn, lane.session_id, opening.agent)
    if waited_for(conn, waited).over:
        calls.set_state(conn, row, "approved")
        return
    about: JsonObject = {WAITED: list(waited)}
    open_calls.begin(conn, lane, row, AGENTS, about, lasts_ms=opening.most_ms)


def over(conn: Connection) -> Sequence[OpenCall]:
    """Such calls that have something to tell."""
    found = open_calls.for_agents(conn)
    return [one for one in found if waited_for(conn, _sessions(one)).over]


def end(unit: Unit, call: OpenCall) -> None:
    """Let the call run now, unless it waits no more."""
    conn, lane = unit.conn, unit.lane(call.session_id)
    if not open_calls.settle(conn, call, state="answered", answer={}, by=None):
        return
    calls.set_state(conn, open_calls.row_of(conn, call), "approved")
    open_calls.resume(conn, lane, call.run_id)
    unit.say(RUNS)
    unit.say(CHILDREN)
    unit.say(EVENTS, {"session_id": call.session_id})


def _waited(conn: Connection, session_id: str, selector: str) -> Sequence[str]:
    everybody = agents.of_tree(conn, agents.tree_of(conn, session_id))
    there = below(everybody, session_id)
    if selector:
        try:
            chosen = select(everybody, selector, caller=session_id)
        except InvalidInput:
            # The call says what is wrong.
            return ()
        there = [one for one in there if one.session_id == chosen.session_id]
    return [one.session_id for one in there]


def _sessions(call: OpenCall) -> Sequence[str]:
    waited = call.payload[WAITED]
    return [str(one) for one in waited] if isinstance(waited, list) else []
