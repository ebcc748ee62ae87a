"""Leaves as Slack's `mrkdwn`: for section blocks, and for the text beside a markdown block.

`& < >` are escaped and mentions defused, so that the only `<` written is that of our own links. The
dialect has no escape for `*`, `_`, `~` and backticks; such characters of the source may be read as
formatting, which changes how a word is set and nothing else. It marks within one line only, knows
no nested quotes, no languages and no code inside a quote.
"""

from collections.abc import Sequence

from adapters.rendering.flow import Gutter, Kind, Leaf, links
from adapters.rendering.mentions import break_fences, defuse, defuse_url
from adapters.rendering.nodes import Span, Style

_BULLETS = ("\N{BULLET}", "\N{WHITE BULLET}", "\N{BLACK SMALL SQUARE}")
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_MARKS = ((Style.STRIKE, "~"), (Style.ITALIC, "_"), (Style.BOLD, "*"))


def write_mrkdwn(leaves: Sequence[Leaf]) -> str:
    """The text of one message or section, without white space at its end."""
    gutter = Gutter(bullets=_BULLETS)
    pieces: list[str] = []
    for leaf in leaves:
        separator, first, rest = gutter.enter(leaf)
        pieces.append(separator)
        if leaf.kind is Kind.CODE:
            marker = first.replace("> ", "").strip()
            pieces.append(f"{marker}\n" if marker else "")
            pieces.append(f"```\n{break_fences(_escape(leaf.text))}\n```")
        else:
            pieces.append(first + break_fences(_line(leaf)).replace("\n", f"\n{rest}"))
    return "".join(pieces).rstrip()


def _line(leaf: Leaf) -> str:
    pieces = []
    for link, group in links(leaf.spans):
        if link is None:
            pieces += [_span(span, heading=leaf.kind is Kind.HEADING) for span in group]
            continue
        label = "".join(_escape(span.text) for span in group).replace("|", "\N{BROKEN BAR}")
        linked = f"<{_escape(defuse_url(link.url))}|{label}>"
        style = group[0].style & ~Style.CODE
        if any(span.style != group[0].style for span in group):
            style = Style.PLAIN
        pieces.append(_marked(linked, style, heading=leaf.kind is Kind.HEADING))
    return "".join(pieces)


def _span(span: Span, *, heading: bool) -> str:
    text = _escape(span.text)
    if Style.CODE in span.style:
        return text if "`" in text or not text.strip() else f"`{text}`"
    return _marked(text, span.style, heading=heading)


def _marked(text: str, style: Style, *, heading: bool) -> str:
    if heading:
        style |= Style.BOLD
    inside = text.strip()
    if not style or not inside:
        return text
    before, after = text[: text.index(inside)], text[text.index(inside) + len(inside) :]
    for flag, mark in _MARKS:
        if flag in style:
            inside = f"{mark}{inside}{mark}"
    return f"{before}{inside}{after}"


def _escape(text: str) -> str:
    return defuse(text).translate(_ESCAPES)
