"""What a spawn asks for, and all that is wrong with it at once (SUB-5, SUB-6, SUB-13 to SUB-16).

Nothing is started before every rule has been looked at: a caller gets the whole list, each line
with the field that breaks a rule, and can mend all of it in one further call.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from itertools import chain, islice
from typing import Final

from runtime.features.subagents.rows.agents import Share
from runtime.features.subagents.settings import Limits
from runtime.features.subagents.spawn.spawn_arguments import AgentRequest, Problem, SpawnArguments
from runtime.features.subagents.spawn.wait_graph import Node, Tree, circles, path

_CURES: Final = {
    "live_per_parent": "start fewer, or wait until some have ended",
    "live_per_tree": "start fewer, or wait until some have ended",
    "spawned_per_run": "start fewer, and do the rest yourself",
    "spawned_per_minute": "start fewer, or the rest later",
}
"""What to do where a limit is reached."""
MOST_TOLD: Final = 64
"""Problems of a call that are told: a batch can have thousands."""
SHARES: Final[tuple[Share, ...]] = ("isolated", "handoff", "inherit-readonly")
"""From the narrowest to the widest."""
SHARED: Final = "tools.subagents.memory_share_mode"


@dataclass(frozen=True, slots=True)
class Spawner:
    """Who spawns. ``may`` are the types that it may spawn, ``known`` all there are, with the reason
    why one cannot be used, "" where it can. ``in_run`` and ``in_minute`` count what was spawned,
    ``models`` are those that a spawn may name, ``unattended`` counts runs as in `Limits`."""

    id: str
    may: Collection[str]
    known: Mapping[str, str]
    in_run: int = 0
    in_minute: int = 0
    models: Collection[str] = ()
    unattended: int = 0


def check(
    request: SpawnArguments, tree: Tree, spawner: Spawner, limits: Limits
) -> tuple[Problem, ...]:
    """The problems of a request, in the order of its agents, `MOST_TOLD` of a kind at most; none
    means that it may start."""
    hints = Hints()
    wrong = chain.from_iterable(
        _of_one(request, place, wanted, tree, spawner, hints)
        for place, wanted in enumerate(request.wanted)
    )
    return (
        *_most(wrong),
        *_repeated(request),
        *_model(request, spawner),
        *_limits(request, tree, spawner, limits),
        *_most(_endless(request, tree, spawner)),
    )


def too_wide(share: Share, widest: Share) -> Iterator[Problem]:
    """What is wrong with sharing so much of memory, where the setting allows `widest`."""
    if SHARES.index(share) > SHARES.index(widest):
        rule = f"{share} is wider than {SHARED}, which is {widest}; choose one that is not wider"
        yield Problem("memory_share_mode", rule)


def _most(found: Iterator[Problem]) -> Iterator[Problem]:
    yield from islice(found, MOST_TOLD)
    if next(found, None) is not None:
        yield Problem("agents", "there are more errors; fix these first")


def _of_one(
    request: SpawnArguments,
    place: int,
    wanted: AgentRequest,
    tree: Tree,
    spawner: Spawner,
    hints: "Hints",
) -> Iterator[Problem]:
    where = request.where(place)
    if not wanted.task:
        rule = "say what the agent is to do"
        if not request.agents:
            rule += ", or give a batch in agents"
        yield Problem(f"{where}task", rule)
    yield from _type(where, wanted, spawner, hints)
    if wanted.id is not None and wanted.id in tree.nodes:
        yield Problem(f"{where}id", f"{wanted.id} is taken in this tree: choose another, or none")
    batch = {one.id for one in request.agents if one.id is not None}
    ancestors = {spawner.id, *tree.ancestors(spawner.id)}
    for name in wanted.depends_on:
        if name == wanted.id:
            yield Problem(f"{where}depends_on", f"{name} cannot depend on itself")
        elif name in ancestors:
            rule = f"{name} waits for this agent's work itself, so this would never start"
            yield Problem(f"{where}depends_on", rule)
        elif name not in batch and name not in tree.nodes:
            near = hints.near(name, {*batch, *(one.id for one in tree.live())})
            yield Problem(f"{where}depends_on", f"no agent of this tree is called {name}{near}")


def _type(where: str, wanted: AgentRequest, spawner: Spawner, hints: "Hints") -> Iterator[Problem]:
    field, name = f"{where}type", wanted.type
    if name not in spawner.known:
        yield Problem(field, f"there is no type {name}{hints.near(name, spawner.known)}")
    elif spawner.known[name]:
        yield Problem(field, f"{name} cannot be used: {spawner.known[name]}")
    elif name not in spawner.may:
        allowed = ", ".join(sorted(spawner.may)) or "none"
        yield Problem(field, f"this agent may not spawn {name}; it may spawn: {allowed}")


def _model(request: SpawnArguments, spawner: Spawner) -> Iterator[Problem]:
    name = request.model
    if name is None or name in spawner.models:
        return
    near = Hints().near(name, spawner.models) or f"; there are: {', '.join(sorted(spawner.models))}"
    there = near if spawner.models else "; leave it out"
    yield Problem("model", f"no model {name} is offered here{there}")


@dataclass(slots=True)
class Hints:
    """Names near those that nobody has. To look for one may take a tenth of a second where all are
    long and alike, and a unit of the database waits: so only the first few are looked for."""

    left: int = 5

    def near(self, name: str, known: Collection[str]) -> str:
        """What to put behind a problem with a name."""
        if self.left == 0:
            return ""
        self.left -= 1
        close = get_close_matches(name[:64], sorted(known), n=3, cutoff=0.5)
        return f"; near it: {', '.join(close)}" if close else ""


def _repeated(request: SpawnArguments) -> Iterator[Problem]:
    counts = Counter(one.id for one in request.agents if one.id is not None)
    for name, count in counts.items():
        if count > 1:
            yield Problem("agents", f"the id {name} is given {count} times; each must be different")


def _limits(
    request: SpawnArguments, tree: Tree, spawner: Spawner, limits: Limits
) -> Iterator[Problem]:
    field, more = ("agents" if request.agents else "task"), len(request.wanted)
    if tree.depth(spawner.id) + 1 >= limits.max_depth:
        rule = f"agents.max_depth is {limits.max_depth}, so this agent can have no children"
        yield Problem(field, rule)
    counts = (
        ("spawned_per_run", spawner.in_run, "spawned by this run"),
        ("spawned_per_minute", spawner.in_minute, "spawned in the last minute"),
    )
    rules = (*crowded(tree, spawner.id, limits, more=more), *_beyond(counts, limits, more))
    for rule in (*rules, *attended(spawner.unattended, limits)):
        yield Problem(field, rule)


def crowded(tree: Tree, parent: str, limits: Limits, *, more: int) -> Iterator[str]:
    """Which limits of live agents so many `more` children of one would break, in words."""
    live = tree.live()
    counts = (
        (
            "live_per_parent",
            sum(one.parent == parent for one in live),
            f"live children of {parent}",
        ),
        ("live_per_tree", len(live), "live agents in this tree"),
    )
    return _beyond(counts, limits, more)


def attended(unattended: int, limits: Limits) -> Iterator[str]:
    """What is wrong with going on by oneself, where nobody said anything for so many runs."""
    if unattended > limits.unattended_runs:
        yield (
            f"agents.unattended_runs is {limits.unattended_runs}: results alone began "
            f"{unattended} runs since a person last spoke; say what there is so far, and go on "
            "when a person wants it"
        )


def _beyond(counts: Sequence[tuple[str, int, str]], limits: Limits, more: int) -> Iterator[str]:
    for name, now, what in counts:
        most: int = getattr(limits, name)
        if now + more > most:
            asked = f", and {more} more were asked for" if more else ""
            yield f"agents.{name} is {most}: {now} {what}{asked}; {_CURES[name]}"


def _endless(request: SpawnArguments, tree: Tree, spawner: Spawner) -> Iterator[Problem]:
    """Who would never start or never end. Waits that are wrong by themselves are not looked at,
    because each of them is a problem already."""
    field = "agents" if request.agents else "depends_on"
    batch = _as_nodes(request, tree, spawner)
    grown, names = tree.with_nodes(*batch), [node.id for node in batch]

    @cache
    def waits_for(name: str) -> tuple[str, ...]:
        return grown.waits_for(grown.nodes[name])

    def depends_on(name: str) -> tuple[str, ...]:
        # Also on agents that have finished, for which nobody waits any more.
        if name not in grown.nodes:
            return ()
        return tuple(dict.fromkeys((*grown.nodes[name].depends_on, *waits_for(name))))

    for circle in circles(names, depends_on):
        if not set(names).isdisjoint(circle):
            yield Problem(field, f"these would wait for each other: {' -> '.join(circle)}")

    def waits_above(name: str) -> tuple[str, ...]:
        # Who only waits for another of the batch that never ends is helped when that one is.
        return tuple(other for other in waits_for(name) if other not in names)

    for name in names:
        way = path(waits_above, name, spawner.id)
        if way is not None:
            rule = (
                f"{name} would never end, because it waits for its own ancestor, which ends "
                f"after its children, awaited or not: {' -> '.join((spawner.id, *way))}; spawn it "
                "without its group or dependency"
            )
            yield Problem(field, rule)


def _as_nodes(request: SpawnArguments, tree: Tree, spawner: Spawner) -> tuple[Node, ...]:
    """The batch as agents of the tree. One without an id gets a name that nobody can depend on;
    one whose id another has too gets its place behind it, and stands for the id in the batch."""
    last = max((node.place for node in tree.nodes.values()), default=0)
    counts = Counter(wanted.id for wanted in request.wanted)
    ancestors = {spawner.id, *tree.ancestors(spawner.id)}
    names: list[str] = []
    called: dict[str, list[str]] = {}
    for place, wanted in enumerate(request.wanted):
        name = wanted.id or f"(agent {place + 1})"
        if wanted.id is not None and (counts[wanted.id] > 1 or wanted.id in tree.nodes):
            name = f"{wanted.id} (agent {place + 1})"
        names.append(name)
        called.setdefault(wanted.id or name, []).append(name)
    return tuple(
        Node(
            id=names[place],
            parent=spawner.id,
            depends_on=tuple(
                other
                for needed in wanted.depends_on
                if needed != wanted.id and needed not in ancestors
                for other in called.get(needed, (needed,))
            ),
            group=wanted.group,
            place=last + 1 + place,
        )
        for place, wanted in enumerate(request.wanted)
    )
