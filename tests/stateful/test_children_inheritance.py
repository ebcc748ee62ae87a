"""What the unit that makes a child gives it of what its parent is and has read."""

from dataclasses import replace

import pytest
from sqlalchemy import Connection

from runtime.domain.runs import RunState, Usage
from runtime.domain.transcript import AssistantMessage
from runtime.features.subagents.ends import child_stop, parent_results
from runtime.features.subagents.rows import agents, agents_due
from runtime.features.subagents.spawn import children
from runtime.features.subagents.spawn.agent_types import Profile
from runtime.features.subagents.spawn.isolation import Placing
from runtime.features.subagents.waits.clarifications import ClarificationOpening
from runtime.sessions import approvals, open_calls, run_steps, runs, seen_files, sessions
from runtime.sessions.run_steps import AT_LIMIT, Finish
from tests.contract.store_support import schema_templates
from tests.stateful.children_bench import FOREVER_MS, agent, spawning, types_of
from tests.stateful.test_children_known_defects import Begin, Play, play
from tests.support.kinds import KINDS, unit_of

__all__ = ["play", "schema_templates"]

NO_WRITING = types_of(Profile((), read_only=False, no_writing=True))


def first_run_is_tainted(at: Play, name: str) -> bool:
    return bool(at.now.runs_of(at.session(name))[0]["tainted"])


def taint(at: Play, run_id: str) -> None:
    at.run(lambda conn: runs.change(conn, run_id, {"tainted": True}))
    at.holds()


@pytest.mark.requirement("SUB-9")
def test_a_task_from_who_read_something_untrusted_is_untrusted(play: Begin) -> None:
    """Also one level further down, and not for who was started before."""
    at, _, root = play(3)
    at.spawns(root, spawning(agent("clean"), mode="background"))
    taint(at, root)
    at.spawns(root, spawning(agent("a"), mode="background"))
    at.turns()
    at.spawns(at.at_work_on(at.session("a")), spawning(agent("below"), mode="background"))
    found = {name: first_run_is_tainted(at, name) for name in ("clean", "a", "below")}
    assert found == {"clean": False, "a": True, "below": True}
    at.rests()


@pytest.mark.requirement("SUB-9", "SUB-11")
def test_what_a_dependant_is_told_of_the_untrusted_is_untrusted(play: Begin) -> None:
    at, _, root = play(3)
    wanted = (agent("read"), agent("thought"), agent("after", "read"), agent("beside", "thought"))
    at.spawns(root, spawning(*wanted, mode="background"))
    at.turns()
    taint(at, at.at_work_on(at.session("read")))
    at.child_ends("read")
    at.child_ends("thought")
    at.starts()
    assert first_run_is_tainted(at, "after")
    assert not first_run_is_tainted(at, "beside")
    at.rests()


@pytest.mark.requirement("SUB-18", "POL-5")
def test_who_is_started_by_one_that_writes_no_files_writes_none(play: Begin) -> None:
    at, _, root = play(2)
    at.spawns(root, replace(spawning(agent("a"), mode="background"), types=NO_WRITING))
    at.turns()
    at.spawns(at.at_work_on(at.session("a")), spawning(agent("b"), mode="background"))

    def writes_none(conn: Connection) -> list[bool]:
        return [sessions.get(conn, at.session(name)).scope.no_writing for name in ("a", "b")]

    assert at.run(writes_none) == [True, True]
    at.rests()


ENDS = {
    "failed": Finish(RunState.FAILED, Usage(), 1),
    "cancelled": Finish(RunState.CANCELLED, Usage(), 1),
    "forced": Finish(
        RunState.COMPLETED,
        Usage(),
        1,
        AssistantMessage(text="x"),
        reason=AT_LIMIT,
        cut_short=True,
    ),
    "timed_out": Finish(RunState.CANCELLED, Usage(), 1, reason="no progress", over=True),
}


@pytest.mark.requirement("SUB-11")
@pytest.mark.parametrize("goes_on", [False, True], ids=["fail", "continue"])
@pytest.mark.parametrize("status", ENDS)
def test_a_dependant_falls_with_every_end_that_is_no_completion(
    play: Begin, status: str, goes_on: bool
) -> None:
    at, _, root = play(2)
    at.spawns(root, spawning(agent("a"), mode="background"))
    after = spawning(
        agent("b", "a"), mode="background", on_dependency_failure="continue" if goes_on else "fail"
    )
    at.spawns(root, after)
    at.turns()
    run = at.at_work_on(at.session("a"))
    if status == "cancelled":
        at.stops_run(run)
    at.run(unit_of(lambda unit: run_steps.finish(unit, at.holder, run, ENDS[status], claim=None)))
    at.holds()
    at.turns()
    assert at.statuses() == {"a": status, "b": None if goes_on else "failed"}
    at.rests()


@pytest.mark.requirement("SUB-11", "SUB-19")
def test_who_was_stopped_between_the_look_and_the_start_is_not_started(play: Begin) -> None:
    at, _, root = play(2)
    at.spawns(root, spawning(agent("a"), agent("b", "a"), mode="background"))
    at.turns()
    at.child_ends("a")
    b = at.session("b")
    assert at.units.run(agents_due.startable) == [b]
    at.stops(b)
    at.ends_stopped()
    assert at.statuses()["b"] == "cancelled"
    assert not at.run(unit_of(lambda unit: children.start(unit, b)))
    at.rests()


