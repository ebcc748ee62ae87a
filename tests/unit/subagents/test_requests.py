"""SUB-5, SUB-13, SUB-14: what a spawn may ask for, every mistake at once, and no circles."""

from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import ValidationError

from runtime.features.subagents.settings import Limits
from runtime.features.subagents.spawn.spawn_arguments import (
    MAX_BATCH,
    AgentRequest,
    Problem,
    SpawnArguments,
)
from runtime.features.subagents.spawn.spawn_requests import MOST_TOLD, Hints, Spawner, check
from runtime.features.subagents.spawn.wait_graph import Node, Tree

TYPES = {"general": "", "explore": "", "plan": "", "broken": "its file has no body"}
ROOT = Node("root")
DEEP = Limits(max_depth=9)


def spawner(identifier: str = "root", **changes: Any) -> Spawner:
    return Spawner(
        identifier, **({"may": ("general", "explore", "plan"), "known": TYPES} | changes)
    )


def one(**fields: Any) -> SpawnArguments:
    mode = fields.pop("mode", "await")
    return SpawnArguments(mode=mode, **({"task": "look"} | fields))


def batch(*agents: AgentRequest, mode: Any = "await") -> SpawnArguments:
    return SpawnArguments(mode=mode, agents=agents)


def agent(identifier: str | None = None, *depends: str, group: str | None = None) -> AgentRequest:
    return AgentRequest(task="look", id=identifier, depends_on=depends, group=group)


def tree(*nodes: Node) -> Tree:
    return Tree({node.id: node for node in (ROOT, *nodes)})


def problems(
    request: SpawnArguments,
    known: Tree | None = None,
    by: Spawner | None = None,
    limits: Limits | None = None,
) -> list[str]:
    found = check(request, known or tree(), by or spawner(), limits or Limits())
    return [str(problem) for problem in found]


@pytest.mark.requirement("SUB-15")
@pytest.mark.parametrize(
    ("offered", "told"),
    [
        (("m:small", "m:large"), "no model m:smal is offered here; near it: m:small"),
        (("x:y",), "no model m:smal is offered here; there are: x:y"),
        ((), "no model m:smal is offered here; leave it out"),
    ],
)
def test_a_model_is_one_of_those_that_are_offered(offered: Sequence[str], told: str) -> None:
    by = spawner(models=offered)
    (found,) = problems(one().model_copy(update={"model": "m:smal"}), by=by)
    assert found.startswith(f"model: {told}")
    for name in (*offered, None):
        assert problems(one().model_copy(update={"model": name}), by=by) == []


@pytest.mark.requirement("SUB-5")
def test_what_is_right_has_no_problems() -> None:
    assert problems(one()) == []
    wide = batch(agent("a"), agent("b", "a", group="g"), agent(None, "a", "b"), mode="background")
    assert problems(wide) == []


@pytest.mark.requirement("SUB-5")
@pytest.mark.parametrize("task", ["", "  \n"])
def test_neither_task_nor_agents(task: str) -> None:
    assert problems(one(task=task)) == [
        "task: say what the agent is to do, or give a batch in agents"
    ]
    assert problems(batch(agent("a"), AgentRequest(task=task))) == [
        "agents[1].task: say what the agent is to do"
    ]


@pytest.mark.requirement("SUB-5")
def test_a_type_that_is_not_there_names_those_near_it() -> None:
    assert problems(one(type="exploer")) == ["type: there is no type exploer; near it: explore"]
    assert problems(one(type="zzz")) == ["type: there is no type zzz"]


@pytest.mark.requirement("SUB-5", "SUB-2")
def test_a_type_whose_definition_is_broken_says_why() -> None:
    assert problems(one(type="broken")) == ["type: broken cannot be used: its file has no body"]


@pytest.mark.requirement("SUB-5", "SUB-1")
def test_a_type_that_this_agent_may_not_spawn() -> None:
    by = spawner(may=("explore",))
    assert problems(one(type="general"), by=by) == [
        "type: this agent may not spawn general; it may spawn: explore"
    ]


