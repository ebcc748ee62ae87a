"""Two members of a tree spawn at once, on two replicas: names and limits are those of the tree."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import pytest
from sqlalchemy import Connection

from runtime.domain.people import Trust
from runtime.features.subagents.rows import agents
from runtime.features.subagents.spawn import children
from runtime.features.subagents.spawn.children import Spawned
from runtime.sessions import runs
from runtime.sessions.unit import Unit
from tests.contract.store_support import clock, migrated_url, points, schema_templates, store
from tests.stateful.arriving import deliver
from tests.stateful.children_bench import LIMITS, agent, spawning, within
from tests.stateful.test_races import Race, dialect, race
from tests.support.kinds import unit_of

__all__ = ["clock", "dialect", "migrated_url", "points", "race", "schema_templates", "store"]

ROOM: Final = 2
"""Live agents of the tree: the one that is there, and one of the two that are asked for."""


def spawns(run_id: str, name: str) -> Callable[[Connection], Spawned]:
    """A run spawns one agent of this name, where the tree has room."""
    limits = replace(LIMITS, live_per_tree=ROOM)
    order = within(spawning(agent(name), mode="background"), limits)

    def work(unit: Unit) -> Spawned:
        lane, run = unit.lane_of_run(run_id), runs.get(unit.conn, run_id)
        return children.spawn(unit, lane, run, step=1, place=0, order=order)

    return unit_of(work)


@pytest.mark.requirement("SUB-14", "SCALE-1")
@pytest.mark.parametrize("name", ["another", "same"])
async def test_of_two_members_of_a_tree_that_spawn_at_once_the_second_sees_the_first(
    race: Race, name: str
) -> None:
    def begin(conn: Connection) -> str:
        queued = deliver(conn, 0, 1, Trust.OWNER, queue_mode="followup")
        assert queued is not None
        return queued.run_id

    root = await race.store.write(begin, name="begin")
    (child,) = (await race.store.write(spawns(root, "child"), name="child")).agents
    (below,) = await race.store.read(lambda conn: runs.queued(conn, child.session_id))
    refused = await race.run(spawns(below.id, "same"), spawns(root, name))
    told = {one.rule.partition(":")[0] for one in refused.problems}
    full = f"agents.live_per_tree is {ROOM}"
    taken = "same is taken in this tree"
    assert told == ({full} if name == "another" else {full, taken})
    found = await race.store.read(lambda conn: agents.of_tree(conn, child.tree_id))
    assert [(one.name, one.place) for one in found] == [("child", 1), ("same", 2)]
