"""Colours for code: each piece is what it says, and together they are the code."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.rendering.highlighting import _ALIASES, _LANGUAGES, Piece, highlight
from tests.rendering.texts import render_html
from tests.unit.rendering.test_work import calls
from tests.unit.rendering.validators import check_html

LANGUAGES = sorted({*_LANGUAGES, *_ALIASES})


@pytest.mark.requirement("WEB-3")
@pytest.mark.parametrize(
    ("language", "code", "wanted"),
    [
        ("py", 'def f(x):  # "no"\n    return "#" + 1',
         {"def": "keyword", "f": "name", '# "no"': "comment", '"#"': "text", "1": "number"}),
        ("js", "const a = `x`; // y", {"const": "keyword", "`x`": "text", "// y": "comment"}),
        ("bash", "echo $HOME # x\nls -la", {"$HOME": "name", "# x": "comment", "-la": "name"}),
        ("json", '{"a": "b", "c": null}', {'"a"': "name", '"b"': "text", "null": "keyword"}),
        ("sql", "SELECT 'a' -- b", {"SELECT": "keyword", "'a'": "text", "-- b": "comment"}),
        ("diff", "-old\n+new\n x", {"-old": "removed", "+new": "added"}),
        ("yaml", "key: true # x", {"key": "name", "true": "keyword", "# x": "comment"}),
        ("html", '<a href="x">', {"<a": "keyword", "href": "name", '"x"': "text"}),
        ("rust", "let x = vec![1]; /* a", {"let": "keyword", "vec!": "name", "/* a": "comment"}),
    ],
)  # fmt: skip
def test_pieces_have_their_kind(language: str, code: str, wanted: dict[str, str]) -> None:
    kinds = {piece.text: piece.kind for piece in highlight(code, language) if piece.kind}
    assert wanted.items() <= kinds.items()


@pytest.mark.requirement("WEB-3")
@given(st.text(alphabet="ab1_ \n\t'\"`#/*-+=<>!{}()[]:.\\@$", max_size=200))
def test_the_pieces_are_the_code(code: str) -> None:
    for language in (*LANGUAGES, "nope"):
        assert "".join(piece.text for piece in highlight(code, language)) == code


@pytest.mark.requirement("WEB-3")
@pytest.mark.parametrize("unit", ["a-", '"', "'\\", "- ", "# ", "/*", "a: ", "<a ", "`", "1_", "$"])
def test_twice_the_code_is_twice_the_work(unit: str) -> None:
    """Counted in steps that Python sees; what a pattern does by itself ends within the test."""
    for language in sorted(_LANGUAGES):
        once, twice = (unit * (size // len(unit)) for size in (4_000, 8_000))
        colour = partial(_coloured, language=language)
        # The first time a language is loaded and its patterns are compiled, each when it is needed.
        colour(once)
        assert calls(colour, twice) <= 2.5 * calls(colour, once) + 1_000


@pytest.mark.requirement("WEB-3", "REN-1")
def test_code_says_its_language_and_stays_text() -> None:
    html = render_html('```python\nx = "<script>" # &\n```')
    assert 'data-language="python"' in html
    text, _ = check_html(html)
    assert text == 'x = "<script>" # &\n'


def _coloured(code: str, language: str) -> list[Piece]:
    return list(highlight(code, language))
