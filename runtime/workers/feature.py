"""What a feature is to the engine: a frozen value that bundles types which the rooms below declare.

The path knows no feature. The engine resolves all of them once, when it is made: kinds, waits,
guests and the one statement that looks for work. There is no registry and no discovery.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field

from runtime.agent.files import KeptFor
from runtime.agent.guest import GuestOf
from runtime.agent.places import Places
from runtime.agent.settings import AgentSettings
from runtime.agent.waiting import OpeningOf
from runtime.commands.table import Command, Commands
from runtime.inbox.parking import kinds_with
from runtime.ports.clock import Clock
from runtime.ports.sandbox import Sandbox
from runtime.sessions.unit import Delegations, Kinds, SessionKind, Stopping, Units, WaitKind
from runtime.store.runs import Run
from runtime.tools.registry import Registry
from runtime.workers.looks import Looks
from runtime.workspace.snapshot import Workspace


@dataclass(frozen=True, slots=True)
class FeatureServices:
    """What the engine gives a feature to work with."""

    units: Units
    clock: Clock
    looks: Looks
    registry: Registry
    workspace: Workspace
    places: Places
    settings: AgentSettings
    sandbox: Sandbox | None = None


@dataclass(frozen=True, slots=True)
class FeatureWorker:
    """A long-lived task of each process that has turns. One that is not `needed` may be down while
    the process is ready."""

    name: str
    run: Callable[[], Awaitable[None]]
    needed: bool = True


@dataclass(frozen=True, slots=True)
class FeatureParts:
    """What a feature does in one process: `openings` by kind of wait, `guests` by kind of session,
    what it puts on the disk for a run to read, and its workers."""

    openings: Mapping[str, OpeningOf] = field(default_factory=dict)
    guests: Mapping[str, GuestOf] = field(default_factory=dict)
    kept_for: tuple[Callable[[Run], KeptFor], ...] = ()
    workers: tuple[FeatureWorker, ...] = ()


@dataclass(frozen=True, slots=True)
class Feature:
    """What there is of a feature in every process, and how its parts are made in one that works.

    `idle_tools` are tools that the settings leave nothing to do for: they are not offered.
    """

    name: str
    parts: Callable[[FeatureServices], FeatureParts] = lambda _services: FeatureParts()
    kinds: tuple[SessionKind, ...] = ()
    waits: tuple[WaitKind, ...] = ()
    stopping: tuple[Stopping, ...] = ()
    delegating: tuple[Delegations, ...] = ()
    commands: tuple[Command, ...] = ()
    idle_tools: Callable[[AgentSettings], frozenset[str]] = lambda _settings: frozenset()


def commands_of(features: Iterable[Feature]) -> Commands:
    """The commands of the path and of all features."""
    return Commands(*(command for one in features for command in one.commands))


def kinds_of(features: Iterable[Feature]) -> Kinds:
    """The kinds of all features and of the path, as one table."""
    there = tuple(features)
    return Kinds(
        waits=kinds_with(*(wait for one in there for wait in one.waits)),
        sessions={kind.name: kind for one in there for kind in one.kinds},
        stopping=tuple(tell for one in there for tell in one.stopping),
        delegating=tuple(each for one in there for each in one.delegating),
    )
