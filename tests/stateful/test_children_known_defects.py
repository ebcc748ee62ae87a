"""Plays of children that hung, leaked or lost something in other systems, or once did here."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TypeVar

import pytest

from runtime.domain.people import Trust
from runtime.domain.runs import RunState
from runtime.features.subagents.rows import agents
from runtime.features.subagents.rows.agents import HELD
from runtime.sessions.queue_modes import Enqueued, enqueue
from runtime.sessions.unit import Unit
from tests.contract.store_support import schema_templates
from tests.stateful.bench import inbound, speaker
from tests.stateful.children_bench import agent, spawning
from tests.stateful.children_play import ChildrenPlay
from tests.stateful.children_work import REFUSED
from tests.stateful.snapshot import result_of
from tests.stateful.units import SqliteUnits
from tests.support.kinds import unit_of

__all__ = ["schema_templates"]

MODES = pytest.mark.parametrize("mode", ["await", "background"])


class Play(ChildrenPlay):
    """One play, told by the names of the agents."""

    def session(self, name: str) -> str:
        (found,) = [one for one, row in self.now.agents.items() if row["name"] == name]
        return found

    def at_work_on(self, session: str) -> str:
        """The run that the worker has of a session."""
        (found,) = [row["id"] for row in self.at_work() if row["session_id"] == session]
        return str(found)

    def names_at_work(self) -> set[str]:
        sessions = {row["session_id"] for row in self.at_work()}
        return {str(row["name"]) for one, row in self.now.agents.items() if one in sessions}

    def child_ends(self, name: str, end: RunState = RunState.COMPLETED) -> None:
        self.ends(self.at_work_on(self.session(name)), end)

    def statuses(self) -> dict[str, str | None]:
        return {row["name"]: row["status"] for row in self.now.agents.values()}

    def last_result(self, run_id: str) -> str:
        """What the last call of a run gave."""
        step = self.now.all.run[run_id]["step"]
        found = result_of(self.now.all.calls_of[run_id, step][-1])
        assert found is not None
        return str(found["content"])


PlayT = TypeVar("PlayT", bound=Play)


@contextmanager
def beginning(
    kind: Callable[[SqliteUnits, int], PlayT], template: Path, folder: Path
) -> Iterator[Callable[[int], tuple[PlayT, str, str]]]:
    """Plays of a kind, with so many slots each: the root's session, and its run, which is at
    work."""
    numbers, made = count(), list[PlayT]()

    def begin(most: int) -> tuple[PlayT, str, str]:
        at = kind(SqliteUnits(template, folder / f"{next(numbers)}.db"), most)
        made.append(at)
        root = at.asks(0)
        at.claims(1)
        return at, root, at.at_work_on(root)

    yield begin
    for one in made:
        one.units.close()


@pytest.fixture
def play(
    schema_templates: Callable[[str], str], tmp_path: Path
) -> Iterator[Callable[[int], tuple[Play, str, str]]]:
    """See `beginning`."""
    with beginning(Play, Path(schema_templates("sqlite")), tmp_path) as begin:
        yield begin


Begin = Callable[[int], tuple[Play, str, str]]


@pytest.mark.requirement("SUB-11", "SUB-13")
def test_an_awaited_child_depends_on_a_queued_background_sibling_with_all_slots_taken(
    play: Begin,
) -> None:
    at, _, root = play(1)
    at.spawns(root, spawning(agent("a"), agent("b"), mode="background"))
    at.turns()
    assert at.names_at_work() == {"a"}
    at.spawns(root, spawning(agent("c", "b"), mode="await"))
    at.turns()
    at.starts_too_early()
    assert at.names_at_work() == {"a"}, "b and c wait, and neither holds what a has"
    at.child_ends("a")
    at.turns()
    assert at.names_at_work() == {"b"}
    at.child_ends("b")
    at.turns()
    assert at.names_at_work() == {"c"}
    at.rests()
    assert at.statuses() == dict.fromkeys("abc", "completed")


@pytest.mark.requirement("SUB-7", "SUB-13", "SUB-23")
def test_awaits_three_deep_with_all_slots_taken(play: Begin) -> None:
    at, _, run = play(1)
    for name in "abc":
        at.spawns(run, spawning(agent(name), mode="await"))
        at.turns()
        assert at.names_at_work() == {name}, "who awaits gave its slot away"
        run = at.at_work_on(at.session(name))
    at.dies()
    at.rests()
    assert at.statuses() == dict.fromkeys("abc", "completed")


@pytest.mark.requirement("SUB-12", "SUB-13")
@MODES
def test_a_group_member_that_waits_for_a_child_of_its_own_group_is_refused(
    play: Begin, mode: str
) -> None:
    """In the background as well: it settles after its children, and they come after it."""
    at, _, root = play(2)
    at.spawns(root, spawning(agent("a", group="g"), mode="background"))
    at.turns()
    run = at.at_work_on(at.session("a"))
    at.spawns(run, spawning(agent("b", group="g"), mode=mode))
    assert at.last_result(run).startswith(REFUSED)
    assert "b -> a" in at.last_result(run)
    at.spawns(run, spawning(agent("c", group="h"), mode=mode))
    assert at.statuses().keys() == {"a", "c"}
    at.rests()


@pytest.mark.requirement("SUB-13")
@MODES
def test_a_dependency_on_an_ancestor_is_refused(play: Begin, mode: str) -> None:
    at, _, run = play(1)
    for name in "ab":
        at.spawns(run, spawning(agent(name), mode="await"))
        at.turns()
        run = at.at_work_on(at.session(name))
    for ancestor in ("root", "a", "b"):
        at.spawns(run, spawning(agent("c", ancestor), mode=mode))
        assert "this would never start" in at.last_result(run)
    assert at.statuses().keys() == {"a", "b"}
    at.rests()


@pytest.mark.requirement("SUB-11", "SUB-13")
@MODES
def test_a_child_of_a_needed_agent_cannot_need_who_needs_its_parent(play: Begin, mode: str) -> None:
    at, _, root = play(2)
    at.spawns(root, spawning(agent("a"), agent("b", "a"), mode="background"))
    at.turns()
    run = at.at_work_on(at.session("a"))
    at.spawns(run, spawning(agent("c", "b"), mode=mode))
    assert "c -> b -> a" in at.last_result(run)
    at.rests()
    assert at.statuses() == dict.fromkeys("ab", "completed")


@pytest.mark.requirement("SUB-13")
@MODES
def test_two_agents_whose_children_need_the_other_agent(play: Begin, mode: str) -> None:
    """The first is let through, and the second would wait for it from the other side."""
    at, _, root = play(2)
    at.spawns(root, spawning(agent("a"), agent("b"), mode="background"))
    at.turns()
    first, second = at.at_work_on(at.session("a")), at.at_work_on(at.session("b"))
    at.spawns(first, spawning(agent("c", "b"), mode="background"))
    at.spawns(second, spawning(agent("d", "a"), mode=mode))
    assert "b -> d -> a -> c -> b" in at.last_result(second)
    at.rests()
    assert at.statuses() == dict.fromkeys("abc", "completed")


@pytest.mark.requirement("SUB-11")
def test_a_failure_goes_down_the_graph_and_stops_where_one_may_go_on(play: Begin) -> None:
    at, _, root = play(3)
    at.spawns(root, spawning(agent("a"), agent("b", "a"), agent("c", "b"), mode="background"))
    at.spawns(root, spawning(agent("d", "b"), mode="background", on_dependency_failure="continue"))
    at.turns()
    at.child_ends("a", RunState.FAILED)
    while at.starts():
        pass
    assert at.statuses() == {"a": "failed", "b": "failed", "c": "failed", "d": None}
    assert not at.now.began(at.session("b"))
    at.rests()
    assert at.statuses()["d"] == "completed"


@pytest.mark.requirement("SUB-12")
def test_a_group_goes_on_one_by_one_while_another_does_too(play: Begin) -> None:
    at, _, root = play(3)
    wanted = [agent(f"{group}{place}", group=group) for group in "gh" for place in (1, 2)]
    at.spawns(root, spawning(*wanted, mode="background"))
    at.turns()
    assert at.names_at_work() == {"g1", "h1"}
    at.child_ends("h1", RunState.FAILED)
    at.turns()
    assert at.names_at_work() == {"g1", "h2"}
    at.rests()


@pytest.mark.requirement("SUB-19", "SUB-13")
def test_a_stop_reaches_who_runs_waits_is_held_or_wants_a_slot(play: Begin) -> None:
    at, session, root = play(1)
    at.spawns(root, spawning(agent("a"), agent("b"), agent("c", "b"), mode="background"))
    at.turns()
    run = at.at_work_on(at.session("a"))
    at.spawns(run, spawning(agent("d"), mode="await"))
    at.starts()
    at.grants()
    at.claims(1)
    at.stops(session)
    assert len(at.doomed) == 4
    at.rests()
    assert at.statuses() == dict.fromkeys("abcd", "cancelled")
    assert not [row for row in at.now.all.inputs if row["identity"].startswith("handoff")]


@pytest.mark.requirement("SUB-19")
@pytest.mark.parametrize("end", [RunState.CANCELLED, RunState.COMPLETED])
@pytest.mark.parametrize("whole", [True, False])
def test_a_stopped_child_whose_own_children_are_at_work_settles(
    play: Begin, end: RunState, whole: bool
) -> None:
    """Also where it had said its last word before it heard that it is to end."""
    at, _, root = play(2)
    at.spawns(root, spawning(agent("a"), mode="await"))
    at.turns()
    run = at.at_work_on(at.session("a"))
    at.spawns(run, spawning(agent("b"), mode="background"))
    at.turns()
    if whole:
        at.stops(at.session("a"))
    else:
        at.stops_run(run)
    at.ends(run, end)
    at.rests()
    assert at.statuses()["b"] == "cancelled"


@pytest.mark.requirement("SUB-19")
def test_a_stopped_child_that_was_to_hear_of_its_own_settles(play: Begin) -> None:
    at, _, root = play(2)
    at.spawns(root, spawning(agent("a"), mode="await"))
    at.turns()
    at.spawns(at.at_work_on(at.session("a")), spawning(agent("b"), mode="background"))
    at.turns()
    at.child_ends("a")
    assert at.statuses() == {"a": None, "b": None}, "it is run again when its child has settled"
    at.stops(at.session("a"))
    at.rests()
    assert at.statuses() == {"a": "cancelled", "b": "cancelled"}


@pytest.mark.requirement("SUB-19")
@pytest.mark.parametrize("waits", [True, False])
def test_what_a_stopped_child_had_not_heard_is_not_run(play: Begin, waits: bool) -> None:
    at, session, root = play(3)
    at.spawns(root, spawning(agent("a"), mode="background"))
    at.turns()
    run = at.at_work_on(at.session("a"))
    at.spawns(run, spawning(agent("b"), mode="background"))
    if waits:
        at.spawns(run, spawning(agent("c"), mode="await"))
    at.turns()
    at.child_ends("b")
    assert at.now.all.run[run]["steered"], "a has a handoff that it has not heard"
    at.stops(session)
    at.rests()
    assert at.statuses()["a"] == "cancelled"


@pytest.mark.requirement("SUB-19", "SUB-8")
def test_a_child_that_was_stopped_by_itself_tells_no_parent_that_was_stopped_after_it(
    play: Begin,
) -> None:
    at, _, root = play(3)
    at.spawns(root, spawning(agent("a"), mode="background"))
    at.turns()
    at.spawns(at.at_work_on(at.session("a")), spawning(agent("b"), mode="background"))
    at.turns()
    b = at.session("b")
    assert at.run(lambda conn: agents.ask_to_stop(conn, b, "enough"))
    at.child_ends("a", RunState.FAILED)
    at.rests()
    assert at.statuses() == {"a": "failed", "b": "cancelled"}


@pytest.mark.requirement("SUB-8", "SUB-23")
def test_a_child_whose_parent_answered_is_handed_over_to_a_new_run_once(play: Begin) -> None:
    at, session, root = play(1)
    at.spawns(root, spawning(agent("a"), agent("b", "a"), mode="background"))
    at.ends(root, RunState.COMPLETED)
    assert {at.now.lane[one]["gate"] for one in at.now.agents} == {HELD}
    at.rests()
    told = [row for row in at.now.all.inputs if row["identity"].startswith("handoff")]
    assert [row["session_id"] for row in told] == [session, session]


@pytest.mark.requirement("SUB-13", "SUB-19")
def test_a_run_that_is_stopped_behind_another_takes_no_slot_from_it(play: Begin) -> None:
    at, _, root = play(1)
    at.spawns(root, spawning(agent("a"), agent("b"), mode="background"))
    at.turns()
    a = at.session("a")

    def say(unit: Unit) -> str:
        lane = unit.lane(a)
        queued = enqueue(
            unit, lane, inbound(0, 99), speaker(Trust.OWNER), queue_mode="followup", debounce_ms=0
        )
        assert isinstance(queued, Enqueued)
        return queued.run_id

    behind = at.run(unit_of(say))
    at.holds()
    at.stops_run(behind)
    at.turns()
    assert at.names_at_work() == {"a"}
    at.rests()
    assert at.statuses() == dict.fromkeys("ab", "completed")
