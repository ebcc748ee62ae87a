"""Leaves as Slack's `markdown` block: written anew from the tree, never the model's own source.

What the model wrote as text is escaped to stay text, mentions are defused, links carry an address
that was checked. Tables are already code and rules a line of dashes, since the block shows neither.
"""

import re
from collections.abc import Sequence

from adapters.rendering.leaves import Gutter, Kind, Leaf, links
from adapters.rendering.mentions import WORD_JOINER, defuse, defuse_url
from adapters.rendering.mrkdwn import marked
from adapters.rendering.nodes import Span, Style

LONGEST_FENCE = 8
"""Backticks in a row that a fence is lengthened for; longer runs in code are broken."""

_SPECIAL = re.compile(r"[\\`*\[\]<~]|&(?=#?\w+;)|(?<![^\W_])_|_(?![^\W_])")
# What would make a line a list item, a rule, a heading, a quote, a table or the line under one.
_LINE_START = re.compile(
    r"(\d{1,9})[.)](?=\s|$)|[-+](?=\s|$|[-|: ]*$)|#(?=#{0,5}(?:\s|$))|[>|]|:(?=-)|=(?==*\s*$)"
)
_STARTERS = frozenset("0123456789-+#>|:=")
_RISKY = re.compile(r"[\\`*\[\]<~&_@]")
_CALLS = re.compile("[@<]")
_REFERENCE = re.compile(r"&(?=#?\w+;)")
_HEADING_END = re.compile(r"#(?=#*$)")
_RUN = re.compile("`+")
_LONG_RUN = re.compile("`{%d}(?=`)" % LONGEST_FENCE)  # noqa: UP031 - braces of the pattern


def write_markdown(leaves: Sequence[Leaf]) -> str:
    """The text of one markdown block, without white space at its end."""
    gutter = Gutter()
    pieces: list[str] = []
    for leaf in leaves:
        separator, first, rest = gutter.enter(leaf)
        body = _code(leaf) if leaf.kind == Kind.CODE else _prose(leaf)
        if rest and "\n" in body:
            body = body.replace("\n", f"\n{rest}")
        pieces += (separator, first, body)
    return "".join(pieces).rstrip()


def _code(leaf: Leaf) -> str:
    code = defuse(leaf.text)
    if "`" not in code:
        return f"```{leaf.language}\n{code}\n```"
    code = _break_runs(code)
    longest = max(map(len, _RUN.findall(code)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{leaf.language}\n{code}\n{fence}"


def _break_runs(code: str) -> str:
    return _LONG_RUN.sub(lambda found: found[0] + WORD_JOINER, code)


def _prose(leaf: Leaf) -> str:
    bare = leaf.bare
    if bare is not None:
        return _escape_start(_escape(bare).strip())
    pieces: list[str] = []
    for link, group in links(leaf.spans):
        written = [
            _span(group, index) if span[1] else _escape(span[0]) for index, span in enumerate(group)
        ]
        if link is None:
            pieces += written
        else:
            pieces.append(f"[{''.join(written)}]({_url(link.url)})")
    text = "".join(pieces)
    if leaf.kind == Kind.HEADING:
        text = _HEADING_END.sub(r"\\#", _escape_start(text.strip()))
        return f"{'#' * leaf.level} {text}"
    if "\n" not in text:
        return _escape_start(text.strip())
    return "\n".join([_escape_start(line.strip()) for line in text.split("\n")])


def _url(url: str) -> str:
    url = defuse_url(url)
    return _REFERENCE.sub("&amp;", url) if "&" in url else url


def _escape_start(line: str) -> str:
    if line[:1] not in _STARTERS:
        return line
    found = _LINE_START.match(line)
    if found is None:
        return line
    if found[1]:
        return f"{found[1]}\\{line[len(found[1]) :]}"
    return f"\\{line}"


def _span(group: Sequence[Span], index: int) -> str:
    """A span with a style, between its neighbours."""
    text, style, _ = group[index]
    if style & Style.CODE:
        code = _inline_code(text)
        return code if style == Style.CODE else marked(code, _MARKS[style])
    text = _escape(text)
    if not style & Style.ITALIC:
        return marked(text, _MARKS[style])
    before = group[index - 1].text[-1:] if index else ""
    after = group[index + 1].text[:1] if index + 1 < len(group) else ""
    # An underscore inside a word marks nothing.
    inside_word = before.isalnum() or after.isalnum()
    return marked(text, _MARKS_IN_WORD[style] if inside_word else _MARKS[style])


def _escape(text: str) -> str:
    if not _RISKY.search(text):
        return text
    return _SPECIAL.sub(_escaped, defuse(text) if _CALLS.search(text) else text)


def _escaped(found: re.Match[str]) -> str:
    return f"\\{found[0]}"


def _inline_code(text: str) -> str:
    code = defuse(text) if _CALLS.search(text) else text
    if not code.strip():
        return code
    if "`" not in code:
        pad = " " if code[0] == " " or code[-1] == " " else ""
        return f"`{pad}{code}{pad}`"
    code = _break_runs(code)
    fence = "`" * (max(map(len, _RUN.findall(code))) + 1)
    pad = " " if code[0] in "` " or code[-1] in "` " else ""
    return f"{fence}{pad}{code}{pad}{fence}"


def _marks(style: int, italic: str) -> tuple[str, str]:
    used = ((Style.BOLD, "**"), (Style.ITALIC, italic), (Style.STRIKE, "~~"))
    marks = [mark for flag, mark in used if flag & style]
    return "".join(marks), "".join(reversed(marks))


_MARKS = [_marks(style, "_") for style in Style.EVERY]
_MARKS_IN_WORD = [_marks(style, "*") for style in Style.EVERY]
