"""The feature of subagents, whole: what it adds to the path, and what it does in a process."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from runtime.engine.feature import (
    Feature,
    FeatureParts,
    FeatureServices,
    FeatureWorker,
    ToolServices,
)
from runtime.features.subagents.child_keeper import ChildKeeper
from runtime.features.subagents.commands import AGENTS
from runtime.features.subagents.delegations import SubagentDelegations
from runtime.features.subagents.family import AgentFamily
from runtime.features.subagents.files.result_files import ResultFiles
from runtime.features.subagents.files.work_places import WorkPlaces
from runtime.features.subagents.files.worktree_keeper import WorktreeKeeper
from runtime.features.subagents.files.worktrees import Worktrees
from runtime.features.subagents.kind import WAITS, SubagentKind
from runtime.features.subagents.openings import SpawnOpenings
from runtime.features.subagents.rows.agents import SUBAGENT
from runtime.features.subagents.settings import ChildSettings
from runtime.features.subagents.spawn.agent_types import TypeBook
from runtime.features.subagents.tools import (
    AgentsList,
    RequestParentClarification,
    SessionsSpawn,
    Subagents,
)
from runtime.features.subagents.turn_guest import ChildGuests
from runtime.tools.base import AnyTool, Face

FACES: Final = tuple(
    Face(tool.name, tool.effect)
    for tool in (SessionsSpawn, RequestParentClarification, Subagents, AgentsList)
)
"""The tools of the feature, in the order in which they are made."""
USUAL: Final = ChildSettings()


def subagents(settings: ChildSettings = USUAL) -> Feature:
    """The feature under the operator's settings."""
    return Feature(
        name="subagents",
        parts=partial(_parts, settings),
        kinds=(SubagentKind(),),
        waits=WAITS,
        delegations=SubagentDelegations(),
        commands=(AGENTS,),
        tools=partial(_tools, settings),
    )


def _tools(settings: ChildSettings, services: ToolServices) -> Sequence[AnyTool]:
    units = services.units
    book = TypeBook(units.database, services.settings, settings, services.shelf)
    family = AgentFamily(units, services.clock, book)
    # At the last depth nothing is spawned, and at most one level the first is the last (SUB-14).
    spawn = (SessionsSpawn(),) if settings.limits.max_depth > 1 else ()
    return (
        *spawn,
        RequestParentClarification(),
        Subagents(family),
        AgentsList(family, services.made),
    )


def _parts(settings: ChildSettings, services: FeatureServices) -> FeatureParts:
    units, agent, root = services.units, services.settings, services.workspace.root
    worktrees = None
    if services.sandbox is not None:
        worktrees = Worktrees(services.sandbox, root, services.clock)
    places = WorkPlaces(units.database, services.places, worktrees)
    book = TypeBook(units.database, agent, settings, services.workspace.agents)
    openings = SpawnOpenings(book, services.registry, places)
    keeper = ChildKeeper(units, services.clock, services.looks, most=settings.concurrency)
    workers = [
        FeatureWorker("child signals", keeper.listen),
        FeatureWorker("children", keeper.care),
    ]
    if worktrees is not None:
        trees = WorktreeKeeper(units.database, units.bus, worktrees)
        workers.append(FeatureWorker("worktrees", trees.run, needed=False))

    return FeatureParts(
        openings=openings.by_kind,
        guests={SUBAGENT: ChildGuests(units.database, agent, settings, places).of},
        kept_for=(partial(ResultFiles, units.database),),
        workers=tuple(workers),
    )
