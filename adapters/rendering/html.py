"""Markdown as HTML for the web page, safe by construction.

Only the tags below are ever written, every text and address is escaped, raw HTML of the source is
text, and images are links, so that a page never loads what a model names. Allowed: p, h3 to h6, ul,
ol (start), li (class), blockquote, hr, pre (data-language, tabindex), code (class), div (class,
tabindex, role, aria-label), table, thead, tbody, tr, th (class), td (class), strong, em, del, br,
a (href, rel), input (type, disabled, checked, aria-label), span (class, tabindex) and what
`mathml` writes. Classes, not styles, because of the page's policy. What may be wider than the page
can be scrolled by the keyboard.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from html import escape
from typing import Final

from adapters.rendering.document import parse
from adapters.rendering.highlighting import highlight
from adapters.rendering.leaves import links
from adapters.rendering.mathml import render_math
from adapters.rendering.nodes import (
    Block,
    Cell,
    CodeBlock,
    Heading,
    ListBlock,
    Paragraph,
    Quote,
    Rule,
    Span,
    Style,
    Table,
)
from adapters.rendering.stable_prefix import steady

_TAGS = (
    (Style.CODE, "code"),
    (Style.STRIKE, "del"),
    (Style.ITALIC, "em"),
    (Style.BOLD, "strong"),
)


def render_blocks(text: str) -> Sequence[str]:
    """`text` as balanced HTML, one block element each.

    Headings start at h3, since the page around a message owns the first two levels. A line break of
    the source stays a line break.
    """
    return [_block(block, tight=False) for block in parse(text).blocks]


def render_growing(text: str) -> Sequence[str]:
    """`render_blocks` of a text of which more will come: what is not whole yet is left out or
    closed, so that little of what is shown looks different later."""
    return render_blocks(steady(text))


def _blocks(blocks: Sequence[Block], *, tight: bool = False) -> str:
    return "\n".join(_block(block, tight=tight) for block in blocks)


def _block(block: Block, *, tight: bool) -> str:
    match block:
        case Paragraph(spans):
            return _spans(spans) if tight else f"<p>{_spans(spans)}</p>"
        case Heading(level, spans):
            tag = f"h{min(level + 2, 6)}"
            return f"<{tag}>{_spans(spans)}</{tag}>"
        case CodeBlock(code, language):
            return _code(code, language)
        case Quote(inner):
            return f"<blockquote>\n{_blocks(inner)}\n</blockquote>"
        case ListBlock():
            return _list(block)
        case Table():
            return _table(block)
        case Rule():
            return "<hr>"


def _list(block: ListBlock) -> str:
    tag = "ul" if block.start is None else "ol"
    start = f' start="{block.start}"' if block.start not in (None, 1) else ""
    items = "\n".join(_item(item, tight=block.tight) for item in block.items)
    return f"<{tag}{start}>\n{items}\n</{tag}>"


def _item(item: Sequence[Block], *, tight: bool) -> str:
    first = item[0] if item else None
    found = None
    if isinstance(first, Paragraph) and not first.spans[0].style and first.spans[0].link is None:
        found = _TASK.match(first.spans[0].text)
    if found is None or not isinstance(first, Paragraph):
        return f"<li>{_blocks(item, tight=tight)}</li>"
    done = found[1] != " "
    rest = Span(first.spans[0].text[found.end() :])
    spans = (rest, *first.spans[1:]) if rest.text else first.spans[1:]
    inner = _blocks((Paragraph(spans), *item[1:]), tight=tight)
    box = f'<input type="checkbox" disabled{_DONE if done else _OPEN}>'
    return f'<li class="task">{box} {inner}</li>'


_TASK: Final = re.compile(r"\[([ xX])\](?: +|\Z)")
_DONE: Final = ' checked aria-label="Done"'
_OPEN: Final = ' aria-label="To do"'


@lru_cache(maxsize=256)
def _code(code: str, language: str) -> str:
    label = f' class="language-{escape(language)}"' if language else ""
    named = f' data-language="{escape(language)}"' if language else ""
    pieces = []
    for piece in highlight(code, language):
        text = escape(piece.text)
        pieces.append(f'<span class="hl-{piece.kind}">{text}</span>' if piece.kind else text)
    return f'<pre tabindex="0"{named}><code{label}>{"".join(pieces)}\n</code></pre>'


def _table(table: Table) -> str:
    head = _row(table.header, table.aligns, "th")
    body = "\n".join(_row(row, table.aligns, "td") for row in table.rows)
    body = f"\n<tbody>\n{body}\n</tbody>" if body else ""
    inner = f"<table>\n<thead>\n{head}\n</thead>{body}\n</table>"
    return f'<div class="table-scroll" tabindex="0" role="region" aria-label="Table">{inner}</div>'


def _row(cells: Sequence[Cell], aligns: Sequence[str], tag: str) -> str:
    written = []
    for cell, side in zip(cells, aligns, strict=False):
        label = f' class="align-{side}"' if side else ""
        written.append(f"<{tag}{label}>{_spans(cell)}</{tag}>")
    return f"<tr>{''.join(written)}</tr>"


def _spans(spans: Sequence[Span]) -> str:
    pieces = []
    for link, group in links(spans):
        inner = "".join(map(_span, group))
        if link is None:
            pieces.append(inner)
        else:
            href = escape(link.url)
            pieces.append(f'<a href="{href}" rel="noopener noreferrer nofollow">{inner}</a>')
    return "".join(pieces)


def _span(span: Span) -> str:
    if span.text == "\n":
        return "<br>\n"
    inner = render_math(span.text) if span.style & Style.MATH else escape(span.text)
    if span.style:
        for flag, tag in _TAGS:
            if flag & span.style:
                inner = f"<{tag}>{inner}</{tag}>"
    return inner