@pytest.mark.requirement("SUB-5")
def test_an_id_is_taken_for_good() -> None:
    taken = tree(Node("a", parent="root", settled=True))
    assert problems(one(id="a"), taken) == ["id: a is taken in this tree: choose another, or none"]


@pytest.mark.requirement("SUB-5")
def test_the_same_id_twice_in_a_batch() -> None:
    assert problems(batch(agent("a"), agent("b"), agent("a"))) == [
        "agents: the id a is given 2 times; each must be different"
    ]


@pytest.mark.requirement("SUB-5")
def test_a_dependency_that_nobody_is() -> None:
    known = tree(Node("reader", parent="root"))
    assert problems(one(depends_on=("raeder",)), known) == [
        "depends_on: no agent of this tree is called raeder; near it: reader"
    ]


@pytest.mark.requirement("SUB-5")
def test_of_thousands_of_problems_some_are_told_and_few_are_looked_into() -> None:
    """A look for near names takes long where all are long and alike."""
    names = [f"{'a' * 40}{place:04d}" for place in range(MAX_BATCH * MAX_BATCH)]
    asked = batch(
        *(
            agent(f"b{place}", *names[place * MAX_BATCH : (place + 1) * MAX_BATCH])
            for place in range(MAX_BATCH)
        )
    )
    known = tree(*(Node(f"{'a' * 40}x{place}", parent="root", settled=False) for place in (1, 2)))
    found = [one for one in problems(asked, known) if "depends_on" in one]
    assert len(found) == MOST_TOLD
    assert sum("; near it: " in one for one in found) == Hints().left
    assert "agents: there are more errors; fix these first" in problems(asked, known)


@pytest.mark.requirement("SUB-5")
def test_dependencies_on_what_comes_later_in_a_batch_and_on_what_has_ended() -> None:
    known = tree(Node("done", parent="root", settled=True))
    assert problems(batch(agent("a", "b", "done"), agent("b")), known) == []


@pytest.mark.requirement("SUB-5")
def test_nobody_depends_on_itself() -> None:
    assert problems(one(id="a", depends_on=("a",))) == ["depends_on: a cannot depend on itself"]


@pytest.mark.requirement("SUB-5")
def test_a_circle_is_named() -> None:
    circle = batch(agent("a", "b"), agent("b", "c"), agent("c", "a"), mode="background")
    assert problems(circle) == ["agents: these would wait for each other: a -> b -> c -> a"]


@pytest.mark.requirement("SUB-12", "SUB-13")
@pytest.mark.parametrize("mode", ["await", "background"])
def test_a_member_that_depends_on_a_later_one_of_its_group(mode: str) -> None:
    turned = batch(agent("a", "b", group="g"), agent("b", group="g"), mode=mode)
    assert problems(turned) == ["agents: these would wait for each other: a -> b -> a"]
    right = batch(agent("a", group="g"), agent("b", "a", group="g"), mode=mode)
    assert problems(right) == []


@pytest.mark.requirement("SUB-5")
def test_a_circle_over_an_agent_that_has_finished() -> None:
    known = tree(Node("old", parent="root", depends_on=("new",), settled=True))
    assert problems(batch(agent("new", "old")), known) == [
        "agents: these would wait for each other: new -> old -> new"
    ]


@pytest.mark.requirement("SUB-5")
def test_all_problems_come_at_once() -> None:
    wrong = batch(
        AgentRequest(type="nobody", id="a"),
        agent("a", "missing"),
        agent("root"),
    )
    assert {problem.split(":")[0] for problem in problems(wrong)} == {
        "agents[0].task",
        "agents[0].type",
        "agents[1].depends_on",
        "agents[2].id",
        "agents",
    }


