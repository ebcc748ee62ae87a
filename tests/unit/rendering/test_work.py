"""No input takes more than its length: twice the text is at most about twice the work.

Work is counted in calls, not in seconds: those of our own functions and of the built-in ones that
they call. A factor of two and a half leaves room for what is bounded by a limit, and is far from
the four of a quadratic walk.
"""

import cProfile
from collections.abc import Callable

import pytest

from adapters.rendering import render_slack, render_telegram
from adapters.rendering.terminal import render_terminal
from tests.benchmarks.corpora import HOSTILE, ORDINARY
from tests.rendering.texts import render_html, split_plain

ROOM = 15_000
"""Calls that one cut of a part may need, whatever the length of the text."""


def calls(render: Callable[[str], object], text: str) -> int:
    count = cProfile.Profile()
    count.runcall(render, text)
    return sum(entry.callcount for entry in count.getstats())


TEXTS: dict[str, Callable[[int], str]] = {
    **HOSTILE,
    # Without its language: what is coloured in a terminal is bounded, and costs more than the rest.
    **{
        name: lambda size, text=text: text[:size].replace("```py", "```\n")
        for name, text in ORDINARY.items()
    },
}


@pytest.mark.requirement("REN-2")
@pytest.mark.parametrize("name", TEXTS)
def test_twice_the_text_is_twice_the_work(name: str) -> None:
    once, twice = TEXTS[name](10_000), TEXTS[name](20_000)
    for render in (
        render_slack,
        render_telegram,
        render_html,
        lambda text: split_plain(text, 600),
        lambda text: render_terminal(text, 80),
    ):
        # The first call fills caches.
        render(once[:100])
        assert calls(render, twice) <= 2.5 * calls(render, once) + ROOM
