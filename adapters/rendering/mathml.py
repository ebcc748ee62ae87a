r"""Mathematics as MathML, which browsers set by themselves. Pure.

`math-core` reads the formulas. What it does not read stays as it was written: `render_math` then
gives the source, which is better than a formula that says something else. The same goes for what
it would leave out without a word, and for whatever it writes outside the list below.
"""

import re
from html import escape
from typing import Final

from math_core import LatexError, LatexToMathML

LONGEST: Final = 2_000
"""Characters of one formula that are read."""
MOST: Final = 400
"""Commands and groups of one formula: the library reads what they nest recursively."""

_DELIMITED: Final = re.compile(
    r"\$\$(?P<b>.+)\$\$|\$(?P<a>[^$]+)\$|\\\[(?P<d>.+)\\\]|\\\((?P<c>.+)\\\)", re.S
)
_NESTS: Final = re.compile(r"[\\{]")
# Numbered rows would show numbers that nobody wrote, and a thousand's comma would part its digits.
_WRITTEN_ANEW: Final = (
    (re.compile(r"(\\(?:begin|end)\{(?:align|equation|gather))\}"), r"\1*}"),
    (re.compile(r"(\\(?:begin|end)\{)split\}"), r"\1aligned}"),
    (re.compile(r"(?<=\d),(?=\d{3}(?!\d))"), "{,}"),
)
_TABLE: Final = re.compile(r"\\begin\{([a-zA-Z]+\*?)\}.*?\\end\{\1\}", re.S)
# Comments and macros vanish, and so does a line break outside of a table: two lines read as one.
_VANISHES: Final = re.compile(
    r"(?<!\\)(?:\\\\)*%|\\(?:[a-z]*(?:def|command)|let|Declare[A-Za-z]+)\b"
)
_BREAK: Final = re.compile(r"\\\\|\\newline")

_TAG: Final = re.compile(r"<[^>]*(?:>|\Z)")
_LISTED: Final = re.compile(
    r"</?(?:math|mrow|mi|mn|mo|mtext|mspace|mfrac|msqrt|mroot|msub|msup|msubsup|munder|mover"
    r"|munderover|mtable|mtr|mtd|b|i|code)(?: [a-z]+=\"[^\"<>]*\")*/?>"
)
_UNLISTED_ATTRIBUTE: Final = re.compile(
    r" (?!(?:display|displaystyle|scriptlevel|stretchy|symmetric|form|lspace|rspace|minsize|maxsize"
    r"|width|linethickness|mathvariant|movablelimits|accent|accentunder)=)[a-z]+=\"[^\"]*\""
)
_LONG: Final = re.compile(r"=\"-?\d{2,}(?:\.\d*)?[a-z]")


def render_math(source: str) -> str:
    """A formula with its dollars or brackets, as it stood in the text."""
    found = _DELIMITED.fullmatch(source)
    if found is None or len(source) > LONGEST or len(_NESTS.findall(source)) > MOST:
        return _as_written(source)
    kind = found.lastgroup or "a"
    latex = found[kind]
    for pattern, instead in _WRITTEN_ANEW:
        latex = pattern.sub(instead, latex)
    if _VANISHES.search(latex) or _BREAK.search(_TABLE.sub("", latex)):
        return _as_written(source)
    converter = LatexToMathML(
        fancy_error=False,
        macros={"mbox": r"\text{#1}"},
        allow_unreliable_rendering=True,
        max_expansions=MOST,
    )
    block = kind in "bd"
    try:
        written = converter.convert_with_local_state(latex, displaystyle=block)
        html = _TAG.sub(_allowed, written)
    except (LatexError, _Unlisted):
        return _as_written(source)
    return f'<span class="formula" tabindex="0">{html}</span>' if block else html


def _as_written(source: str) -> str:
    return f'<code class="math">{escape(source)}</code>'


class _Unlisted(Exception):
    """An element that the page does not show."""


def _allowed(tag: re.Match[str]) -> str:
    """A tag without attributes outside the list. Raises `_Unlisted` for an element outside of it,
    and for a length that would stretch the page."""
    if _LISTED.fullmatch(tag[0]) is None or _LONG.search(tag[0]):
        raise _Unlisted
    return _UNLISTED_ATTRIBUTE.sub("", tag[0])
