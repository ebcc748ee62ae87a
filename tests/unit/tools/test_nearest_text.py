"""What a model is told that looks for a text which is nearly there (TOOL-3)."""

import pytest

from runtime.tools.nearest_text import nearest

pytestmark = pytest.mark.requirement("TOOL-3")


@pytest.mark.parametrize(
    ("text", "wanted", "line", "changes"),
    [
        ("one\nlet total = 1\n", "let total = 2", 2, ["-let total = 1", "+let total = 2"]),
        ("one two\none two\n", "one too", 1, ["-one two", "+one too"]),
        ("\tlet total  \r\n", "let total", 1, ["-\\tlet total\\s\\s\\r", "+let total"]),
        ("let total\n", "\tlet total\t", 1, ["-let total", "+\\tlet total\\t"]),
        ("-- a comment here\n", "-- a comment there", 1,
         ["--- a comment here", "+-- a comment there"]),
        ("++count;\n", "++counts;", 1, ["-++count;", "+++counts;"]),
        ("a\nX marks\n", "X marked", 2, ["-X marks", "+X marked"]),
        ("a\n\nlet total = 1\n", "\n\nlet total = 2\n\n", 3, ["-let total = 1", "+let total = 2"]),
        ("head\n  \nlet total = 1\n", "  \nlet total = 2", 2,
         ["-let total = 1", "+let total = 2"]),
        ("let first = 1\nlet other = 2\n", "let first = 1\nlet others = 2", 1,
         ["-let other = 2", "+let others = 2"]),
        ("let total = 1\n" + "x" * 300, "let total = 1\n" + "x" * 301, 1,
         ["(they differ further on)"]),
        ("\n".join(f"line {n} a" for n in range(20)), "\n".join(f"line {n} b" for n in range(20)),
         1, [f"-line {n} a" for n in range(12)]),
    ],
)  # fmt: skip
def test_the_nearest_place_is_shown_with_what_differs(
    text: str, wanted: str, line: int, changes: list[str]
) -> None:
    head = f"the nearest is at line {line} (- in the file, + in old_text):"
    assert nearest(text, wanted) == "\n".join([head, *changes])


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("", "x"), ("abc\n", "xyz"), ("abc\n" * 3, "abcx\n" + "something else\n" * 9), ("a", " ")],
)
def test_where_nothing_is_alike_nothing_is_said(text: str, wanted: str) -> None:
    assert nearest(text, wanted) is None


def test_of_a_long_file_the_first_lines_are_looked_at() -> None:
    far = "\n" * 19_999 + "let total = 1"
    assert "at line 20000 (- in the file, + in the patch)" in str(
        nearest(far, "let total = 2", given="the patch")
    )
    assert nearest(f"\n{far}", "let total = 2") is None
