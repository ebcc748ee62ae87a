"""The tree of subagents as lines: who is below whom, aligned, and what changed."""

import pytest

from gateway.cli.agent_tree import ENDED, Watched, changes, fitting, nested, plain_tree
from gateway.cli.client import JsonObject


def row(name: str, parent: str = "root", **more: object) -> JsonObject:
    """A row as the API gives it."""
    given: JsonObject = {
        "agent_id": name,
        "session_id": f"ses_{name}",
        "parent_session_id": f"ses_{parent}",
        "type": "explore",
        "label": "",
        "standing": "running",
        "tokens": 1200,
        "cost_usd": None,
        "progress": {"steps": 3, "tool_calls": 4},
        "elapsed_ms": 65_000,
    }
    return given | dict(more)


@pytest.mark.requirement("AGT-2")
def test_children_stand_below_the_one_that_sent_them() -> None:
    rows = [row("a"), row("b"), row("a1", "a"), row("b1", "b"), row("a2", "a"), row("a11", "a1")]
    drawn = [f"{indent}{one['agent_id']}" for one, indent in nested(rows)]
    assert drawn == ["a", "├─ a1", "│  └─ a11", "└─ a2", "b", "└─ b1"]


@pytest.mark.requirement("AGT-2")
def test_a_tree_of_a_thousand_in_one_line_is_drawn_without_recursion() -> None:
    rows = [row("n0"), *(row(f"n{place}", f"n{place - 1}") for place in range(1, 2_000))]
    assert len(nested(rows)) == 2_000


@pytest.mark.requirement("AGT-2")
def test_lines_are_aligned_and_the_sums_stand_in_front() -> None:
    rows = [
        row("north", cost_usd=0.01),
        row("east", standing="completed", cost_usd=0.0025, elapsed_ms=3_725_000),
        row("deep", "north", label="a lake", standing="waiting", tokens=0, elapsed_ms=0),
    ]
    assert plain_tree(rows) == [
        "3 subagents: 1 running, 1 completed, 1 waiting. 9 steps, 2,400 tokens, $0.0125",
        "AGENT             TYPE     STATUS     STEPS  TOKENS  COST     TIME",
        "north             explore  running    3      1,200   $0.0100  1:05",
        "└─ deep (a lake)  explore  waiting    3      0       -        0:00",
        "east              explore  completed  3      1,200   $0.0025  1:02:05",
    ]
    assert plain_tree([]) == []


@pytest.mark.requirement("AGT-2")
def test_nothing_in_a_row_steers_the_terminal() -> None:
    hostile = row("\x1b[2Jgone", label="a\nb\x9b31m", standing="\x07", type="\x1b]0;x\x07")
    drawn = "\n".join(plain_tree([hostile]) + changes([], [hostile]))
    assert all(one.isprintable() or one == "\n" for one in drawn)
    assert len(plain_tree([hostile])) == 3


@pytest.mark.requirement("AGT-2")
def test_a_change_is_one_line_and_no_change_is_none() -> None:
    before = [row("a"), row("b")]
    assert changes(before, before) == []
    after = [row("a", standing="completed"), row("b", elapsed_ms=70_000), row("c", tokens=0)]
    assert changes(before, after) == [
        "a (explore) completed, 3 steps, 1,200 tokens",
        "c (explore) running, 3 steps, 0 tokens",
    ]


WIDE = [
    ("AGENT", "TYPE", "STATUS", "STEPS", "TOKENS", "COST", "TIME"),
    ("explore-a0e50-1", "explore", "running", "3", "1,200", "$0.0100", "1:05"),
]


@pytest.mark.requirement("AGT-2")
@pytest.mark.parametrize(
    ("width", "kept"),
    [
        (80, "AGENT TYPE STATUS STEPS TOKENS COST TIME"),
        (55, "AGENT TYPE STATUS STEPS TOKENS TIME"),
        (40, "AGENT STATUS STEPS TIME"),
        (30, "AGENT STATUS TIME"),
        (10, "AGENT STATUS TIME"),
    ],
)
def test_a_narrow_terminal_gets_whole_columns_and_fewer_of_them(width: int, kept: str) -> None:
    columns = dict(fitting(WIDE, width))
    assert [WIDE[0][place] for place in columns] == kept.split()
    whole = {place: max(len(line[place]) for line in WIDE) for place in columns if place}
    assert {place: size for place, size in columns.items() if place} == whole
    assert columns[0] == min(15, max(1, width - sum(whole.values()) - 2 * len(columns)))


@pytest.mark.requirement("AGT-2")
async def test_who_watches_everybody_sees_how_a_tree_ended_until_another_begins() -> None:
    trees: dict[str, list[JsonObject]] = {}

    def at(root: str, name: str, standing: str) -> None:
        trees[root] = [row(name, standing=standing, root_session_id=root)]

    async def read(root: str) -> list[JsonObject]:
        if root:
            return trees[root]
        working = [rows for rows in trees.values() if rows[0]["standing"] == "running"]
        return [one for rows in working for one in rows]

    async def seen(watched: Watched) -> list[str]:
        return [f"{one['agent_id']} {one['standing']}" for one in await watched.rows()]

    watched = Watched(read, "")
    at("ses_1", "a", "completed")
    assert await seen(watched) == [], "it ended before anybody looked"
    at("ses_2", "b", "running")
    at("ses_3", "c", "running")
    assert await seen(watched) == ["b running", "c running"]
    at("ses_2", "b", "completed")
    assert await seen(watched) == ["b completed", "c running"]
    at("ses_3", "c", "timed_out")
    assert await seen(watched) == ["b completed", "c timed_out"]
    assert await seen(watched) == ["b completed", "c timed_out"]
    at("ses_4", "d", "running")
    assert await seen(watched) == ["d running"]
    many = [f"ses_{place}" for place in range(10, 20)]
    for root in many:
        at(root, root, "running")
    assert len(await seen(watched)) == 11
    for root in many:
        at(root, root, "completed")
    assert len(await seen(watched)) == ENDED + 1
    one = Watched(read, "ses_3")
    assert await seen(one) == ["c timed_out"]
