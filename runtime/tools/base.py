"""What a tool is: a name, arguments, an effect, what it would touch, and how it runs.

A tool decides nothing about whether it may run: policy reads `touches`, the executor asks policy.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Generic, Protocol, Self, TypeVar

from pydantic import JsonValue
from typing_extensions import override

from runtime.domain.messages import Dispatch
from runtime.domain.tools import Effect, ToolSpec, Touches
from runtime.domain.value import JsonObject, Value
from runtime.policy.decide import Bounds
from runtime.tools.hidden_paths import Hidden
from runtime.tools.schema import of_arguments
from runtime.tools.seen_versions import SeenFiles
from runtime.workspace.layout import Layout, ResolvedLayout


class Arguments(Value):
    """The base of every tool's arguments."""


A = TypeVar("A", bound=Arguments)


@cache
def _json_schema(arguments: type[Arguments]) -> JsonObject:
    """Pydantic needs milliseconds for each, and every narrowed registry asks for all of them."""
    return of_arguments(arguments.model_json_schema())


def _nothing_to_compare() -> None:
    """For calls about which nothing was decided."""


@dataclass(slots=True)
class _Look:
    """What the disk has said so far of the layout of a context."""

    resolved: ResolvedLayout | None = None
    hidden: dict[bool, Hidden] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolContext:
    """Where and for whom a call runs.

    ``layout`` says where relative paths begin; ``roots`` are the folders besides the workspace that
    file tools and commands may reach. ``emit`` takes progress text for whoever watches, empty where
    it is only at work; it keeps nothing and must not block. ``notes`` says that the private notes
    exist for this call; who does not say so does not see them. ``read_only`` says that the session
    is in a mode in which nothing may be changed: a command gets a view of the files that cannot be
    written (TOOL-7). ``reaches`` says whether a host is in the session's scope, ``within`` whether
    a canonical path is; None where nothing bounds it. ``child`` says that it is a subagent's: its
    commands do not find the private notes, which it reads by tools and never writes (SUB-16).
    ``tainted`` says that its run, or the conversation that it is given, holds something untrusted.
    ``reads`` are folders beyond the roots that commands may read. ``writes`` are the canonical
    paths that this call was decided to write; None where nothing was decided. ``unchanged`` raises
    `ToolError` where a command would run something else than was decided about; whoever starts one
    asks it last, and in a thread, because it blocks on files.
    """

    session_id: str
    run_id: str
    call_id: str
    layout: Layout
    roots: tuple[Path, ...]
    files: SeenFiles
    emit: Callable[[str], None]
    notes: bool = False
    read_only: bool = False
    reaches: Callable[[str], bool] | None = None
    within: Callable[[str], bool] | None = None
    child: bool = False
    tainted: bool = False
    reads: tuple[Path, ...] = ()
    writes: tuple[str, ...] | None = None
    unchanged: Callable[[], None] = _nothing_to_compare
    _look: _Look = field(default_factory=_Look, compare=False, repr=False)

    def again(self) -> Self:
        """The same context before its first look at the disk: links may have changed since."""
        return replace(self, _look=_Look())

    @property
    def resolved(self) -> ResolvedLayout:
        """The layout with its links followed: once for this context and what `replace` makes of
        it, so that a call is decided in one look and runs in another."""
        if self._look.resolved is None:
            self._look.resolved = ResolvedLayout(self.layout)
        return self._look.resolved

    @property
    def hidden(self) -> Hidden:
        """What does not exist for this call; as `resolved`."""
        found = self._look.hidden.get(self.notes)
        if found is None:
            found = Hidden.of(self.resolved, self.session_id, notes=self.notes)
            self._look.hidden[self.notes] = found
        return found


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a call gave. ``source`` labels the fence around content from outside (TOOL-11).
    ``failed`` says that it ended badly, as a command does with an exit code; the content is kept.
    Without ``outside`` the model may have written the content, so an address in it was given by
    nobody (POL-10).

    ``sends`` is one message: it goes into the outbox by the unit that keeps the result, and nowhere
    where that is never kept.
    """

    content: str
    untrusted: bool = False
    source: str = ""
    sends: Dispatch | None = None
    failed: bool = False
    outside: bool = True


@dataclass(frozen=True, slots=True)
class Face:
    """What of a tool can be known before it is made."""

    name: str
    effect: Effect


class SkillReader(Protocol):
    """The skills of a workspace, as ``use_skill`` sees them."""

    def read(self, name: str) -> str | None:
        """The body of a skill, or None where there is none of this name or it is unavailable."""
        ...

    def names(self) -> Sequence[str]: ...


class AnyTool(ABC):
    """A tool whose type of arguments the caller does not know; the registry holds these."""

    name: str
    description: str
    effect: Effect
    example: str
    """Arguments that are right, as JSON: shown to a model that sent wrong ones (TOOL-1)."""
    family: str = ""  # offered by name and loaded on demand (CTX-12)
    own_words: bool = False
    """Whether its results are what the model, or whoever it commands, wrote (POL-10)."""

    def offered(self, bounds: Bounds) -> bool:
        """Whether a session that is bounded so is told of it. It decides nothing: policy does, if
        the model calls it all the same."""
        return bounds.offers(self.name)

    @abstractmethod
    def spec(self) -> ToolSpec:
        """What the model is told."""

    @abstractmethod
    def bind(self, raw: Mapping[str, JsonValue]) -> "Prepared":
        """Check arguments. Raises pydantic's `ValidationError`; the registry puts it in words."""


