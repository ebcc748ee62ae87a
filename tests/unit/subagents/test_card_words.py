"""What the card of a batch says: to people, and within what a platform takes in one message."""

from dataclasses import replace

import pytest

from runtime.features.subagents.batch_card import last_words, words
from runtime.features.subagents.rows.agents import Agent, Status
from tests.unit.subagents.test_selecting import ROW, agent

pytestmark = pytest.mark.requirement("SUB-7")
LEAST_OF_PLATFORMS = 4_096
"""Characters of one message in Telegram; Slack takes more."""


def ended(name: str, status: Status) -> Agent:
    return replace(agent(name, 1), status=status, settled_ms=61_000, steps=1, input_tokens=10)


def test_it_says_what_a_live_one_waits_for_in_words() -> None:
    asks = replace(ROW, standing="waiting_for_approval", steps=1, tokens=1_800)
    assert words([asks, ROW]).splitlines() == [
        "**2 subagents at work**, 0 done",
        r'- `one` ("Look\.") explore: waiting for approval, 1 step, 1,800 tokens',
        r'- `one` ("Look\.") explore: awaiting',
    ]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"label": "north", "description": "looks north"}, ' ("north")'),
        ({"description": "looks north"}, ' ("looks north")'),
        (
            {"task": "Look north,\nand\u202e\x1b[1m *say* what"},
            r' ("Look north\, and \[1m \*say\* what")',
        ),
        ({"task": "n" * 100_000}, f' ("{"n" * 37}\\.\\.\\.")'),
        ({"task": ""}, ""),
    ],
)
def test_it_says_what_each_is_there_for(given: dict[str, str], said: str) -> None:
    row = replace(ROW, agent=replace(ROW.agent, **given))
    assert words([row]).splitlines()[1] == f"- `one`{said} explore: awaiting"


def test_the_longest_one_is_a_single_message() -> None:
    long = replace(ROW.agent, name="n" * 64, label="*" * 80, type="t" * 64)
    rows = [replace(ROW, agent=long, asks=1, steps=50, tokens=10**9, cost_usd=999.9999)] * 64
    text = words(rows)
    assert len(text) < LEAST_OF_PLATFORMS
    assert text.endswith("- and 52 more: `/agents` shows them")
    ends: list[Status] = ["completed", "failed", "cancelled", "timed_out", "forced"]
    last = last_words([ended("n" * 64, ends[place % 5]) for place in range(64)])
    assert len(last) < LEAST_OF_PLATFORMS


def test_at_the_end_it_names_who_ended_how() -> None:
    lost = [ended(f"lost-{place}", "failed") for place in range(5)]
    several = [ended("a", "completed"), ended("b", "timed_out"), *lost]
    assert last_words(several).startswith(
        "**7 subagents**: 1 completed, 1 timed out (`b`), "
        "5 failed (`lost-0`, `lost-1`, `lost-2` and 2 more). 7 steps, 70 tokens, 1 min 1 s."
    )
    assert last_words(lost).startswith("**5 subagents**: 5 failed. ")
