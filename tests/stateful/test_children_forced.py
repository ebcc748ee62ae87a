"""What a child that goes in circles leaves behind when its run is ended: its own words, or work."""

import pytest

from runtime.domain.people import Trust
from runtime.domain.runs import RunState, Usage
from runtime.domain.transcript import AssistantMessage
from runtime.features.subagents.turn_guest import STUCK
from runtime.sessions import run_steps
from runtime.sessions.run_steps import AT_LIMIT, Finish
from tests.contract.store_support import schema_templates
from tests.stateful.children_bench import agent, spawning
from tests.stateful.test_children_known_defects import Begin, Play, play
from tests.support.kinds import unit_of

__all__ = ["play", "schema_templates"]

pytestmark = pytest.mark.requirement("SUB-20")


def cut_short(at: Play, run_id: str, reason: str) -> None:
    end = Finish(
        RunState.COMPLETED,
        Usage(),
        1,
        AssistantMessage(text="so far"),
        reason=reason,
        cut_short=True,
        over=reason == STUCK,
    )
    at.run(unit_of(lambda unit: run_steps.finish(unit, at.holder, run_id, end, claim=None)))
    at.holds()


def forced(at: Play, run_id: str) -> None:
    """A run is ended for going in circles, with the work that it has."""
    cut_short(at, run_id, STUCK)


def test_what_somebody_said_to_it_in_the_meantime_is_still_answered(play: Begin) -> None:
    at, _, root = play(1)
    at.spawns(root, spawning(agent("a"), mode="background"))
    at.turns()
    a = at.session("a")
    first = at.at_work_on(a)
    at.tells(a, Trust.OWNER, 90)
    forced(at, first)
    assert at.statuses() == {"a": None}, "another's words are no circle of its own"
    at.turns()
    at.child_ends("a")
    assert at.statuses() == {"a": "completed"}
    at.rests()


def test_what_its_own_children_hand_over_does_not_let_it_go_on(play: Begin) -> None:
    """It would go round by way of them."""
    at, _, root = play(2)
    at.spawns(root, spawning(agent("a"), mode="background"))
    at.turns()
    first = at.at_work_on(at.session("a"))
    at.spawns(first, spawning(agent("b"), mode="background"))
    at.turns()
    at.child_ends("b")
    assert at.now.all.run[first]["steered"], "a has a handoff that it has not heard"
    forced(at, first)
    assert at.statuses() == {"a": "forced", "b": "completed"}
    at.rests()


@pytest.mark.requirement("SUB-16")
def test_it_settles_as_forced_also_where_it_waits_for_children_that_tell_it_nothing(
    play: Begin,
) -> None:
    at, _, root = play(2)
    at.spawns(root, spawning(agent("a"), mode="background"))
    at.turns()
    first = at.at_work_on(at.session("a"))
    alone = spawning(agent("b"), mode="background", memory_share_mode="isolated")
    at.spawns(first, alone)
    at.turns()
    cut_short(at, first, AT_LIMIT)
    assert at.statuses() == {"a": "forced", "b": None}
    assert at.now.live == {at.session("a"), at.session("b")}
    at.child_ends("b")
    assert at.statuses() == {"a": "forced", "b": "completed"}
    assert not at.now.live


def test_its_children_end_with_it(play: Begin) -> None:
    at, _, root = play(2)
    at.spawns(root, spawning(agent("a"), mode="background"))
    at.turns()
    first = at.at_work_on(at.session("a"))
    at.spawns(first, spawning(agent("b"), mode="background"))
    at.turns()
    forced(at, first)
    assert at.statuses() == {"a": "forced", "b": None}
    while at.ends_stopped() or at.end_cancelled():
        pass
    assert at.statuses() == {"a": "forced", "b": "cancelled"}
    at.rests()
