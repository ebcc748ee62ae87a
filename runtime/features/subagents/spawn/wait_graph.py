"""Who waits for whom in a tree of agents, and whether one more wait closes a circle (SUB-13).

Three things make an agent wait: an agent whose result it depends on, the members of its group that
were spawned before it, and a child of its own, awaited or not, because each of them runs it again.
A slot is no such thing: whoever waits holds none, so nobody waits for its holder for ever.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Node:
    """An agent as far as waiting goes.

    ``place`` is its number in the order of spawning; ``awaits`` are its live children, because it
    settles after them, also after those in the background. An agent that ``began`` stands behind
    nobody any more, whoever goes on that was in front of it. One that ``settled`` waits for nobody,
    and nobody for it.
    """

    id: str
    parent: str | None = None
    depends_on: tuple[str, ...] = ()
    group: str | None = None
    place: int = 0
    awaits: tuple[str, ...] = ()
    settled: bool = False
    began: bool = False


@dataclass(frozen=True)
class Tree:
    """The agents of one tree by id; the root is the agent without a parent."""

    nodes: Mapping[str, Node] = field(default_factory=dict)

    def ancestors(self, identifier: str) -> tuple[str, ...]:
        """From the parent of an agent up to the root."""
        found: list[str] = []
        parent = self.nodes[identifier].parent if identifier in self.nodes else None
        while parent is not None and parent not in found:
            found.append(parent)
            parent = self.nodes[parent].parent if parent in self.nodes else None
        return tuple(found)

    def depth(self, identifier: str) -> int:
        """0 for the root, 1 for its children."""
        return len(self.ancestors(identifier))

    def live(self) -> Sequence[Node]:
        """The children of the tree that have not settled; the root is nobody's child."""
        return [one for one in self.nodes.values() if one.parent is not None and not one.settled]

    def waits_for(self, node: Node) -> tuple[str, ...]:
        """Whom an agent waits for directly, in a fixed order."""
        if node.settled:
            return ()
        if node.began:
            return tuple(one for one in node.awaits if not self.nodes[one].settled)
        before = [
            other.id
            for other in self.nodes.values()
            if node.group is not None
            and other.group == node.group
            and other.place < node.place
            and not other.settled
        ]
        wanted = (*node.depends_on, *sorted(before), *node.awaits)
        return tuple(one for one in wanted if one in self.nodes and not self.nodes[one].settled)

    def with_nodes(self, *nodes: Node) -> "Tree":
        """The same tree with these agents in it."""
        return Tree({**self.nodes, **{node.id: node for node in nodes}})

    def path(self, start: str, goal: str) -> tuple[str, ...] | None:
        """How `start` comes to wait for `goal`, both included; None where it never does."""
        return path(lambda name: self.waits_for(self.nodes[name]), start, goal)


WaitsFor = Callable[[str], Iterable[str]]
"""Whom an agent waits for directly, by its id."""


def path(waits_for: WaitsFor, start: str, goal: str) -> tuple[str, ...] | None:
    """The shortest way in which `start` comes to wait for `goal`, both included; None where it
    never does."""
    came_from: dict[str, str | None] = {start: None}
    pending = [start]
    while pending:
        here = pending.pop(0)
        for there in waits_for(here):
            if there == goal:
                return (*_steps(came_from, here), goal)
            if there not in came_from:
                came_from[there] = here
                pending.append(there)
    return None


def _steps(came_from: Mapping[str, str | None], end: str) -> tuple[str, ...]:
    steps: list[str] = []
    here: str | None = end
    while here is not None:
        steps.append(here)
        here = came_from[here]
    return tuple(reversed(steps))


def circles(starts: Iterable[str], waits_for: WaitsFor) -> Iterator[tuple[str, ...]]:
    """The circles among those that can be reached from `starts`, each with its first agent named
    again at the end: one for every wait that closes one, so without these waits there is none.

    An agent that waits for itself is a circle of one. The walk is depth first without recursion,
    because a chain may be as long as a tree is large.
    """
    done: set[str] = set()
    trail: dict[str, None] = {}
    left = [iter(starts)]
    while left:
        here = next(left[-1], None)
        if here is None:
            left.pop()
            if trail:
                done.add(trail.popitem()[0])
        elif here in trail:
            steps = tuple(trail)
            yield (*steps[steps.index(here) :], here)
        elif here not in done:
            trail[here] = None
            left.append(iter(waits_for(here)))
