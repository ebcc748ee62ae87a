"""A child that answered while an isolated child of its own works settles with that, if nothing
else is left to do (SUB-16)."""

import pytest

from runtime.domain.people import Trust
from runtime.features.subagents.rows import agents
from tests.contract.store_support import schema_templates
from tests.stateful.children_bench import agent, spawning
from tests.stateful.test_children_known_defects import Begin, Play, play

__all__ = ["play", "schema_templates"]

pytestmark = pytest.mark.requirement("SUB-16")


def answered(play: Begin) -> tuple[Play, str]:
    """`a` has answered, and `b` is at work for it, isolated; the session of `a`."""
    at, _, root = play(2)
    at.spawns(root, spawning(agent("a"), mode="background"))
    at.turns()
    alone = spawning(agent("b"), mode="background", memory_share_mode="isolated")
    at.spawns(at.at_work_on(at.session("a")), alone)
    at.turns()
    at.child_ends("a")
    assert at.now.live == {at.session("a"), at.session("b")}
    return at, at.session("a")


def test_it_settles_with_the_last_of_them(play: Begin) -> None:
    at, _ = answered(play)
    at.child_ends("b")
    assert not at.now.live
    assert at.statuses() == {"a": "completed", "b": "completed"}


@pytest.mark.requirement("SUB-19")
def test_one_that_was_stopped_meanwhile_is_cancelled_whoever_ends_first(play: Begin) -> None:
    at, a = answered(play)
    assert at.run(lambda conn: agents.ask_to_stop(conn, a, "enough"))
    at.child_ends("b")
    assert at.now.live == {a}, "its answer is not what it ends with"
    at.ends_stopped()
    assert at.statuses() == {"a": "cancelled", "b": "completed"}
    assert at.now.agents[a]["result"] == "done", "what it had is kept"


@pytest.mark.requirement("SUB-4")
def test_one_that_was_told_more_meanwhile_goes_on(play: Begin) -> None:
    at, a = answered(play)
    at.tells(a, Trust.OWNER, 90)
    at.child_ends("b")
    assert at.now.live == {a}, "a run of it is queued"
    at.turns()
    at.child_ends("a")
    assert not at.now.live
