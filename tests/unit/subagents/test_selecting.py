"""SUB-4: which agent a selector names, and where each stands in one word."""

from typing import get_args

import pytest

from runtime.domain.errors import InvalidInput
from runtime.features.subagents.agent_messages import How
from runtime.features.subagents.agent_selectors import below, select
from runtime.features.subagents.rows.agent_tree import AgentRow
from runtime.features.subagents.rows.agents import Agent
from runtime.features.subagents.tools import TOLD

pytestmark = pytest.mark.requirement("SUB-4")


def agent(name: str, place: int, parent: str = "ses_root", label: str = "") -> Agent:
    return Agent(
        session_id=f"ses_{name}",
        tree_id="ses_root",
        parent_id=parent,
        name=name,
        place=place,
        depth=1,
        type="explore",
        task="Look.",
        mode="await",
        on_failure="fail",
        run_id="run_1",
        step=1,
        call_place=0,
        created_ms=0,
        label=label,
    )


TREE = [
    agent("explore-1", 1, label="docs"),
    agent("explore-10", 2, label="docs"),
    agent("plan-3", 3, parent="ses_explore-1", label="sea"),
    agent("sea", 4, parent="ses_plan-3"),
    agent("reader", 5),
]


@pytest.mark.parametrize(
    ("selector", "name"),
    [
        ("explore-1", "explore-1"),
        (" explore-10 ", "explore-10"),
        ("ses_plan-3", "plan-3"),
        ("sea", "sea"),
        ("pl", "plan-3"),
        ("last", "reader"),
    ],
)
def test_an_id_goes_before_a_label_and_that_before_a_beginning(selector: str, name: str) -> None:
    assert select(TREE, selector, caller="ses_root").name == name


def test_a_label_names_an_agent_and_last_is_below_the_caller() -> None:
    assert select(TREE[:3], "sea", caller="ses_root").name == "plan-3"
    assert select(TREE, "last", caller="ses_explore-1").name == "sea"
    named = [*TREE, agent("last", 6), agent("new", 7)]
    assert select(named, "last", caller="ses_root").name == "last"


@pytest.mark.parametrize(
    ("selector", "said"),
    [
        ("explore", "'explore' fits explore-1 (docs), explore-10 (docs): give the whole id"),
        ("docs", "'docs' fits explore-1 (docs), explore-10 (docs)"),
        ("raeder", "no agent of this tree is 'raeder'; near it: reader"),
        ("zzz", "there are explore-1 (docs), explore-10 (docs), plan-3, sea, reader"),
        ("  ", "say which agent"),
        ("x" * 500, f"no agent of this tree is '{'x' * 77}...'"),
        ("a\u3164b\ufe0f", r"no agent of this tree is 'a\u{3164}b\u{fe0f}'"),
    ],
)
def test_what_names_none_or_several_is_an_error_that_lists_them(selector: str, said: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        select(TREE, selector, caller="ses_root")
    assert said in str(caught.value)


def test_last_names_nobody_where_the_caller_has_no_child() -> None:
    with pytest.raises(InvalidInput, match="no agent of this tree is 'last'"):
        select(TREE, "last", caller="ses_reader")


def test_descendants_are_those_at_any_depth_and_nobody_else() -> None:
    assert [one.name for one in below(TREE, "ses_explore-1")] == ["plan-3", "sea"]
    assert len(below(TREE, "ses_root")) == len(TREE)
    assert list(below(TREE, "ses_other")) == []


ROW = AgentRow(agent("one", 1), standing="awaiting", run=None, run_id=None)


def test_however_a_word_gets_there_the_speaker_is_told() -> None:
    """Also where a call that runs again said it before."""
    assert set(TOLD) == set(get_args(How))
