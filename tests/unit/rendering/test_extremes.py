"""Inputs that break naive renderers: none raises, none loses text, each is cut within its limit."""

from collections.abc import Callable

import pytest

from adapters.rendering import SlackLimits, render_slack, render_telegram
from adapters.rendering.slack import SLACK_LIMITS
from tests.rendering.texts import render_html, render_plain
from tests.unit.rendering.validators import (
    check_html,
    check_slack,
    check_telegram,
    letters,
    markdown_of,
)

# A link whose label alone exceeds a part goes on in the next one, with its address again.
REPEATED = "(https://e.org)"

EXTREMES: dict[str, Callable[[], str]] = {
    "quotes 1000 deep": lambda: "> " * 1000 + "deep",
    "quotes 1000 deep without spaces": lambda: ">" * 1000 + "deep\nmore",
    "lists 1000 deep": lambda: "- " * 1000 + "deep",
    "lists 300 deep by indentation": lambda: "\n".join("  " * at + f"- a{at}" for at in range(300)),
    "ordered lists deep": lambda: "1. " * 500 + "deep",
    "mixed nesting": lambda: "> - " * 400 + "deep\n" + "> - " * 400 + "again",
    "a fence that never ends": lambda: "```py\n" + "line of code\n" * 8000,
    "a fence that never ends in a quote": lambda: "> ```\n" + "> line\n" * 4000,
    "prose of 200 KB": lambda: "One two three four five. " * 8000,
    "no space in 100 KB": lambda: "x" * 100_000,
    "brackets": lambda: "[" * 5000,
    "images": lambda: "![" * 3000 + "a",
    "stars": lambda: "*" * 20_000 + "a",
    "open emphasis": lambda: "*a **b _c " * 2000,
    "backticks": lambda: "".join("`" * at + " " for at in range(1, 150)) + "a",
    "backticks in code": lambda: "~~~\n" + "`" * 30_000 + "\n~~~",
    "dots": lambda: "." * 30_000,
    "angles": lambda: "<" * 10_000 + "a",
    "ampersands": lambda: "&a" * 10_000,
    "backslashes": lambda: "\\" * 20_001 + "a",
    "a wide table": lambda: "|" + "a|" * 1000 + "\n|" + "-|" * 1000 + "\n" + "b|\n" * 200,
    "a table of one long cell": lambda: (
        "|a|b|\n|-|-|\n|" + "word " * 6000 + "|c|\n" + "|d|e|\n" * 500
    ),
    "definitions": lambda: "".join(f"[a{at}]: https://e.org/{at}\n" for at in range(1500)),
    "spans": lambda: "**a** _b_ `c` " * 2000,
    "a heading of many spans": lambda: "# " + "**a** b " * 600,
    "a long link label": lambda: "[" + "word " * 5000 + "](https://e.org)",
    "long addresses": lambda: ("[a](https://e.org/" + "p" * 2000 + ") ") * 30,
    "an address beyond all limits": lambda: "[a](https://e.org/" + "p" * 20_000 + ")",
    "combining marks": lambda: "a" + "\u0301" * 20_000,
    "spaces with marks": lambda: " \u0301" * 20_000,
    "surrogates": lambda: "\ud800\udc00 \udfff a",
    "no-break spaces": lambda: "\u00a0" * 20_000 + "a",
    "blank lines of code": lambda: "```\n" + "\n" * 30_000 + "a\n```",
    "empty items": lambda: "- \n" * 3000,
}


@pytest.mark.requirement("REN-1", "REN-2")
@pytest.mark.parametrize("name", EXTREMES)
def test_extreme_text_is_rendered_whole(name: str) -> None:
    text = EXTREMES[name]()
    said = render_plain(text)
    for limits in (SLACK_LIMITS, SlackLimits(markdown=0)):
        parts = render_slack(text, limits=limits)
        for slack in parts:
            check_slack(slack, limits)
        if limits.markdown:
            again = "".join(map(render_plain, markdown_of(parts)))
            assert letters(again.replace(REPEATED, "")) == letters(said.replace(REPEATED, ""))
    telegram = render_telegram(text)
    for part in telegram:
        check_telegram(part)
    html, links = check_html(render_html(text))
    if not links and "[a" not in text and "1. " not in text:
        assert letters("".join(part.text for part in telegram)) == letters(said)
        assert letters(html) == letters(said)


@pytest.mark.requirement("REN-2")
@pytest.mark.parametrize("name", [name for name in EXTREMES if "deep" in name])
def test_nesting_beyond_the_deepest_level_loses_no_word(name: str) -> None:
    text = EXTREMES[name]()
    words = [word for word in text.replace(">", " ").split() if word[0].isalpha()]
    shown = " ".join(part.text for part in render_telegram(text))
    assert [word for word in shown.replace(">", " ").split() if word[0].isalpha()] == words
