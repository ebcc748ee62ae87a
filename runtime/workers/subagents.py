"""The feature of subagents, whole: what it adds to the path, and what it does in a process."""

from typing import Final

from runtime.agent.minding import ChildGuests
from runtime.agent.placing import WorkPlaces
from runtime.agent.results import ResultFiles
from runtime.agent.settings import AgentSettings
from runtime.agent.spawning import SpawnOpenings
from runtime.agent.worktrees import Worktrees
from runtime.commands.agents import AGENTS
from runtime.store.agents import SUBAGENT
from runtime.store.runs import Run
from runtime.subagents.delegations import SubagentDelegations
from runtime.subagents.kind import WAITS, SubagentKind, stop_children
from runtime.tools.builtin.spawning import SPAWN
from runtime.workers.children import ChildKeeper
from runtime.workers.feature import Feature, FeatureParts, FeatureServices, FeatureWorker
from runtime.workers.worktrees import WorktreeKeeper


def _parts(services: FeatureServices) -> FeatureParts:
    units, settings, root = services.units, services.settings, services.workspace.root
    worktrees = None
    if services.sandbox is not None:
        worktrees = Worktrees(services.sandbox, root, services.clock)
    places = WorkPlaces(units.database, services.places, worktrees)
    openings = SpawnOpenings(
        units.database, services.registry, settings, places, services.workspace.agents
    )
    keeper = ChildKeeper(units, services.clock, services.looks, most=settings.children.concurrency)
    workers = [
        FeatureWorker("child signals", keeper.listen),
        FeatureWorker("children", keeper.care),
    ]
    if worktrees is not None:
        trees = WorktreeKeeper(units.database, units.bus, worktrees)
        workers.append(FeatureWorker("worktrees", trees.run, needed=False))

    def results(run: Run) -> ResultFiles:
        return ResultFiles(units.database, run)

    return FeatureParts(
        openings=openings.by_kind,
        guests={SUBAGENT: ChildGuests(units.database, settings, places).of},
        kept_for=(results,),
        workers=tuple(workers),
    )


def _idle_tools(settings: AgentSettings) -> frozenset[str]:
    """At the last depth the tool is not offered, and at most one the first is the last (SUB-14)."""
    return frozenset({SPAWN}) if settings.children.limits.max_depth <= 1 else frozenset()


SUBAGENTS: Final = Feature(
    name="subagents",
    parts=_parts,
    kinds=(SubagentKind(),),
    waits=WAITS,
    stopping=(stop_children,),
    delegating=(SubagentDelegations(),),
    commands=(AGENTS,),
    idle_tools=_idle_tools,
)
