"""Which lines a read gives of a file of any size, and what it says of the rest (TOOL-3)."""

import os
from pathlib import Path

import pytest

from runtime.tools.builtin.line_range import BUDGET, Window, window

pytestmark = pytest.mark.requirement("TOOL-3")
PIECE = 64 * 1024


def read(path: Path, content: bytes, offset: int, limit: int | None) -> Window:
    path.write_bytes(content)
    handle = os.open(path, os.O_RDONLY)
    try:
        return window(handle, offset, limit)
    finally:
        os.close(handle)


@pytest.mark.parametrize(
    ("content", "offset", "limit", "text", "more"),
    [
        (b"a\nb\nc\n", 1, None, b"a\nb\nc\n", False),
        (b"a\nb\nc\n", 2, 1, b"b\n", True),
        (b"a\nb\nc\n", 2, 2, b"b\nc\n", False),
        (b"a\nb", 2, 5, b"b", False),
        (b"x" * (BUDGET - 1) + b"\n", 1, None, b"x" * (BUDGET - 1) + b"\n", False),
        (b"x" * (BUDGET - 1) + b"\nb", 1, None, b"x" * (BUDGET - 1) + b"\n", True),
        (b"a\n" + b"x" * BUDGET + b"\n", 1, None, b"a\n", True),
        (b"x" * (PIECE - 1) + b"\nb\n", 2, None, b"b\n", False),
        (b"x" * PIECE + b"\nb\n", 2, None, b"b\n", False),
        (b"x" * (3 * PIECE) + b"\nb\nc\n", 2, 1, b"b\n", True),
    ],
)
def test_lines_come_whole_and_what_follows_is_said(
    tmp_path: Path, content: bytes, offset: int, limit: int | None, text: bytes, more: bool
) -> None:
    part = read(tmp_path / "f", content, offset, limit)
    lines = len(text.splitlines())
    assert bytes(part.text) == text
    assert (part.first, part.lines, part.more, part.long) == (offset, lines, more, 0)
    assert (part.seen, part.last) == (offset - 1, offset + lines - 1)


@pytest.mark.parametrize("length", [BUDGET + 1, PIECE, 3 * PIECE])
@pytest.mark.parametrize(("rest", "more"), [(b"", False), (b"\n", False), (b"\nb", True)])
def test_of_a_line_that_alone_is_too_long_the_beginning_comes(
    tmp_path: Path, length: int, rest: bytes, more: bool
) -> None:
    part = read(tmp_path / "f", b"x" * length + rest, 1, None)
    assert bytes(part.text) == b"x" * BUDGET
    assert (part.lines, part.more, part.long) == (1, more, BUDGET)


@pytest.mark.parametrize(("content", "seen"), [(b"", 0), (b"a", 1), (b"a\n", 1), (b"a\nb", 2)])
def test_behind_the_end_the_lines_that_there_are_were_counted(
    tmp_path: Path, content: bytes, seen: int
) -> None:
    part = read(tmp_path / "f", content, 9, None)
    assert (part.seen, part.lines, part.more) == (seen, 0, False)
