"""The matrix counts what went wrong: a case in which nothing did is spoilt, and it shows."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from tests.crash.platform import Post
from tests.crash.play import Case, run
from tests.faults import page
from tests.faults.load import Tally, count_halves, is_complete
from tests.faults.outcomes import Unknown, outcome
from tests.faults.worlds import TEAMS, WORLDS, Pace, orders
from tests.stateful.snapshot import Record

PACE = Pace(rate=20, lease_s=60.0)


@pytest.fixture(scope="module")
def case() -> Case:
    """A conversation that ended well, after one death, on a platform that cannot be asked."""
    (world,) = [one for one in WORLDS if one.dialect == "sqlite" and not one.lookup]

    async def played() -> Case:
        async with orders(world, PACE) as make:
            order = await make("one")
            return await run(replace(order, kill=(1, "claim:commit")))

    return asyncio.run(played())


def with_final(case: Case, state: str) -> Case:
    """The same, where the first reply ended otherwise and was not posted."""
    rows: list[Record] = [dict(row) for row in case.rows.outbox]
    final = next(row for row in rows if row["kind"] == "final")
    rows[rows.index(final)] = {**final, "state": state}
    posts = [post for post in case.posts if post.outbox_id != final["id"]]
    return replace(case, rows=replace(case.rows, outbox=rows), posts=posts)


@pytest.mark.requirement("MSG-7", "MSG-9")
def test_a_death_that_nobody_notices_counts_as_nothing(case: Case) -> None:
    found = outcome(case)
    assert found.good, found
    assert found.unknown == []
    assert found.recovered_s is not None
    assert found.recovered_s > 0


def test_a_message_without_an_answer_is_lost(case: Case) -> None:
    assert outcome(with_final(case, "pending")).lost == ["no answer to 'note milk'"]
    assert outcome(replace(case, acknowledged=frozenset({"m2"}))).lost
    assert outcome(with_final(case, "dead")).lost


def test_an_unknown_outcome_is_not_lost_and_says_what_the_platform_knows(case: Case) -> None:
    found = outcome(with_final(case, "unknown"))
    assert found.lost == []
    assert found.unknown == [Unknown("final", posted=False)]


def test_a_post_that_is_seen_twice_is_doubled(case: Case) -> None:
    again = Post("post-again", case.posts[0].outbox_id, case.posts[0].text)
    found = outcome(replace(case, posts=[*case.posts, again]))
    assert len(found.doubled) == 2
    assert not found.good


def test_half_a_text_is_broken_but_for_one_that_nobody_can_find_and_that_is_told_of(
    case: Case,
) -> None:
    whole = case.posts[0]
    standing = replace(case, posts=[replace(whole, id="post-0", text="note mi"), *case.posts])
    assert outcome(standing).broken
    told = outcome(replace(standing, orphaned=[whole.outbox_id]))
    assert told.good
    assert len(told.half) == 1
    findable = replace(standing, orphaned=[whole.outbox_id], order=replace(case.order, lookup=True))
    assert outcome(findable).broken


@pytest.mark.parametrize("findable", [False, True])
def test_under_load_half_a_text_is_counted_as_in_the_cases(findable: bool) -> None:
    post = Post("post-1", "out_1", "note n0: o")
    assert not is_complete(post, ())
    assert is_complete(post, ("out_1",)), "a line of the engine's own is whole"
    told, untold = Tally(), Tally()
    count_halves(told, [post], ["out_1"], findable=findable)
    count_halves(untold, [post], [], findable=findable)
    assert (told.half, told.good) == (1, not findable)
    assert not untold.good


def test_an_effect_that_was_had_twice_and_a_point_that_was_not_reached_are_broken(
    case: Case,
) -> None:
    assert outcome(replace(case, effects=[*case.effects, "milk"])).broken
    assert outcome(replace(case, kills=0)).broken


def test_the_page_keeps_the_result_of_the_other_run(case: Case, tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    page.update(page.KILLS, "the kills", path=path)
    played = {WORLDS[1]: [(case, outcome(case))]}
    page.update(page.POINTS, page.points_text(played, "About."), path=path)
    text = path.read_text(encoding="utf-8")
    assert "the kills" in text
    assert "| SQLite, cannot be asked | 1 | 0 | 0 | 0 | 0 |" in text
    assert "| `claim:commit` | 1st message |" in text
    assert "Not run yet" not in text


@pytest.fixture(scope="module")
def team() -> Case:
    """A conversation with children that ended well, after one death."""
    (world,) = [one for one in TEAMS if one.dialect == "sqlite"]

    async def played() -> Case:
        async with orders(world, PACE) as make:
            order = await make("one")
            return await run(replace(order, kill=(1, "child-start:commit")))

    return asyncio.run(played())


@pytest.mark.requirement("SUB-8", "SUB-23")
def test_what_becomes_of_children_is_counted(team: Case) -> None:
    """Nothing is wrong; an answer less is lost, one more is doubled, and so is a handoff."""
    assert outcome(team).good, outcome(team)
    silent = replace(team, posts=[])
    assert outcome(silent).lost == ["no answer to 'team home'"]
    assert outcome(replace(team, posts=[*team.posts, *team.posts])).doubled
    told = [row for row in team.rows.inputs if row["identity"].startswith("handoff:")]
    fewer: list[Record] = [dict(row) for row in team.rows.inputs if row["id"] != told[0]["id"]]
    assert outcome(replace(team, rows=replace(team.rows, inputs=fewer))).lost == ["1 handoffs"]
    more: list[Record] = [*(dict(row) for row in team.rows.inputs), dict(told[0])]
    assert outcome(replace(team, rows=replace(team.rows, inputs=more))).doubled
    assert outcome(replace(team, effects=["north", "north"])).broken