@pytest.mark.requirement("SUB-5")
@pytest.mark.parametrize(
    "other",
    [
        AgentRequest(task="look", type="nobody"),
        AgentRequest(),
        agent("taken"),
        agent("x", "missing"),
        agent("x", "x"),
        agent("x", "root"),
    ],
)
def test_a_circle_is_named_beside_every_other_problem(other: AgentRequest) -> None:
    known = tree(Node("taken", parent="root"))
    (wrong,) = problems(batch(other), known)
    found = problems(batch(agent("a", "b"), agent("b", "a"), other), known)
    assert found == [
        wrong.replace("agents[0]", "agents[2]"),
        "agents: these would wait for each other: a -> b -> a",
    ]


@pytest.mark.requirement("SUB-5")
def test_each_circle_of_a_batch_is_named_and_no_more_than_can_be_read() -> None:
    apart = batch(agent("a", "b"), agent("b", "a"), agent("c", "d"), agent("d", "c", "a"))
    assert problems(apart) == [
        "agents: these would wait for each other: a -> b -> a",
        "agents: these would wait for each other: c -> d -> c",
    ]
    names = [f"a{place}" for place in range(MAX_BATCH)]
    found = problems(batch(*(agent(name, *names) for name in names)))
    assert sum("wait for each other" in one for one in found) == MOST_TOLD
    assert found[-1] == "agents: there are more errors; fix these first"


@pytest.mark.requirement("SUB-5")
def test_a_circle_of_ids_that_are_taken_or_given_twice() -> None:
    """The tree's own agents of that name wait for nobody of the batch."""
    known = tree(Node("a", parent="root"), Node("c", parent="root", depends_on=("a",)))
    taken = problems(batch(agent("a", "b", "c"), agent("b", "a")), known)
    assert taken == [
        "agents[0].id: a is taken in this tree: choose another, or none",
        "agents: these would wait for each other: a (agent 1) -> b -> a (agent 1)",
    ]
    twice = problems(batch(agent("a"), agent("a", "b"), agent("b", "a")))
    assert twice == [
        "agents: the id a is given 2 times; each must be different",
        "agents: these would wait for each other: a (agent 2) -> b -> a (agent 2)",
    ]


@pytest.mark.requirement("SUB-5", "SUB-13")
def test_each_wait_for_an_ancestor_is_told_with_the_circles() -> None:
    known = tree(Node("a", parent="root", group="g", place=1))
    asked = batch(
        agent("x", group="g"),
        agent("y", "x"),
        agent("z", group="g"),
        agent("o", "p", "nobody"),
        agent("p", "o"),
    )
    found = problems(asked, known, spawner("a"))
    assert [one.split(" because ")[0] for one in found] == [
        "agents[3].depends_on: no agent of this tree is called nobody",
        "agents: these would wait for each other: o -> p -> o",
        "agents: x would never end,",
        "agents: z would never end,",
    ]


@pytest.mark.requirement("SUB-13")
def test_a_dependency_on_an_ancestor_is_refused_in_every_mode() -> None:
    known = tree(Node("a", parent="root"), Node("b", parent="a"))
    for mode in ("await", "background"):
        for name in ("root", "a", "b"):
            (found,) = problems(one(depends_on=(name,), mode=mode), known, spawner("b"), DEEP)
            assert found.startswith(f"depends_on: {name} waits for this agent's work itself")


@pytest.mark.requirement("SUB-13")
@pytest.mark.parametrize("mode", ["await", "background"])
def test_a_group_member_that_has_a_child_of_its_own_group(mode: str) -> None:
    known = tree(Node("a", parent="root", group="g", place=1))
    (found,) = problems(one(group="g", mode=mode), known, spawner("a"))
    assert "a -> (agent 1) -> a" in found
    assert problems(one(group="h", mode=mode), known, spawner("a")) == []


