"""Who hears what an agent is told after its start, and who cannot be told any more (SUB-4)."""

import pytest

from runtime.domain.errors import Conflict, Forbidden
from runtime.domain.people import Trust
from runtime.domain.runs import RunState
from runtime.features.subagents import agent_messages
from runtime.features.subagents.agent_messages import Word
from runtime.features.subagents.rows import agents
from runtime.sessions import runs
from tests.contract.store_support import schema_templates
from tests.stateful.children_bench import agent, spawning
from tests.stateful.test_children_known_defects import Begin, Play, play
from tests.support.kinds import unit_of

__all__ = ["play", "schema_templates"]

pytestmark = pytest.mark.requirement("SUB-4")


def tell(at: Play, name: str, run_id: str, *, steer: bool = False, call: str = "c1") -> str:
    """What becomes of a word that a run says to an agent."""
    how = said(at, Word(at.session(name), run_id, call, "root", "And more.", steer))
    at.holds()
    return how


def said(at: Play, word: Word) -> str:
    return at.run(unit_of(lambda unit: agent_messages.tell(unit, word)))


def heard_by(at: Play, run_id: str) -> str:
    """The run that hears what a run said."""
    (found,) = [row for row in at.now.all.inputs if row["identity"].startswith(f"word:{run_id}")]
    return str(found["run_id"])


def test_one_that_is_being_stopped_hears_nothing_more(play: Begin) -> None:
    at, _, root = play(1)
    at.spawns(root, spawning(agent("a"), mode="background"))
    at.turns()
    assert at.run(lambda conn: agents.ask_to_stop(conn, at.session("a"), "enough"))
    with pytest.raises(Conflict, match="a is being stopped"):
        tell(at, "a", root)


@pytest.mark.requirement("SUB-12")
def test_one_of_a_group_goes_on_only_when_no_other_of_it_is_at_work(play: Begin) -> None:
    at, _, root = play(2)
    wanted = (agent("a", group="g"), agent("b", group="g"))
    at.spawns(root, spawning(*wanted, mode="background"))
    at.turns()
    at.child_ends("a")
    at.turns()
    assert at.names_at_work() == {"b"}
    with pytest.raises(Conflict, match="b of its group is at work: wait for it"):
        tell(at, "a", root)
    at.child_ends("b")
    # From here on the second of the group has begun before the first, as it must.
    assert said(at, Word(at.session("a"), root, "c1", "root", "And more.")) == "continued"


@pytest.mark.requirement("SUB-12")
def test_one_that_never_began_waits_for_its_turn_again(play: Begin) -> None:
    at, _, root = play(2)
    wanted = (agent("a", group="g"), agent("b", group="g"))
    at.spawns(root, spawning(*wanted, mode="background"))
    at.turns()
    at.stops(at.session("b"))
    at.ends_stopped()
    at.doomed.clear()
    assert tell(at, "b", root) == "continued"
    at.turns()
    assert at.names_at_work() == {"a"}
    at.child_ends("a")
    at.turns()
    assert at.names_at_work() == {"b"}
    at.rests()


@pytest.mark.parametrize("settles", [True, False], ids=["settled", "stopped"])
def test_one_whose_parent_is_over_is_told_nothing_that_nobody_could_stop(
    play: Begin, settles: bool
) -> None:
    at, _, root = play(2)
    at.spawns(root, spawning(agent("a"), mode="background"))
    at.turns()
    at.spawns(at.at_work_on(at.session("a")), spawning(agent("b"), mode="background"))
    at.turns()
    at.child_ends("b")
    if settles:
        at.turns()
        at.child_ends("a")
        at.rests()
        assert at.statuses()["a"] == "completed"
    else:
        assert at.run(lambda conn: agents.ask_to_stop(conn, at.session("a"), "enough"))
    with pytest.raises(Conflict, match="so did a, which spawned it: send the message to a"):
        tell(at, "b", root)


def test_a_run_that_is_to_end_is_steered_no_more(play: Begin) -> None:
    at, _, root = play(1)
    at.spawns(root, spawning(agent("a"), mode="background"))
    at.turns()
    first = at.at_work_on(at.session("a"))
    at.stops_run(first)
    assert tell(at, "a", root, steer=True) == "queued"
    assert heard_by(at, root) != first


def test_a_run_in_its_middle_is_joined_by_no_message(play: Begin) -> None:
    """It hears what steers it; what it begins with, it has heard."""
    at, _, root = play(1)
    at.spawns(root, spawning(agent("a"), mode="background"))
    at.turns()
    first = at.at_work_on(at.session("a"))
    at.spawns(first, spawning(agent("b"), mode="await"))
    at.turns()
    at.child_ends("b")
    assert at.now.all.state(first) is RunState.QUEUED
    assert tell(at, "a", root) == "queued"
    assert heard_by(at, root) != first
    at.rests()


@pytest.mark.requirement("POL-4")
def test_a_guests_word_joins_no_run_of_the_owner_and_gets_none(play: Begin) -> None:
    at, session, root = play(1)
    at.spawns(root, spawning(agent("a"), mode="background"))
    at.turns()
    assert tell(at, "a", root) == "queued"
    assert tell(at, "a", root, call="c2") == "joined"
    at.tells(session, Trust.GUEST, 91)
    at.ends(root, RunState.COMPLETED)
    at.claims(1)
    guest = at.at_work_on(session)
    with pytest.raises(Forbidden, match="a works for somebody who may do more"):
        tell(at, "a", guest)
    at.holds()
    assert len(at.now.runs_of(at.session("a"))) == 2
    at.rests()


@pytest.mark.requirement("SUB-9")
def test_the_word_of_a_run_that_read_something_untrusted_is_untrusted(play: Begin) -> None:
    at, _, root = play(1)
    at.spawns(root, spawning(agent("a"), mode="background"))
    at.turns()
    at.run(lambda conn: runs.change(conn, root, {"tainted": True}))
    tell(at, "a", root)
    assert at.now.all.run[heard_by(at, root)]["tainted"]
    at.rests()


@pytest.mark.requirement("MSG-20", "SUB-25")
def test_what_one_does_that_goes_on_counts_on_the_budget_of_who_told_it_to(play: Begin) -> None:
    at, session, root = play(1)
    at.spawns(root, spawning(agent("a"), mode="background"))
    at.turns()
    at.child_ends("a")
    assert at.now.agents[at.session("a")]["payer"] == root
    at.tells(session, Trust.OWNER, 91)
    at.ends(root, RunState.COMPLETED)
    while not (later := [row for row in at.at_work() if row["session_id"] == session]):
        at.turns()
    told_by = str(later[0]["id"])
    assert tell(at, "a", told_by) == "continued"
    assert at.now.agents[at.session("a")]["payer"] == told_by
    assert at.statuses() == {"a": None}, "how it ended before says nothing about it now"
    at.rests()


@pytest.mark.requirement("SUB-8", "SUB-24")
def test_one_that_was_stopped_with_its_parent_is_heard_of_when_it_goes_on(play: Begin) -> None:
    at, session, root = play(1)
    at.spawns(root, spawning(agent("a"), mode="await"))
    at.turns()
    at.stops(session)
    while at.ends_stopped() or at.end_cancelled():
        pass
    assert at.statuses() == {"a": "cancelled"}
    at.doomed.clear()
    at.tells(session, Trust.OWNER, 91)
    at.turns()
    later = at.at_work_on(session)
    assert tell(at, "a", later) == "continued"
    at.turns()
    at.child_ends("a")
    (told,) = [row for row in at.now.all.inputs if row["identity"].startswith("handoff")]
    assert told["run_id"] == later
    at.rests()