@pytest.mark.requirement("SUB-19")
def test_a_run_that_is_to_end_spawns_nobody(play: Begin) -> None:
    """It was stopped between its model's response and the unit that would make them."""
    at, _, root = play(2)
    wanted = [spawning(agent("a"), mode="await"), spawning(agent("b"), mode="background")]
    rows = at.responds(root, wanted)
    at.stops_run(root)
    at.parks(root, rows)
    assert not at.now.agents
    assert at.now.all.state(root) is RunState.CANCELLED
    at.rests()


@pytest.mark.requirement("SUB-19", "SUB-24")
def test_who_is_not_to_end_any_more_is_not_ended(play: Begin) -> None:
    """The keeper had seen that it was to, and since then it settled and was spoken to again."""
    at, _, root = play(2)
    at.spawns(root, spawning(agent("a"), mode="background"))
    at.turns()
    a = at.session("a")
    run = at.at_work_on(a)
    assert at.run(unit_of(lambda unit: child_stop.stop(unit, a))).running == ()
    at.holds()
    assert at.now.all.run[run]["cancel"] is None
    at.rests()
    assert at.statuses() == {"a": "completed"}


def asks(at: Play, run_id: str) -> None:
    """A run asks its parent."""
    (row,) = at.responds(run_id, [spawning(agent("never"), mode="await")])
    wait = ClarificationOpening(row=row, question="Which one?", expires_in_ms=FOREVER_MS)
    at.run(unit_of(lambda unit: approvals.park(unit, at.holder, run_id, [wait], window_from=1)))
    at.holds()


@pytest.mark.requirement("AGT-4", "SUB-9")
@pytest.mark.parametrize("mode", ["await", "background"])
@pytest.mark.parametrize("untrusted", [True, False])
def test_the_question_of_who_read_something_untrusted_is_untrusted(
    play: Begin, mode: str, untrusted: bool
) -> None:
    at, _, root = play(1)
    at.spawns(root, spawning(agent("a"), mode=mode))
    at.turns()
    run = at.at_work_on(at.session("a"))
    if untrusted:
        taint(at, run)
    asks(at, run)
    assert at.now.all.state(root) is (RunState.QUEUED if mode == "await" else RunState.RUNNING)
    assert bool(at.now.all.run[root]["tainted"]) is untrusted


@pytest.mark.requirement("AGT-4", "SUB-19")
def test_a_parent_that_was_stopped_is_asked_nothing(play: Begin) -> None:
    """Its child asks before the keeper has ended that."""
    at, session, root = play(1)
    at.spawns(root, spawning(agent("a"), mode="background"))
    at.turns()
    at.ends(root, RunState.COMPLETED)
    at.stops(session)
    asks(at, at.at_work_on(at.session("a")))
    assert not at.now.lane[session]["active_run"]
    assert [row["state"] for row in at.now.runs_of(session)] == ["completed"]
    at.rests()
    assert at.statuses() == {"a": "cancelled"}


@pytest.mark.requirement("SUB-19")
def test_why_an_agent_is_to_end_is_what_was_said_first(play: Begin) -> None:
    at, session, root = play(1)
    at.spawns(root, spawning(agent("a"), mode="background"))
    at.turns()
    a = at.session("a")
    stop = agents.ask_to_stop
    assert at.run(lambda conn: stop(conn, a, "enough"))
    assert not at.run(lambda conn: stop(conn, a, "more than enough"))
    at.stops(session)
    assert at.now.agents[a]["stop"] == "enough"
    at.rests()


@pytest.mark.requirement("SUB-6")
def test_a_key_is_that_of_the_session_that_spawns(play: Begin) -> None:
    at, _, root = play(2)
    keyed = spawning(agent("a"), mode="background", spawn_request_id="k")
    at.spawns(root, replace(keyed, digest="of the root"))
    at.turns()
    run = at.at_work_on(at.session("a"))
    keyed = spawning(agent("b"), mode="background", spawn_request_id="k")
    at.spawns(run, replace(keyed, digest="of a"))
    assert at.statuses() == {"a": None, "b": None}
    at.rests()


@pytest.mark.requirement("SUB-17")
def test_who_shares_with_one_that_shares_has_the_record_of_the_first(play: Begin) -> None:
    at, session, root = play(2)
    shared = Placing(isolation="shared")
    at.spawns(root, replace(spawning(agent("a"), mode="background"), placing=shared))
    at.turns()
    run = at.at_work_on(at.session("a"))
    at.spawns(run, replace(spawning(agent("b"), mode="background"), placing=shared))
    at.spawns(run, spawning(agent("c"), mode="background"))

    def owners(conn: Connection) -> dict[str, str]:
        return {name: seen_files.record(conn, KINDS, at.session(name)).owner for name in "abc"}

    assert at.run(owners) == {"a": session, "b": session, "c": at.session("c")}
    at.rests()


@pytest.mark.requirement("SUB-7", "SUB-9")
@pytest.mark.parametrize("untrusted", [True, False])
def test_who_waits_no_longer_is_told_of_those_that_are_back(play: Begin, untrusted: bool) -> None:
    at, _, root = play(2)
    at.spawns(root, spawning(agent("a"), agent("b"), mode="await"))
    at.turns()
    if untrusted:
        taint(at, at.at_work_on(at.session("a")))
    at.child_ends("a")
    (call,) = at.run(lambda conn: open_calls.of_run(conn, root, state="open"))
    at.run(unit_of(lambda unit: parent_results.let_go(unit, call)))
    at.look()
    said = at.last_result(root)
    assert "in the background from now on: b." in said
    assert "The subagent a (explore) completed" in said
    assert bool(at.now.all.run[root]["tainted"]) is untrusted
