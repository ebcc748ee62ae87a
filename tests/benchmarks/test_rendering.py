"""The section Rendering of docs/performance.md. Run with ``make bench``; asserts nothing."""

from collections.abc import Callable
from time import process_time

import pytest

from adapters.rendering import render_slack, render_telegram
from adapters.rendering.terminal import render_terminal
from tests.benchmarks.corpora import HOSTILE, ORDINARY
from tests.rendering.texts import render_html

TARGETS: dict[str, Callable[[str], object]] = {
    "Slack": render_slack,
    "Telegram": render_telegram,
    "page": render_html,
    "terminal": lambda text: render_terminal(text, 100),
}
ROUNDS = 7


def milliseconds(render: Callable[[str], object], text: str, rounds: int = ROUNDS) -> float:
    """Processor time of the best of `rounds`, so that other work on the machine counts little."""
    best = float("inf")
    for _ in range(rounds):
        begin = process_time()
        render(text)
        best = min(best, process_time() - begin)
    return best * 1000


@pytest.mark.parametrize("name", ORDINARY)
def test_a_hundred_kilobytes(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    figures = [f"{milliseconds(render, ORDINARY[name]):.0f}" for render in TARGETS.values()]
    with capsys.disabled():
        print(f"\n  | {name} | {' | '.join(figures)} |")


@pytest.mark.parametrize("name", HOSTILE)
def test_twice_the_text_takes_twice_the_time(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    sizes = [HOSTILE[name](size) for size in (50_000, 100_000, 200_000)]
    figures = [
        " / ".join(f"{milliseconds(render, text, 2):.0f}" for text in sizes)
        for render in TARGETS.values()
    ]
    with capsys.disabled():
        print(f"\n  | {name} | {' | '.join(figures)} |")
