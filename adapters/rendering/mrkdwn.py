"""Leaves as Slack's `mrkdwn`: for section blocks, and for the text beside a markdown block.

`& < >` are escaped and mentions defused, so that the only `<` written is that of our own links. The
dialect has no escape for `*`, `_`, `~` and backticks; such characters of the source may be read as
formatting, which changes how a word is set and nothing else. It marks within one line only, knows
no nested quotes, no languages and no code inside a quote.
"""

import re
from collections.abc import Sequence

from adapters.rendering.leaves import Gutter, Kind, Leaf, links
from adapters.rendering.mentions import break_fences, defuse, defuse_url
from adapters.rendering.nodes import Span, Style

_BULLETS = ("\N{BULLET}", "\N{WHITE BULLET}", "\N{BLACK SMALL SQUARE}")
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_ESCAPED = re.compile("[&<>@]")


def _marks(style: int) -> tuple[str, str]:
    """What stands before and behind; each mark in the opposite order at the other end."""
    used = ((Style.STRIKE, "~"), (Style.ITALIC, "_"), (Style.BOLD, "*"))
    after = "".join(mark for flag, mark in used if flag & style)
    return after[::-1], after


_MARKS = [_marks(style) for style in Style.EVERY]


def write_mrkdwn(leaves: Sequence[Leaf]) -> str:
    """The text of one message or section, without white space at its end."""
    gutter = Gutter(bullets=_BULLETS)
    pieces: list[str] = []
    for leaf in leaves:
        separator, first, rest = gutter.enter(leaf)
        pieces.append(separator)
        if leaf.kind == Kind.CODE:
            marker = first.replace("> ", "").strip()
            pieces.append(f"{marker}\n" if marker else "")
            pieces.append(f"```\n{break_fences(_escape(leaf.text))}\n```")
        else:
            line = break_fences(_line(leaf))
            if rest and "\n" in line:
                line = line.replace("\n", f"\n{rest}")
            pieces += (first, line)
    return "".join(pieces).rstrip()


def _line(leaf: Leaf) -> str:
    bare = leaf.bare
    if bare is not None:
        return _escape(bare)
    always = Style.BOLD if leaf.kind == Kind.HEADING else Style.PLAIN
    pieces: list[str] = []
    for link, group in links(leaf.spans):
        if link is None:
            pieces += [
                _span(span, always) if span[1] or always else _escape(span[0]) for span in group
            ]
            continue
        label = "".join([_escape(span.text) for span in group]).replace("|", "\N{BROKEN BAR}")
        linked = f"<{_escape(defuse_url(link.url))}|{label}>"
        style = group[0].style & ~Style.CODE
        if any(span.style != group[0].style for span in group):
            style = Style.PLAIN
        pieces.append(marked(linked, _MARKS[style | always]))
    return "".join(pieces)


def _span(span: Span, always: int) -> str:
    text, style, _ = span
    text = _escape(text)
    if style & Style.CODE:
        return text if "`" in text or not text.strip() else f"`{text}`"
    style |= always
    return marked(text, _MARKS[style]) if style else text


def marked(text: str, mark: tuple[str, str]) -> str:
    """`text` between two marks, the white space at its ends outside of them."""
    inside = text.strip()
    if not inside or not mark[0]:
        return text
    with_marks = f"{mark[0]}{inside}{mark[1]}"
    return with_marks if inside == text else text.replace(inside, with_marks, 1)


def _escape(text: str) -> str:
    return defuse(text).translate(_ESCAPES) if _ESCAPED.search(text) else text
