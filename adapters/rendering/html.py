"""Markdown as HTML for the web page, safe by construction.

Only the tags below are ever written, every text and address is escaped, raw HTML of the source is
text, and images are links, so that a page never loads what a model names. Allowed: p, h3 to h6, ul,
ol (start), li, blockquote, hr, pre, code (class), div (class), table, thead, tbody, tr, th (class),
td (class), strong, em, del, br, a (href, rel). Classes, not styles, because of the page's policy.
"""

from collections.abc import Sequence
from html import escape

from adapters.rendering.document import parse
from adapters.rendering.flow import links
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

_TAGS = (
    (Style.CODE, "code"),
    (Style.STRIKE, "del"),
    (Style.ITALIC, "em"),
    (Style.BOLD, "strong"),
)


def render_html(text: str) -> str:
    """`text` as a balanced HTML fragment, one block element a line.

    Headings start at h3, since the page around a message owns the first two levels. A line break of
    the source stays a line break.
    """
    return "\n".join(_block(block, tight=False) for block in parse(text).blocks)


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
            label = f' class="language-{escape(language)}"' if language else ""
            return f"<pre><code{label}>{escape(code)}\n</code></pre>"
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
    items = "\n".join(f"<li>{_blocks(item, tight=block.tight)}</li>" for item in block.items)
    return f"<{tag}{start}>\n{items}\n</{tag}>"


def _table(table: Table) -> str:
    head = _row(table.header, table.aligns, "th")
    body = "\n".join(_row(row, table.aligns, "td") for row in table.rows)
    body = f"\n<tbody>\n{body}\n</tbody>" if body else ""
    inner = f"<table>\n<thead>\n{head}\n</thead>{body}\n</table>"
    return f'<div class="table-scroll">{inner}</div>'


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
    inner = escape(span.text)
    if span.style:
        for flag, tag in _TAGS:
            if flag & span.style:
                inner = f"<{tag}>{inner}</{tag}>"
    return inner
