"""Words of a person, shown as they are: no mark of Markdown in them does anything."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.rendering.mentions import WORD_JOINER
from adapters.rendering.telegram import render_telegram
from runtime.features.schedules.reminders import plain

MARKS = "\\`*_[]()<>|~&!$#+-=.:/@{}^'\" 1ab\n"


def shown(text: str) -> tuple[str, bool]:
    """What is seen behind "Reminder: ", and whether any of it is marked up."""
    (part,) = render_telegram(f"Reminder: {plain(text)}")
    return part.text.removeprefix("Reminder: "), bool(part.entities)


@pytest.mark.parametrize(
    "text",
    [
        "*bold* _it_ `code` ~~gone~~ ||hidden|| $x$",
        "[a](https://example.com) ![b](c) <b>x</b> &amp; <!here>",
        "first\n- one\n+ two\n1. three\n2) four\n# five\n> six\n===\n---",
        "a | b\n--|--\n1 | 2",
        "write to ann@example.com at 9:30, see https://example.com/a_b_c",
    ],
)
def test_marks_are_words(text: str) -> None:
    assert shown(text) == (text, False)


@given(st.text(MARKS, min_size=1, max_size=60).map(lambda text: f"x{text}x"))
def test_no_mark_marks(text: str) -> None:
    words, marked = shown(text)
    assert not marked
    assert words.replace(WORD_JOINER, "").split() == text.split()


def test_nobody_is_called() -> None:
    assert plain("@channel and @bob, not a@b") == (
        f"@{WORD_JOINER}channel and @{WORD_JOINER}bob, not a@b"
    )
