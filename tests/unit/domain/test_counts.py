"""Numbers with what they count."""

import re
from pathlib import Path

from runtime.domain.counts import counted

ROOT = Path(__file__).parents[3]


def test_one_is_said_without_an_s() -> None:
    assert [counted(number, "file") for number in (0, 1, 1200)] == [
        "0 files",
        "1 file",
        "1,200 files",
    ]
    assert [counted(number, "reply", "replies") for number in (1, 2)] == ["1 reply", "2 replies"]


def test_no_text_leaves_it_to_the_reader_which_plural_is_meant() -> None:
    """``2 problem(s)``: `counted` says it."""
    sources = [
        one for top in ("adapters", "gateway", "runtime") for one in (ROOT / top).rglob("*.py")
    ]
    found = [one.name for one in sources if re.search(r"\} [a-z ]+\(s\)", one.read_text())]
    assert found == []
