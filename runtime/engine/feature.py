"""What a feature is to the engine: a frozen value that bundles types which the rooms below declare.

The path knows no feature. The engine resolves all of them once, when it is made: kinds, waits,
guests and the one statement that looks for work. There is no registry and no discovery.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from runtime.agent.attachments import KeptFor
from runtime.agent.guest import GuestOf
from runtime.agent.prompt_blocks import PromptBlock
from runtime.agent.settings import AgentSettings
from runtime.agent.wait_requests import OpeningOf
from runtime.agent.working_folders import Places
from runtime.commands.table import Command, Commands
from runtime.ports.clock import Clock
from runtime.ports.sandbox import Sandbox
from runtime.process.due_poll import Looks
from runtime.sessions.approvals import kinds_with
from runtime.sessions.runs import Run
from runtime.sessions.unit import Delegations, Kinds, SessionKind, Stopping, Units, WaitKind
from runtime.tools.base import AnyTool
from runtime.tools.registry import Registry
from runtime.workspace.definitions import DefinitionShelf
from runtime.workspace.snapshot import Workspace


@dataclass(frozen=True, slots=True)
class ToolServices:
    """What the tools of features are made with; `made` are all tools, filled in once they are made.
    Without a `shelf` there are no definitions of subagents but the built-in ones."""

    units: Units
    clock: Clock
    settings: AgentSettings
    shelf: DefinitionShelf | None = None
    made: list[AnyTool] = field(default_factory=list)


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
    """What there is of a feature in every process, and how its tools and parts are made in one that
    works."""

    name: str
    tools: Callable[[ToolServices], Sequence[AnyTool]] = lambda _services: ()
    parts: Callable[[FeatureServices], FeatureParts] = lambda _services: FeatureParts()
    kinds: tuple[SessionKind, ...] = ()
    waits: tuple[WaitKind, ...] = ()
    stopping: tuple[Stopping, ...] = ()
    delegating: tuple[Delegations, ...] = ()
    commands: tuple[Command, ...] = ()
    prompt: tuple[PromptBlock, ...] = ()


def tools_of(features: Iterable[Feature], services: ToolServices) -> Sequence[AnyTool]:
    """The tools of all features, in their order."""
    return [tool for one in features for tool in one.tools(services)]


def commands_of(features: Iterable[Feature]) -> Commands:
    """The commands of the path and of all features."""
    return Commands(*(command for one in features for command in one.commands))


def blocks_of(features: Iterable[Feature]) -> tuple[PromptBlock, ...]:
    """What all features tell the model with the newest turn, in their order."""
    return tuple(block for one in features for block in one.prompt)


def kinds_of(features: Iterable[Feature]) -> Kinds:
    """The kinds of all features and of the path, as one table."""
    there = tuple(features)
    return Kinds(
        waits=kinds_with(*(wait for one in there for wait in one.waits)),
        sessions={kind.name: kind for one in there for kind in one.kinds},
        stopping=tuple(tell for one in there for tell in one.stopping),
        delegating=tuple(each for one in there for each in one.delegating),
    )
