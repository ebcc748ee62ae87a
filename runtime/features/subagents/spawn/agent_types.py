"""The types of subagents that there are, and what a child of one is given (SUB-1, SUB-2, SUB-15).

Some are built in. A definition adds one, which is a `general` of fewer tools with a prompt of its
own, or makes a built-in one narrower. It can take away and never add: a child has its parent's
tools, modes and steps at most, and a type that only reads does so whoever describes it anew.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, Protocol

from runtime.agent.settings import AgentSettings
from runtime.domain.decisions import PermissionMode
from runtime.domain.patterns import named
from runtime.domain.tools import Effect
from runtime.features.subagents.rows import agents
from runtime.features.subagents.settings import ChildSettings
from runtime.features.subagents.spawn.isolation import Defined
from runtime.features.subagents.spawn.spawn_arguments import SPAWN
from runtime.sessions import sessions
from runtime.store import Database
from runtime.tools.builtin.skills import USE_SKILL
from runtime.workspace.definitions import NONE, Definition, Definitions, DefinitionShelf, Known

GENERAL: Final = "general"
ASKS: Final = frozenset({"ask_user"})
"""A child that only reads asks no people; another's question names its path (APR-7)."""
COMMANDS: Final = frozenset({"exec"})
"""In a session that only reads these get a view that cannot be written (TOOL-7)."""
PLANS: Final = frozenset({"task_create", "task_update", "task_stop"})
"""What one that only leads changes: what is to be done, and by whom. It types into no command."""
MESSAGES: Final = frozenset({"send_message"})
"""Who puts the work of others together also writes to them; policy decides about each message."""
LEADS: Final = PLANS | MESSAGES
READ_FIRST: Final = "Before you begin, read these skills with {tool}: {names}."

_WRITES: Final = (PermissionMode.BYPASS, PermissionMode.ACCEPT_EDITS)

Reach = Literal["all", "reads", "checks", "leads"]


@dataclass(frozen=True, slots=True)
class Kind:
    """A built-in type: a line about it, what a child of it may spawn, and how far it reaches.

    ``all``: the tools of its parent. ``reads``: those that only read, and commands that do.
    ``checks``: the same, with any command that policy lets, in a view that cannot be written.
    ``leads``: those that only read, those that plan, and messages to others, without commands.
    Those that reach `all` may also spawn what is defined, and so may `leads`, of the tools that it
    has itself.
    """

    about: str
    reach: Reach
    may: frozenset[str]


_ANY: Final = frozenset({GENERAL, "explore", "plan"})
_LOOKS: Final = frozenset({"explore"})
BUILT_IN: Final[Mapping[str, Kind]] = {
    GENERAL: Kind("All tools of the agent that starts it.", "all", _ANY),
    "explore": Kind("Reads files and the web, and runs commands that only read.", "reads", _LOOKS),
    "plan": Kind("Like explore, but its result is a plan.", "reads", _LOOKS),
    "default": Kind("As general.", "all", _ANY),
    "planning": Kind("As plan.", "reads", _LOOKS),
    "coordination": Kind(
        "Splits work among subagents and puts their results together; writes no files itself.",
        "leads",
        _ANY,
    ),
    "verification": Kind(
        "Reads, and runs checks such as tests, in a view of the files that cannot be written.",
        "checks",
        _LOOKS,
    ),
}


class Face(Protocol):
    """What of a tool decides who has it."""

    @property
    def name(self) -> str: ...
    @property
    def effect(self) -> Effect: ...


@dataclass(frozen=True, slots=True)
class Caller:
    """Who would spawn. `type` is "" for an agent that nobody spawned, whose `depth` is 0; `tools`
    None: all that there are. `max_steps` are those of one run of it."""

    type: str = ""
    depth: int = 0
    tools: frozenset[str] | None = None
    max_steps: int = 40


@dataclass(frozen=True, slots=True)
class Profile:
    """What a child of a type is given: the names of its tools, whether it only reads or writes no
    files, and its own instructions. Its mode is the narrower of its parent's and this one; its runs
    take `max_steps` at most (None: what the operator lets every run take). `background` says how it
    runs where its spawn does not."""

    tools: tuple[str, ...]
    read_only: bool
    prompt: str = ""
    model: str | None = None
    no_writing: bool = False
    max_steps: int | None = None
    permission_mode: PermissionMode | None = None
    background: bool = False
    isolation: Defined = field(default_factory=Defined)


@dataclass(frozen=True, slots=True)
class Types:
    """What one spawner may use: `profiles` by name, `may` and `known` as in `Spawner`, a line about
    each for people and models, and what is wrong with the definitions, a line each. `able` says
    whether it can spawn at all, where it stands, and `levels` how many of children may follow."""

    profiles: Mapping[str, Profile]
    may: frozenset[str]
    known: Mapping[str, str]
    about: Mapping[str, str]
    problems: tuple[str, ...] = ()
    able: bool = True
    levels: int = 0

    @property
    def offered(self) -> Mapping[str, Profile]:
        """Those that can be spawned here and now."""
        there = self.profiles.items() if self.able else ()
        return {name: one for name, one in there if name in self.may and not self.known[name]}


@dataclass(frozen=True, slots=True)
class _Surface:
    """The tools that a caller can hand on, in their order, and those of all that only read."""

    usable: tuple[str, ...]
    reads: frozenset[str]

    def of(self, reach: Reach) -> tuple[str, ...]:
        """Those of a built-in type."""
        kept = {"all": frozenset(self.usable), "leads": self.reads | LEADS}.get(
            reach, self.reads | COMMANDS
        )
        return tuple(name for name in self.usable if name in kept)


