"""Slots: how many children run at once over the whole deployment (SUB-13).

A lane that may not run is `SHUT` and says in `wants_ms` since when it wants to; one that may is
`OPEN`, and has a slot unless their number is unlimited. Whoever waits gives the slot back.
"""

from runtime.features.subagents.rows import slots
from runtime.ports import bus
from runtime.sessions import lanes
from runtime.sessions.lanes import OPEN, SHUT, Lane
from runtime.sessions.unit import Unit

AT_ONCE = slots.AT_ONCE
"""Lanes that one unit lets run."""


def grant(unit: Unit, *, most: int) -> int:
    """Let lanes that want to run do so, longest waiting first; how many. `most` slots, 0: any.

    Slots and lanes that other units hold are skipped, so nobody is waited for.
    """
    conn = unit.conn
    free = [None] * AT_ONCE if most == 0 else slots.lock_free(conn, most)
    if not free:
        return 0
    wanting = unit.hold(lanes.lock_wanting(conn, most=len(free)))
    for lane, number in zip(wanting, free, strict=False):
        lane.gate, lane.ready_ms, lane.wants_ms = OPEN, lane.wants_ms, None
        if number is not None:
            slots.take(conn, number, lane.session_id)
    if wanting:
        unit.say(bus.RUNS)
    return len(wanting)


def give_back(unit: Unit, lane: Lane) -> None:
    """A child's locked lane runs no longer, so somebody else may."""
    unit.say(bus.CHILDREN)
    if lane.gate == OPEN:
        slots.free(unit.conn, lane.session_id)
        lane.gate = SHUT
        if lane.ready_ms is not None:
            lane.ready_ms, lane.wants_ms = None, lane.ready_ms
