"""Two replicas give out slots at once: never are more children at work than there are slots."""

from functools import partial

import pytest
from sqlalchemy import Connection, select

from runtime.domain.messages import ChatAddress
from runtime.features.subagents import slots
from runtime.features.subagents.tables import agent_slots
from runtime.sessions import lanes
from runtime.sessions.lanes import OPEN, SHUT, NewSession
from runtime.sessions.tables import lanes as lane_rows
from tests.contract.store_support import clock, migrated_url, points, schema_templates, store
from tests.stateful.test_races import Race, dialect, race
from tests.support.kinds import unit_of

__all__ = ["clock", "dialect", "migrated_url", "points", "race", "schema_templates", "store"]

MOST, WANTING = 3, 8
HERE = ChatAddress(channel="test", account="A1", chat_id="D")


def wanting(conn: Connection) -> None:
    """Children that could run if each had a slot."""
    for number in range(WANTING):
        new = NewSession(f"subagent:{number}", HERE, "edit", "followup")
        lane = lanes.create(conn, new)
        assert lane is not None
        lane.gate, lane.wants_ms = SHUT, lane.now_ms
        lanes.save(conn, lane)


@pytest.mark.requirement("SUB-13", "SCALE-1")
async def test_replicas_that_give_out_slots_at_once_give_out_no_more_than_there_are(
    race: Race,
) -> None:
    await race.store.write(wanting, name="wanting")
    await race.store.write(unit_of(partial(slots.grant, most=1)), name="first")
    grant = unit_of(partial(slots.grant, most=MOST))
    await race.run(grant, grant)

    def look(conn: Connection) -> tuple[list[str], list[str]]:
        at_work = select(lane_rows.c.session_id).where(lane_rows.c.gate == OPEN)
        held = select(agent_slots.c.session_id).where(agent_slots.c.session_id.is_not(None))
        return sorted(conn.execute(at_work).scalars()), sorted(conn.execute(held).scalars())

    at_work, held = await race.store.read(look)
    assert len(at_work) == MOST
    assert at_work == held