def types_for(
    tools: Sequence[Face], definitions: Definitions, caller: Caller, settings: ChildSettings
) -> Types:
    """The types for a caller, where `tools` are all that there are; a child that would be at the
    last level has no tool to spawn."""
    levels = settings.limits.max_depth
    kept = {SPAWN} if caller.depth + 2 >= levels else set[str]()
    there = [one for one in tools if caller.tools is None or one.name in caller.tools]
    surface = _Surface(
        usable=tuple(
            one.name for one in there if one.name not in kept and settings.offers(one.name)
        ),
        reads=frozenset(one.name for one in tools if one.effect is Effect.READ) - ASKS,
    )
    model = settings.models.at(caller.depth + 1)
    profiles = {
        name: Profile(
            tools=surface.of(kind.reach),
            read_only=kind.reach == "reads",
            no_writing=kind.reach in ("checks", "leads"),
            model=model,
            max_steps=caller.max_steps,
        )
        for name, kind in BUILT_IN.items()
    }
    known = dict.fromkeys(BUILT_IN, "")
    about = {name: kind.about for name, kind in BUILT_IN.items()}
    problems = list(definitions.warnings)
    for one in definitions.items:
        known[one.name] = one.reason
        about[one.name] = _about(one) or about.get(one.name, "")
        base = profiles.get(one.name, profiles[GENERAL])
        profiles[one.name] = _refined(base, one, surface, caller)
        problems += (f"{one.file}: {told}" for told in wider(one, tools))
    able = caller.depth + 1 < levels and (caller.tools is None or SPAWN in caller.tools)
    may = _may(caller.type, frozenset(known))
    return Types(profiles, may, known, about, tuple(problems), able, levels - 1 - caller.depth)


def _may(kind: str, known: frozenset[str]) -> frozenset[str]:
    """What an agent of a type may spawn; one that nobody spawned may spawn every type."""
    if not kind:
        return known
    own = BUILT_IN[kind].may if kind in BUILT_IN else _ANY
    return own | (known - BUILT_IN.keys()) if GENERAL in own else own


def _refined(base: Profile, one: Definition, surface: _Surface, caller: Caller) -> Profile:
    read_only = base.read_only or one.header.permission_mode is PermissionMode.PLAN
    wanted = ("*",) if one.header.tools is None else one.header.tools
    if one.header.skills and one.header.tools is not None:
        wanted = (*wanted, USE_SKILL)
    tools = tuple(
        name
        for name in base.tools
        if named(wanted, name)
        and not named(one.header.disallowed_tools, name)
        and (not read_only or name in surface.reads | COMMANDS)
    )
    return replace(
        base,
        tools=tools,
        read_only=read_only,
        prompt=_prompt(one, tools),
        model=one.header.model or base.model,
        max_steps=min(one.max_turns, caller.max_steps),
        permission_mode=one.header.permission_mode,
        background=one.header.background,
        isolation=(
            Defined(worktree=True)
            if one.header.isolation == "worktree"
            else Defined(one.header.isolation)
        ),
    )


def _prompt(one: Definition, tools: Sequence[str]) -> str:
    if not one.header.skills or USE_SKILL not in tools:
        return one.prompt
    first = READ_FIRST.format(tool=USE_SKILL, names=", ".join(one.header.skills))
    return f"{one.prompt}\n\n{first}"


def _about(one: Definition) -> str:
    if not one.header.triggers:
        return one.header.description
    return f"{one.header.description} For: {', '.join(one.header.triggers)}.".strip()


def wider(one: Definition, tools: Sequence[Face]) -> Iterator[str]:
    """By field, each tool that a definition names and no child of its type may have, and a mode
    that would let it write although it only reads; `tools` are all that there are."""
    kind, effects = BUILT_IN.get(one.name, BUILT_IN[GENERAL]), {t.name: t.effect for t in tools}
    reads = {name for name, effect in effects.items() if effect is Effect.READ} - ASKS
    has = reads | (LEADS if kind.reach == "leads" else COMMANDS)
    for name in one.header.tools or ():
        if name in effects and kind.reach != "all" and name not in has:
            yield f"tools: {name} is more than {one.name} may have"
    mode = one.header.permission_mode
    if kind.reach == "reads" and mode in _WRITES:
        yield f"permissionMode: {one.name} only reads, so {mode} has no effect"


@dataclass(frozen=True, slots=True)
class TypeBook:
    """The types as sessions find them now. Without a `shelf` there are the built-in ones alone."""

    database: Database
    settings: AgentSettings
    children: ChildSettings
    shelf: DefinitionShelf | None = None

    async def of(self, session_id: str, tools: Sequence[Face]) -> Types:
        """What a session may spawn, where `tools` are all that there are. Raises `NotFound`."""
        found = NONE
        children = self.children
        if self.shelf is not None:
            known = Known([tool.name for tool in tools], children.models.offered)
            found = await asyncio.to_thread(self.shelf.load, known)
        session, own = await self.database.read(
            lambda conn: (sessions.get(conn, session_id), agents.find(conn, session_id))
        )
        caller = Caller(
            type=own.type if own else "",
            depth=own.depth if own else 0,
            tools=session.scope.tools,
            max_steps=self.settings.steps_of(session.scope.max_steps),
        )
        return types_for(tools, found, caller, children)