@pytest.mark.requirement("SUB-13")
@pytest.mark.parametrize("mode", ["await", "background"])
def test_a_wait_for_an_ancestor_over_three_corners(mode: str) -> None:
    known = tree(
        Node("a", parent="root", group="g", place=1, awaits=("b",)),
        Node("b", parent="a", place=2),
        Node("queued", parent="root", group="g", place=3),
    )
    (found,) = problems(one(depends_on=("queued",), mode=mode), known, spawner("b"), DEEP)
    assert "b -> (agent 1) -> queued -> a -> b" in found


@pytest.mark.requirement("SUB-13")
def test_an_awaited_child_may_depend_on_a_queued_sibling() -> None:
    known = tree(Node("queued", parent="root", place=1))
    assert problems(one(depends_on=("queued",)), known) == []


@pytest.mark.requirement("SUB-14")
def test_the_last_depth_has_no_children() -> None:
    known = tree(Node("a", parent="root"), Node("b", parent="a"))
    assert problems(one(), known, spawner("a")) == []
    assert problems(one(), known, spawner("b")) == [
        "task: agents.max_depth is 3, so this agent can have no children"
    ]


@pytest.mark.requirement("SUB-14")
@pytest.mark.parametrize(
    ("limits", "by", "what"),
    [
        (Limits(live_per_parent=3), {}, "live_per_parent is 3: 2 live children of root, and 2"),
        (Limits(live_per_tree=4), {}, "live_per_tree is 4: 3 live agents in this tree, and 2"),
        (Limits(spawned_per_run=5), {"in_run": 4}, "spawned_per_run is 5: 4 spawned by this run"),
        (
            Limits(spawned_per_minute=9),
            {"in_minute": 8},
            "spawned_per_minute is 9: 8 spawned in the last minute",
        ),
    ],
)
def test_each_limit_says_its_name_and_its_number(limits: Limits, by: Any, what: str) -> None:
    known = tree(
        Node("a", parent="root"),
        Node("b", parent="root"),
        Node("c", parent="a"),
        Node("gone", parent="root", settled=True),
    )
    (found,) = problems(batch(agent(), agent()), known, spawner(**by), limits)
    assert what in found
    assert "; start fewer, " in found, "and what to do"
    fewer = [str(one) for one in check(one(), known, spawner(**by), limits)]
    assert fewer == []


@pytest.mark.requirement("SUB-14")
def test_who_goes_on_by_itself_for_long_starts_nobody_more() -> None:
    limits = Limits(unattended_runs=2)
    assert problems(one(), tree(), spawner(unattended=2), limits) == []
    (found,) = problems(one(), tree(), spawner(unattended=3), limits)
    assert "agents.unattended_runs is 2: results alone began 3 runs since a person" in found


@pytest.mark.requirement("SUB-14")
def test_a_storm_is_refused_whole() -> None:
    with pytest.raises(ValidationError, match="at most 64 items"):
        SpawnArguments(agents=tuple(agent() for _ in range(1000)))
    many = batch(*(agent() for _ in range(64)))
    assert {problem.split(" is ")[0] for problem in problems(many)} == {
        "agents: agents.live_per_parent",
        "agents: agents.live_per_tree",
        "agents: agents.spawned_per_run",
        "agents: agents.spawned_per_minute",
    }


@pytest.mark.requirement("SUB-5")
@pytest.mark.parametrize("name", ["", "a b", "../a", "a" * 65, "-a", "a\nb", "<b>"])
def test_names_are_plain(name: str) -> None:
    with pytest.raises(ValidationError, match="id"):
        AgentRequest(task="look", id=name)


def test_a_problem_reads_as_a_sentence() -> None:
    assert str(Problem("task", "say what")) == "task: say what"


def _names(found: Sequence[Problem]) -> list[str]:
    return [problem.field for problem in found]


@pytest.mark.requirement("SUB-5")
def test_a_batch_takes_the_place_of_the_single_task() -> None:
    request = SpawnArguments(task="", type="nobody", agents=(agent(),))
    assert _names(check(request, tree(), spawner(), Limits())) == []
