"""Leaves as Slack's `markdown` block: written anew from the tree, never the model's own source.

What the model wrote as text is escaped to stay text, mentions are defused, links carry an address
that was checked. Tables are already code and rules a line of dashes, since the block shows neither.
"""

import re
from collections.abc import Sequence

from adapters.rendering.flow import Gutter, Kind, Leaf, links
from adapters.rendering.mentions import WORD_JOINER, defuse, defuse_url
from adapters.rendering.nodes import Span, Style

LONGEST_FENCE = 8
"""Backticks in a row that a fence is lengthened for; longer runs in code are broken."""

_SPECIAL = re.compile(r"[\\`*\[\]<~]|&(?=#?\w+;)|(?<![^\W_])_|_(?![^\W_])")
# What would make a line a list item, a rule, a heading, a quote, a table or the line under one.
_LINE_START = re.compile(
    r"(\d{1,9})[.)](?=\s|$)|[-+](?=\s|$|[-|: ]*$)|#(?=#{0,5}(?:\s|$))|[>|]|:(?=-)|=(?==*\s*$)"
)
_HEADING_END = re.compile(r"#(?=#*$)")
_RUN = re.compile("`+")
_LONG_RUN = re.compile("`{%d}(?=`)" % LONGEST_FENCE)  # noqa: UP031 - braces of the pattern


def write_markdown(leaves: Sequence[Leaf]) -> str:
    """The text of one markdown block, without white space at its end."""
    gutter = Gutter()
    pieces: list[str] = []
    for leaf in leaves:
        separator, first, rest = gutter.enter(leaf)
        body = _code(leaf) if leaf.kind is Kind.CODE else _prose(leaf)
        pieces += (separator, first, body.replace("\n", f"\n{rest}"))
    return "".join(pieces).rstrip()


def _code(leaf: Leaf) -> str:
    code = _break_runs(defuse(leaf.text))
    longest = max(map(len, _RUN.findall(code)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{leaf.language}\n{code}\n{fence}"


def _break_runs(code: str) -> str:
    return _LONG_RUN.sub(lambda found: found[0] + WORD_JOINER, code)


def _prose(leaf: Leaf) -> str:
    pieces = []
    for link, group in links(leaf.spans):
        inner = "".join(_span(group, index) for index in range(len(group)))
        pieces.append(inner if link is None else f"[{inner}]({_url(link.url)})")
    lines = [_escape_start(line.strip()) for line in "".join(pieces).split("\n")]
    if leaf.kind is Kind.HEADING:
        text = _HEADING_END.sub(r"\\#", " ".join(lines))
        return f"{'#' * leaf.level} {text}"
    return "\n".join(lines)


def _url(url: str) -> str:
    return re.sub(r"&(?=#?\w+;)", "&amp;", defuse_url(url))


def _escape_start(line: str) -> str:
    found = _LINE_START.match(line)
    if found is None:
        return line
    if found[1]:
        return f"{found[1]}\\{line[len(found[1]) :]}"
    return f"\\{line}"


def _span(group: Sequence[Span], index: int) -> str:
    text, style = group[index].text, group[index].style
    if text == "\n" or not style:
        return _SPECIAL.sub(r"\\\g<0>", defuse(text))
    if Style.CODE in style:
        return _marked(_inline_code(text), style)
    before = group[index - 1].text[-1:] if index else ""
    after = group[index + 1].text[:1] if index + 1 < len(group) else ""
    # An underscore inside a word marks nothing.
    italic = "*" if before.isalnum() or after.isalnum() else "_"
    return _marked(_SPECIAL.sub(r"\\\g<0>", defuse(text)), style, italic)


def _inline_code(text: str) -> str:
    code = _break_runs(defuse(text))
    if not code.strip():
        return code
    longest = max(map(len, _RUN.findall(code)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if code[0] in "` " or code[-1] in "` " else ""
    return f"{fence}{pad}{code}{pad}{fence}"


def _marked(text: str, style: Style, italic: str = "_") -> str:
    inside = text.strip()
    if not inside:
        return text
    start = text.index(inside)
    before, after = text[:start], text[start + len(inside) :]
    for flag, mark in ((Style.STRIKE, "~~"), (Style.ITALIC, italic), (Style.BOLD, "**")):
        if flag in style:
            inside = f"{mark}{inside}{mark}"
    return f"{before}{inside}{after}"
