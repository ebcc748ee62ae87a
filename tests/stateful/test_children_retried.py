"""Plays of children that begin anew, and of handoffs that find a run to join."""

import json

import pytest

from runtime.domain.people import Trust
from runtime.domain.runs import RunState
from tests.contract.store_support import schema_templates
from tests.stateful.children_bench import agent, spawning
from tests.stateful.test_children_known_defects import Begin, play

__all__ = ["play", "schema_templates"]


@pytest.mark.requirement("SUB-8")
def test_a_run_that_is_to_go_on_takes_a_handoff_too(play: Begin) -> None:
    """What it awaited is there, and its lane waits for a worker when another child settles."""
    at, _, root = play(2)
    at.spawns(root, spawning(agent("b"), mode="background"), spawning(agent("a"), mode="await"))
    at.turns()
    at.child_ends("a")
    assert at.now.all.state(root) is RunState.QUEUED
    at.child_ends("b")
    (told,) = [row for row in at.now.all.inputs if row["identity"].startswith("handoff")]
    assert told["run_id"] == root
    at.rests()


@pytest.mark.requirement("SUB-8")
def test_handoffs_that_arrive_before_anybody_takes_them_are_taken_together(play: Begin) -> None:
    at, _, root = play(2)
    at.spawns(root, spawning(agent("a"), agent("b"), mode="background"))
    at.turns()
    at.ends(root, RunState.COMPLETED)
    at.child_ends("a")
    at.child_ends("b")
    told = [row for row in at.now.all.inputs if row["identity"].startswith("handoff")]
    assert len({row["run_id"] for row in told}) == 1
    assert len(told) == 2
    at.rests()


@pytest.mark.requirement("SUB-22", "POL-4")
@pytest.mark.parametrize(
    "trusts",
    [[Trust.GUEST], [Trust.GUEST, Trust.OWNER], [Trust.MEMBER, Trust.GUEST, Trust.OWNER]],
    ids=lambda trusts: "-".join(trusts),
)
def test_a_new_try_has_the_rights_of_whoever_is_trusted_least_of_all_that_it_hears_again(
    play: Begin, trusts: list[Trust]
) -> None:
    """The owner's task comes first, the words of others behind it, and the last run of all fails:
    what they said is told once more, in one run."""
    at, _, root = play(1)
    at.spawns(root, spawning(agent("a"), mode="background"))
    at.turns()
    a = at.session("a")
    for number, trust in enumerate(trusts, start=90):
        at.tells(a, trust, number)
        at.child_ends("a")
        at.turns()
    failed = at.at_work_on(a)
    at.ends(failed, RunState.FAILED, again=True)
    at.turns()
    anew = at.now.all.run[at.at_work_on(a)]
    assert anew["id"] != failed
    assert json.loads(anew["speaker"])["trust"] == Trust.GUEST
    heard = [row for row in at.now.all.inputs if row["run_id"] == anew["id"]]
    assert len(heard) == len(trusts) + 3, "who it is, its task, the words, and what came before"
    at.rests()


@pytest.mark.requirement("SUB-22", "SUB-19")
def test_a_run_that_somebody_asked_to_end_is_not_tried_anew_whatever_it_fails_by(
    play: Begin,
) -> None:
    """The worker's model fails before the worker has heard of the stop."""
    at, _, root = play(1)
    at.spawns(root, spawning(agent("a"), mode="background"))
    at.turns()
    run = at.at_work_on(at.session("a"))
    at.stops_run(run)
    at.ends(run, RunState.FAILED, again=True)
    assert at.statuses() == {"a": "failed"}
    assert at.now.agents[at.session("a")]["retries"] == 0
    at.rests()


@pytest.mark.requirement("SUB-22")
def test_a_new_try_takes_nothing_of_what_waits_behind_it(play: Begin) -> None:
    """What somebody said meanwhile is answered by a run of its own, once."""
    at, _, root = play(1)
    at.spawns(root, spawning(agent("a"), mode="background"))
    at.turns()
    a = at.session("a")
    at.tells(a, Trust.OWNER, 90)
    at.ends(at.at_work_on(a), RunState.FAILED, again=True)
    at.turns()
    anew = at.at_work_on(a)
    waiting = [row for row in at.now.all.inputs_of[a] if row["state"] == "pending"]
    assert len(waiting) == 1
    assert waiting[0]["run_id"] != anew
    heard = [row for row in at.now.all.inputs_of[a] if row["run_id"] == anew]
    assert len(heard) == 3, "who it is, its task, and what came before"
    at.rests()