@dataclass(frozen=True, slots=True)
class WaitsFor:
    """What a call waits for: the name of a kind (`sessions.unit.WaitKind`), and for a question its
    words and the answers that it offers."""

    kind: str
    question: str = ""
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Prepared:
    """A tool with arguments that passed its check. Nothing has been touched yet."""

    tool: AnyTool
    arguments: Arguments
    effect: Effect
    touches: Callable[[ToolContext], Touches]
    waits_for: Callable[[ToolContext], WaitsFor | None]
    fetches: str | None
    run: Callable[[ToolContext], Awaitable[ToolOutput]]


class Tool(AnyTool, Generic[A]):
    """The base of tools; `A` is the pydantic model of the arguments."""

    arguments: type[A]

    @abstractmethod
    def touches(self, arguments: A, context: ToolContext) -> Touches:
        """What this call would touch; only looks where paths lead, changes nothing.

        Raises `ToolError` for a path that is refused whatever policy says (TOOL-2).
        """

    @abstractmethod
    async def run(self, arguments: A, context: ToolContext) -> ToolOutput:
        """Do it. Raises `ToolError` for what the model can mend."""

    def effect_of(self, arguments: A) -> Effect:  # noqa: ARG002 - for those that depend on them
        """What a rerun of this very call would do; `effect` is what the tool is offered by."""
        return self.effect

    def waits_for(self, arguments: A, context: ToolContext) -> WaitsFor | None:  # noqa: ARG002
        """What the run is parked for instead of running this call, or before it runs."""
        return None

    def fetches(self, arguments: A) -> str | None:  # noqa: ARG002 - for those that fetch
        """The address of the page that this call gets."""
        return None

    @override
    def spec(self) -> ToolSpec:
        parameters = _json_schema(self.arguments)
        return ToolSpec(name=self.name, description=self.description, parameters=parameters)

    @override
    def bind(self, raw: Mapping[str, JsonValue]) -> Prepared:
        arguments = self.arguments.model_validate(raw)
        return Prepared(
            tool=self,
            arguments=arguments,
            effect=self.effect_of(arguments),
            touches=lambda context: self.touches(arguments, context),
            waits_for=lambda context: self.waits_for(arguments, context),
            fetches=self.fetches(arguments),
            run=lambda context: self.run(arguments, context),
        )
