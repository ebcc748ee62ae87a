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
from runtime.domain.messages import ChatAddress
from runtime.domain.people import Approvers, Speaker
from runtime.ports.clock import Clock
from runtime.ports.sandbox import Sandbox
from runtime.process.due_poll import Looks
from runtime.sessions.approvals import kinds_with
from runtime.sessions.bounds import PolicySettings
from runtime.sessions.runs import Run
from runtime.sessions.unit import (
    NO_DELEGATIONS,
    NO_LETTERS,
    CardKind,
    DeadLetters,
    Delegations,
    Kinds,
    SessionKind,
    Units,
    WaitKind,
)
from runtime.store import Connection
from runtime.tools.base import AnyTool
from runtime.tools.builtin.shell import Background
from runtime.tools.outgoing_files import Mail
from runtime.tools.registry import Registry
from runtime.workspace.definitions import DefinitionShelf
from runtime.workspace.snapshot import Workspace

Admitted = Callable[[Connection, Sequence[tuple[ChatAddress, str]]], Sequence[Speaker | None]]
"""Who accounts are, each asked for by a place and a user id; None for one that is not let in."""


def nothing_begun(text: str) -> int:
    """That no secret begins at the end of a text, where there are none."""
    del text
    return 0


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
    """What the engine gives a feature to work with. `admitted` says who an account of a place's
    platform is there now; None where it is not let in any more. `policy` is what the operator set,
    and `approvers` says who may approve now. `worker` is this process's
    name among the holders of leases; `redact` takes the gateway's secrets out of a text, `begun`
    says how many characters at its end may be the beginning of one."""

    units: Units
    clock: Clock
    looks: Looks
    registry: Registry
    workspace: Workspace
    places: Places
    settings: AgentSettings
    admitted: Admitted
    policy: PolicySettings = field(default_factory=PolicySettings)
    approvers: Callable[[], Approvers] = Approvers
    sandbox: Sandbox | None = None
    worker: str = ""
    redact: Callable[[str], str] = str
    begun: Callable[[str], int] = nothing_begun


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
    delegations: Delegations | None = None
    commands: tuple[Command, ...] = ()
    cards: tuple[CardKind, ...] = ()
    prompt: tuple[PromptBlock, ...] = ()
    background: Background | None = None
    """What runs commands that outlive their turn, where the feature does so."""
    letters: DeadLetters | None = None
    """Where what one session said to another and nobody heard is kept, in one feature at most."""
    mail: Mail | None = None
    """The mailboxes that agents write to, where the feature keeps them."""


def background_of(features: Iterable[Feature]) -> Background | None:
    """What runs commands in the background; None where no feature does."""
    return next((one.background for one in features if one.background is not None), None)


def mail_of(features: Iterable[Feature]) -> Mail | None:
    """The mailboxes of agents; None where no feature keeps any."""
    return next((one.mail for one in features if one.mail is not None), None)


def tools_of(features: Iterable[Feature], services: ToolServices) -> Sequence[AnyTool]:
    """The tools of all features, in their order."""
    return [tool for one in features for tool in one.tools(services)]


def commands_of(features: Iterable[Feature]) -> Commands:
    """The commands of the path and of all features."""
    return Commands(*(command for one in features for command in one.commands))


def blocks_of(features: Iterable[Feature]) -> tuple[PromptBlock, ...]:
    """What all features tell the model with the newest turn, in their order."""
    return tuple(block for one in features for block in one.prompt)


def kinds_of(features: Iterable[Feature], redact: Callable[[str], str] = str) -> Kinds:
    """The kinds of all features and of the path, as one table. `redact` takes the gateway's secrets
    out of a text. Raises ValueError where more than
    one feature has delegations."""
    there = tuple(features)
    given = [one.delegations for one in there if one.delegations is not None]
    (delegations,) = given or (NO_DELEGATIONS,)
    letters = [one.letters for one in there if one.letters is not None]
    return Kinds(
        letters=letters[0] if letters else NO_LETTERS,
        waits=kinds_with(*(wait for one in there for wait in one.waits)),
        sessions={kind.name: kind for one in there for kind in one.kinds},
        delegations=delegations,
        cards=tuple(card for one in there for card in one.cards),
        redact=redact,
    )
