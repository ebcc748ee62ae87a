"""Slots: how many children run at once over the whole deployment (SUB-13).

Slots are rows, never counts: whoever takes one holds its row, and skips those that others hold. A
lane that may not run is `SHUT` and says in `wants_ms` since when it wants to; one that may is
`OPEN`, and has a slot unless their number is unlimited.
"""

from typing import Final

from sqlalchemy import Connection, bindparam, func, select, text, update

from runtime.features.subagents.tables import agent_slots
from runtime.sessions import lanes
from runtime.sessions.lanes import OPEN, SHUT, Lane
from runtime.sessions.tables import lanes as lanes_table
from runtime.store.database import now_ms
from runtime.store.dialect import lock_rows
from runtime.store.insert_once import insert_new
from runtime.store.statements import hot

AT_ONCE: Final = 32
"""Lanes that one unit lets run."""


_WANTED = hot(
    select(lanes_table.c.session_id)
    .where(text("wants_ms IS NOT NULL"), lanes_table.c.wants_ms <= bindparam("now_ms"))
    .limit(1)
)


def wanted(conn: Connection) -> bool:
    """Whether a lane wants to run; reads only."""
    return _WANTED.first(conn, now_ms=now_ms(conn)) is not None


def grant(conn: Connection, *, most: int) -> int:
    """Let lanes that want to run do so, longest waiting first; how many. `most` slots, 0: any."""
    free = [None] * AT_ONCE if most == 0 else list(_free(conn, most))
    if not free:
        return 0
    wanting = lanes.lock_wanting(conn, most=len(free))
    for lane, number in zip(wanting, free, strict=False):
        lane.gate, lane.ready_ms, lane.wants_ms = OPEN, lane.wants_ms, None
        if number is not None:
            conn.execute(
                update(agent_slots)
                .where(agent_slots.c.number == number)
                .values(session_id=lane.session_id)
            )
    if wanting:
        lanes.save(conn, *wanting)
    return len(wanting)


def give_back(conn: Connection, lane: Lane) -> bool:
    """A child's lane runs no longer; the caller saves it. True where somebody else may run now."""
    if lane.gate != OPEN:
        return False
    conn.execute(
        update(agent_slots)
        .where(agent_slots.c.session_id == lane.session_id)
        .values(session_id=None)
    )
    lane.gate = SHUT
    if lane.ready_ms is not None:
        lane.ready_ms, lane.wants_ms = None, lane.ready_ms
    return True


def _free(conn: Connection, most: int) -> list[int]:
    """Slots that nobody has, held until the unit ends."""
    there = conn.execute(select(func.count()).select_from(agent_slots)).scalar_one()
    for number in range(there + 1, most + 1):
        insert_new(conn, agent_slots, {"number": number, "session_id": None})
    query = (
        select(agent_slots.c.number)
        .where(agent_slots.c.session_id.is_(None), agent_slots.c.number <= most)
        .order_by(agent_slots.c.number)
        .limit(AT_ONCE)
    )
    return list(conn.execute(lock_rows(query, skip_locked=True)).scalars())
