"""Agents that settled and go on by a message: what bounds live ones holds of them too (SUB-24)."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from runtime.domain.errors import Conflict
from runtime.domain.people import Trust
from runtime.domain.runs import RunState
from runtime.features.subagents.agent_messages import How
from runtime.features.subagents.settings import Limits
from runtime.sessions import run_stop, runs
from tests.contract.store_support import schema_templates
from tests.stateful.arriving import deliver
from tests.stateful.children_bench import LIMITS, agent, spawning, within
from tests.stateful.children_work import REFUSED
from tests.stateful.test_children_known_defects import Play, beginning
from tests.support.kinds import unit_of

__all__ = ["schema_templates"]


class Talk(Play):
    """A play in which runs speak to agents by their names."""

    def tells(self, run_id: str, name: str, *, limits: Limits = LIMITS) -> How:
        return self.says(run_id, self.session(name), limits=limits)

    def is_refused(self, run_id: str, name: str, why: str, *, limits: Limits = LIMITS) -> None:
        """It stays as it is."""
        before = self.statuses()
        with pytest.raises(Conflict, match=why):
            self.tells(run_id, name, limits=limits)
        self.holds()
        assert self.statuses() == before

    def stops_one(self, name: str) -> None:
        """One agent alone, with all below it."""
        session = self.session(name)
        self.run(
            unit_of(lambda unit: run_stop.stop_session(unit, session, by="Ada", reason="stop"))
        )
        while self.ends_stopped():
            pass

    def handoffs_of(self, name: str) -> int:
        start = f"handoff:{self.session(name)}:"
        return sum(row["identity"].startswith(start) for row in self.now.all.inputs)


@pytest.fixture
def play(
    schema_templates: Callable[[str], str], tmp_path: Path
) -> Iterator[Callable[[int], tuple[Talk, str, str]]]:
    """See `beginning`."""
    with beginning(Talk, Path(schema_templates("sqlite")), tmp_path) as begin:
        yield begin


Begin = Callable[[int], tuple[Talk, str, str]]


@pytest.mark.requirement("SUB-13", "SUB-24")
def test_who_would_wait_for_itself_does_not_go_on(play: Begin) -> None:
    """It never began. While it was settled, one that it waits for came to wait for its parent."""
    at, _, root = play(5)
    at.spawns(root, spawning(agent("p"), agent("d"), mode="background"))
    at.turns()
    at.spawns(at.at_work_on(at.session("p")), spawning(agent("x", "d"), mode="background"))
    at.stops_one("x")
    at.spawns(at.at_work_on(at.session("d")), spawning(agent("y", "p"), mode="background"))
    assert at.statuses() == {"p": None, "d": None, "x": "cancelled", "y": None}
    at.is_refused(root, "x", "x -> d -> y -> p -> x")
    at.rests()


@pytest.mark.requirement("SUB-13", "SUB-24")
def test_who_began_waits_for_nobody_that_goes_on_again(play: Begin) -> None:
    """A spawn is not refused for a wait that is over."""
    at, _, root = play(5)
    at.spawns(root, spawning(agent("a"), agent("b", "a"), mode="background"))
    at.turns()
    at.child_ends("a")
    at.turns()
    assert at.tells(root, "a") == "continued"
    at.turns()
    run = at.at_work_on(at.session("a"))
    at.spawns(run, spawning(agent("c", "b"), mode="background"))
    assert at.last_result(run) != REFUSED
    assert at.statuses() == dict.fromkeys("abc")
    at.ends(run, RunState.COMPLETED)
    at.child_ends("b")
    at.turns()
    assert at.names_at_work() == {"c"}


@pytest.mark.requirement("SUB-12", "SUB-24")
def test_one_of_a_group_does_not_go_on_beside_another(play: Begin) -> None:
    at, _, root = play(5)
    at.spawns(
        root,
        spawning(agent("d"), agent("e", "d", group="g"), agent("l", group="g"), mode="background"),
    )
    at.turns()
    at.stops_one("e")
    at.turns()
    assert at.names_at_work() == {"d", "l"}
    at.is_refused(root, "e", "l of its group is at work")
    at.child_ends("l")
    assert at.tells(root, "e") == "continued"
    at.turns()
    assert at.names_at_work() == {"d"}, "it waits again for what it needs"
    at.child_ends("d")
    at.turns()
    assert at.names_at_work() == {"e"}


@pytest.mark.requirement("SUB-12", "SUB-24")
def test_who_stands_behind_one_of_its_group_waits_again(play: Begin) -> None:
    at, _, root = play(5)
    at.spawns(
        root,
        spawning(agent("d"), agent("e", "d", group="g"), agent("l", group="g"), mode="background"),
    )
    at.turns()
    at.stops_one("e")
    assert at.tells(root, "e") == "continued", "l has not begun, and stands behind it"
    at.turns()
    assert at.names_at_work() == {"d"}
    at.rests()


@pytest.mark.requirement("SUB-14", "SUB-24")
@pytest.mark.parametrize("name", ["live_per_tree", "live_per_parent"])
def test_who_goes_on_is_one_of_the_live(play: Begin, name: str) -> None:
    at, _, root = play(5)
    at.spawns(root, spawning(agent("a"), agent("b"), mode="background"))
    at.turns()
    at.child_ends("a")
    at.is_refused(root, "a", f"{name} is 1: 2 live", limits=replace(LIMITS, **{name: 1}))
    assert at.tells(root, "a", limits=replace(LIMITS, **{name: 2})) == "continued"
    at.rests()


@pytest.mark.requirement("SUB-19", "SUB-24")
def test_whoever_is_stopped_lets_nobody_go_on(play: Begin) -> None:
    at, session, root = play(5)
    at.spawns(root, spawning(agent("a"), mode="background"))
    at.turns()
    at.child_ends("a")
    at.stops(session)
    at.is_refused(root, "a", "is being stopped")
    at.ends(root, RunState.CANCELLED)
    at.is_refused(root, "a", "is being stopped")
    at.rests()


@pytest.mark.requirement("SUB-7", "SUB-8", "SUB-24")
@pytest.mark.parametrize("first", ["a", "b"])
def test_an_awaited_child_that_goes_on_holds_up_no_call(play: Begin, first: str) -> None:
    """Its parent awaits another of the batch; each result is told once."""
    at, _, root = play(5)
    at.spawns(root, spawning(agent("p"), mode="background"))
    at.turns()
    waiter = at.at_work_on(at.session("p"))
    at.spawns(waiter, spawning(agent("a"), agent("b"), mode="await"))
    at.turns()
    at.child_ends("a")
    assert at.tells(root, "a") == "continued"
    at.turns()
    at.child_ends(first)
    if first == "a":
        at.child_ends("b")
    assert at.now.all.state(waiter) is RunState.QUEUED, "the call has its result"
    result = at.last_result(waiter)
    assert (result.count("subagent a ("), result.count("subagent b (")) == (0, 1)
    at.rests()
    assert (at.handoffs_of("a"), at.handoffs_of("b")) == (1, 0)
    assert at.statuses() == dict.fromkeys("pab", "completed")


@pytest.mark.requirement("SUB-8", "SUB-24")
def test_a_new_end_is_handed_over_with_the_rights_of_who_asked_for_it(play: Begin) -> None:
    at, session, first = play(5)
    at.ends(first, RunState.COMPLETED)
    member = at.run(lambda conn: deliver(conn, 0, 76, Trust.MEMBER, queue_mode="followup"))
    assert member is not None
    at.holds()
    at.turns()
    at.spawns(member.run_id, spawning(agent("a"), mode="background"))
    at.turns()
    at.child_ends("a")
    at.ends(member.run_id, RunState.COMPLETED)
    at.turns()
    at.ends(at.at_work_on(session), RunState.COMPLETED)
    asked = at.run(lambda conn: deliver(conn, 0, 77, Trust.OWNER, queue_mode="followup"))
    assert asked is not None
    at.holds()
    at.turns()
    assert at.tells(asked.run_id, "a") == "continued"
    at.ends(asked.run_id, RunState.COMPLETED)
    at.turns()
    at.child_ends("a")
    last = at.now.runs_of(session)[-1]
    told = at.units.run(lambda conn: runs.get(conn, last["id"]))
    assert (told.kind, told.speaker.trust) == ("handoff", Trust.OWNER)


@pytest.mark.requirement("SUB-14")
@pytest.mark.parametrize("unheard", [False, True])
def test_results_alone_start_somebody_only_so_often(play: Begin, unheard: bool) -> None:
    """A model that starts another upon each result comes to an end; a person lets it go on. Also
    where each result comes at the last moment of a run, which ends before it hears of it."""
    at, session, run = play(5)
    limits = replace(LIMITS, unattended_runs=2)
    order = spawning(agent("a"), mode="background")
    names = ["a", "b", "c", "d"]
    for name in names:
        order = within(spawning(agent(name), mode="background"), limits)
        at.spawns(run, order)
        if at.last_result(run).startswith(REFUSED):
            break
        if not unheard:
            at.ends(run, RunState.COMPLETED)
        at.turns()
        at.child_ends(name)
        if unheard:
            at.ends(run, RunState.COMPLETED)
        at.turns()
        run = at.at_work_on(session)
    assert "agents.unattended_runs is 2: results alone began 3 runs" in at.last_result(run)
    assert at.statuses() == dict.fromkeys("abc", "completed")
    at.is_refused(run, "a", "unattended_runs is 2", limits=limits)
    at.ends(run, RunState.COMPLETED)
    at.asks(0)
    at.turns()
    at.spawns(at.at_work_on(session), order)
    assert at.statuses()["d"] is None
