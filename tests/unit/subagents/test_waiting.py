"""SUB-13: whatever is accepted by the rules comes to an end, in whatever order it is run."""

import itertools
import random
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.features.subagents.settings import Limits
from runtime.features.subagents.spawn.spawn_arguments import AgentRequest, SpawnArguments
from runtime.features.subagents.spawn.spawn_requests import Spawner, check
from runtime.features.subagents.spawn.wait_graph import Node, Tree, circles
from tests.support.profiles import examples

pytestmark = pytest.mark.requirement("SUB-13")
TYPES = {"explore": ""}
WIDE = Limits(5, 100, 100, 100, 1000)


@dataclass
class Town:
    """Agents that run on so many slots; what happens next is drawn."""

    draw: random.Random
    slots: int
    tree: Tree = field(default_factory=lambda: Tree({"root": Node("root")}))
    running: set[str] = field(default_factory=lambda: {"root"})
    refused: int = 0

    def spawn(self, by: str) -> None:
        """Ask for one to three agents with drawn dependencies and groups, as a model would."""
        names = [f"n{len(self.tree.nodes) + place}" for place in range(self.draw.randint(1, 3))]
        known = [*self.tree.nodes, *names]
        agents = tuple(
            AgentRequest(
                task="look",
                id=name,
                depends_on=tuple(self.draw.sample(known, self.draw.choice([0, 0, 1, 2]))),
                group=self.draw.choice([None, None, "g", "h"]),
            )
            for name in names
        )
        mode = self.draw.choice(["await", "background"])
        request = SpawnArguments(mode=mode, agents=agents)
        spawner = Spawner(by, tuple(TYPES), TYPES)
        if check(request, self.tree, spawner, WIDE):
            self.refused += 1
            return
        last = max(node.place for node in self.tree.nodes.values())
        made = [
            Node(one.id or "", by, one.depends_on, one.group, last + 1 + place)
            for place, one in enumerate(agents)
        ]
        parent = self.tree.nodes[by]
        parent = replace(parent, awaits=(*parent.awaits, *(node.id for node in made)))
        if mode == "await":
            self.running.discard(by)
        self.tree = self.tree.with_nodes(parent, *made)

    def settle(self, name: str) -> None:
        """It says its last word; with children at work it is run again after them."""
        self.running.discard(name)
        node = self.tree.nodes[name]
        if all(self.tree.nodes[one].settled for one in node.awaits):
            self.tree = self.tree.with_nodes(replace(node, settled=True))

    def startable(self) -> list[str]:
        """Who waits for nobody and found a slot; a person's own turn takes none."""
        taken = len(self.running - {"root"})
        found = []
        for node in self.tree.nodes.values():
            waits = node.settled or node.id in self.running or self.tree.waits_for(node)
            if not waits and (node.id == "root" or taken < self.slots):
                found.append(node.id)
        return found

    def step(self, *, spawning: bool) -> bool:
        """One thing that can happen; False when nothing can."""
        moves = [("start", name) for name in self.startable()]
        moves += [("settle", name) for name in sorted(self.running)]
        if spawning:
            moves += [("spawn", name) for name in sorted(self.running)]
        if not moves:
            return False
        move, name = self.draw.choice(moves)
        if move == "start":
            self.running.add(name)
        elif move == "settle":
            self.settle(name)
        else:
            self.spawn(name)
        return True


@examples(75)
@given(seed=st.integers(0, 2**32), slots=st.integers(1, 3), steps=st.integers(1, 60))
def test_what_was_accepted_always_ends(seed: int, slots: int, steps: int) -> None:
    town = Town(random.Random(seed), slots)
    for _ in range(steps):
        if len(town.tree.nodes) > 30 or not town.step(spawning=True):
            break
    while town.step(spawning=False):
        pass
    stuck = [node for node in town.tree.nodes.values() if not node.settled]
    assert stuck == []


def test_the_town_would_hang_without_the_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is asked for at random does need refusing: else the test above shows nothing."""
    monkeypatch.setattr(f"{__name__}.check", lambda *_: ())
    hung = 0
    for seed in range(200):
        town = Town(random.Random(seed), 1)
        for _ in range(40):
            if len(town.tree.nodes) > 30 or not town.step(spawning=True):
                break
        while town.step(spawning=False):
            pass
        hung += any(not node.settled for node in town.tree.nodes.values())
    assert hung > 20


def test_awaits_three_deep_with_one_slot() -> None:
    nodes = {"root": Node("root", awaits=("a",))}
    for parent, name in (("root", "a"), ("a", "b"), ("b", "c")):
        nodes[name] = Node(name, parent, awaits=(chr(ord(name) + 1),) if name != "c" else ())
    tree = Tree(nodes)
    assert tree.path("root", "c") == ("root", "a", "b", "c")
    assert tree.path("c", "root") is None
    assert tree.depth("c") == 3
    assert tree.ancestors("c") == ("b", "a", "root")


def test_a_member_waits_for_those_before_it_only() -> None:
    tree = Tree(
        {
            "root": Node("root"),
            "a": Node("a", "root", group="g", place=1),
            "b": Node("b", "root", group="g", place=2),
            "c": Node("c", "root", group="h", place=3),
        }
    )
    assert tree.waits_for(tree.nodes["a"]) == ()
    assert tree.waits_for(tree.nodes["b"]) == ("a",)
    assert tree.waits_for(tree.nodes["c"]) == ()


def test_the_settled_are_waited_for_by_nobody() -> None:
    tree = Tree({"a": Node("a", settled=True), "b": Node("b", "a", depends_on=("a",))})
    assert tree.waits_for(tree.nodes["b"]) == ()
    assert [node.id for node in tree.live()] == ["b"]


def closed(graph: dict[str, list[str]]) -> list[tuple[str, ...]]:
    return list(circles(graph, lambda name: graph.get(name, ())))


@given(
    st.dictionaries(
        st.sampled_from("abcdef"), st.lists(st.sampled_from("abcdef"), max_size=3), max_size=6
    )
)
def test_without_the_last_wait_of_each_circle_there_is_none(graph: dict[str, list[str]]) -> None:
    found = closed(graph)
    left = {name: set(wants) for name, wants in graph.items()}
    for circle in found:
        assert circle[0] == circle[-1]
        assert all(there in graph[here] for here, there in itertools.pairwise(circle))
        left[circle[-2]].discard(circle[-1])
    while left:
        free = [name for name, wants in left.items() if not set(wants) & set(left)]
        assert free, "every order of a graph without circles has somebody who can begin"
        for name in free:
            del left[name]


@given(st.permutations("abcdef"), st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5))))
def test_where_nobody_waits_in_a_circle_none_is_found(
    order: list[str], waits: set[tuple[int, int]]
) -> None:
    graph = {name: [order[b] for a, b in waits if order[a] == name and b > a] for name in order}
    assert closed(graph) == []


def test_a_chain_as_long_as_a_tree_is_no_problem() -> None:
    assert closed({str(n): [str(n + 1)] for n in range(20_000)}) == []
    assert closed({"0": ["1"], "1": ["1"]}) == [("1", "1")]


def test_two_circles_are_two() -> None:
    graph = {"a": ["b"], "b": ["a", "c"], "c": ["b", "d"], "d": []}
    assert closed(graph) == [("a", "b", "a"), ("b", "c", "b")]
