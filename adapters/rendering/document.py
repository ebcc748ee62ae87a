"""The one walk over the Markdown tokens: `parse` turns model text into a `Document`.

It reads CommonMark with tables and strikethrough through markdown-it-py and keeps what a chat can
show. It renders nothing and measures nothing. It loses no text: raw HTML, links whose scheme is
not allowed, cells beyond a table's last column, definitions that no link uses and nesting beyond
`parser.DEEPEST` all stay readable. Only the title of a link (a tooltip) and the address of an image
inside a link are dropped.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from markdown_it.common.utils import unescapeAll
from markdown_it.token import Token

from adapters.rendering.controls import clean
from adapters.rendering.nodes import (
    Block,
    Cell,
    CodeBlock,
    Document,
    Heading,
    Link,
    ListBlock,
    Paragraph,
    Quote,
    Rule,
    Span,
    Style,
    Table,
)
from adapters.rendering.parser import PARSER, split_row

_LANGUAGE = re.compile(r"[A-Za-z0-9_+#.\-]{1,32}")


def parse(text: str) -> Document:
    """Read `text` as Markdown. Never raises: any string has a reading, at worst as prose."""
    source = clean(text)
    return Document(_Blocks(source, PARSER.parse(source, {})).read())


class _Inline:
    """Reads the children of one inline token into spans, joining neighbours that look alike."""

    def __init__(self, *, one_line: bool) -> None:
        self._one_line = one_line
        self._spans: list[Span] = []
        self._styles = [Style.PLAIN]
        self._link: Link | None = None
        self._link_start = 0

    def read(self, tokens: Sequence[Token]) -> tuple[Span, ...]:
        for token in tokens:
            kind = token.type
            if kind == "text":
                self._add(token.content, self._styles[-1])
            elif kind in _STYLES:
                self._styles.append(self._styles[-1] | _STYLES[kind])
            elif kind in _STYLE_ENDS:
                self._styles.pop()
            else:
                _INLINE[kind](self, token)
        return self._trimmed()

    def _add(self, text: str, style: Style, link: Link | None = None) -> None:
        # A character reference such as `&#27;` makes a control character after the first cleaning.
        text = clean(text).replace("\n", " ")
        if not text:
            return
        link = link or self._link
        last = self._spans[-1] if self._spans else None
        if last and last.text != "\n" and last.style == style and last.link is link:
            self._spans[-1] = Span(last.text + text, style, link)
        else:
            self._spans.append(Span(text, style, link))

    def _break(self, _: Token) -> None:
        if self._one_line or self._link is not None:
            self._add(" ", self._styles[-1])
        else:
            self._spans.append(Span("\n"))

    def _code(self, token: Token) -> None:
        self._add(token.content, self._styles[-1] | Style.CODE)

    def _open_link(self, token: Token) -> None:
        self._link, self._link_start = Link(str(token.attrs["href"])), len(self._spans)

    def _close_link(self, _: Token) -> None:
        label = "".join(span.text for span in self._spans[self._link_start :])
        if self._link is not None and not label.strip():
            self._add(self._link.url, self._styles[-1])
        self._link = None

    def _image(self, token: Token) -> None:
        url = str(token.attrs["src"])
        alt = "".join(span.text for span in read_spans(token.children or [], one_line=True))
        self._add(alt.strip() or url, self._styles[-1], self._link or Link(url))

    def _trimmed(self) -> tuple[Span, ...]:
        """Without white space and line breaks at either end."""
        spans, first, last = self._spans, 0, len(self._spans)
        while first < last and not spans[first].text.strip():
            first += 1
        while last > first and not spans[last - 1].text.strip():
            last -= 1
        if first == last:
            return ()
        kept = spans[first:last]
        if Style.CODE not in kept[0].style:
            kept[0] = replace(kept[0], text=kept[0].text.lstrip())
        if Style.CODE not in kept[-1].style:
            kept[-1] = replace(kept[-1], text=kept[-1].text.rstrip())
        return tuple(kept)


_STYLES: Mapping[str, Style] = {
    "strong_open": Style.BOLD,
    "em_open": Style.ITALIC,
    "s_open": Style.STRIKE,
}
_STYLE_ENDS = frozenset({"strong_close", "em_close", "s_close"})
_INLINE: Mapping[str, Callable[[_Inline, Token], None]] = {
    "softbreak": _Inline._break,
    "hardbreak": _Inline._break,
    "code_inline": _Inline._code,
    "link_open": _Inline._open_link,
    "link_close": _Inline._close_link,
    "image": _Inline._image,
}


def read_spans(tokens: Sequence[Token], *, one_line: bool = False) -> tuple[Span, ...]:
    """The spans of an inline token's children; `one_line` turns line breaks into spaces."""
    return _Inline(one_line=one_line).read(tokens)


class _Blocks:
    """Reads the block tokens; one open container is one list on the stack."""

    def __init__(self, source: str, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._lines = source.split("\n")
        self._stack: list[list[Block]] = [[]]
        self._lists: list[_OpenList] = []
        self._table = _OpenTable()
        self._used = _used_labels(tokens)
        self._defined: set[str] = set()

    def read(self) -> tuple[Block, ...]:
        for index, token in enumerate(self._tokens):
            if token.type in _BLOCKS:
                _BLOCKS[token.type](self, token, index)
        return tuple(self._stack[0])

    def _children(self, index: int, *, one_line: bool = False) -> tuple[Span, ...]:
        return read_spans(self._tokens[index + 1].children or [], one_line=one_line)

    def _paragraph(self, token: Token, index: int) -> None:
        if token.hidden and self._lists:
            self._lists[-1].tight = True
        if spans := self._children(index):
            self._stack[-1].append(Paragraph(spans))

    def _heading(self, token: Token, index: int) -> None:
        if spans := self._children(index, one_line=True):
            self._stack[-1].append(Heading(int(token.tag[1]), spans))

    def _code(self, token: Token, _: int) -> None:
        info = clean(unescapeAll(token.info)).strip()
        language, _space, caption = info.partition(" ")
        text = token.content.rstrip("\n")
        if not _LANGUAGE.fullmatch(language) or not text.strip():
            language, caption = "", info
        if caption.strip():
            self._stack[-1].append(Paragraph((Span(caption.strip().replace("\n", " ")),)))
        if text.strip():
            self._stack[-1].append(CodeBlock(text, language))

    def _rule(self, _: Token, __: int) -> None:
        self._stack[-1].append(Rule())

    def _open(self, _: Token, __: int) -> None:
        self._stack.append([])

    def _close_quote(self, _: Token, __: int) -> None:
        blocks = tuple(self._stack.pop())
        self._stack[-1].append(Quote(blocks))

    def _close_item(self, _: Token, __: int) -> None:
        self._lists[-1].items.append(tuple(self._stack.pop()))

    def _list(self, token: Token, _: int) -> None:
        if token.nesting > 0:
            ordered = token.type.startswith("ordered")
            self._lists.append(_OpenList(int(token.attrs.get("start", 1)) if ordered else None))
            return
        done = self._lists.pop()
        self._stack[-1].append(ListBlock(tuple(done.items), done.start, done.tight))

    def _definition(self, token: Token, _: int) -> None:
        label = str(token.meta["id"])
        if label in self._used and label not in self._defined:
            self._defined.add(label)
            return
        title = f' "{token.meta["title"]}"' if token.meta["title"] else ""
        text = clean(f"[{token.meta['label']}]: {token.meta['url']}{title}")
        self._stack[-1].append(Paragraph((Span(text.replace("\n", " ")),)))

    def _row(self, token: Token, _: int) -> None:
        if token.nesting > 0:
            line = token.map[0] if token.map else 0
            self._table.open_row(self._lines[line])
        else:
            self._table.close_row()

    def _cell(self, token: Token, index: int) -> None:
        if token.type == "th_open":
            align = str(token.attrs.get("style", "")).removeprefix("text-align:")
            self._table.aligns.append(align)
        self._table.rows[-1].append(self._children(index, one_line=True))

    def _close_table(self, _: Token, __: int) -> None:
        self._stack[-1].append(self._table.finish())
        self._table = _OpenTable()


class _OpenList:
    def __init__(self, start: int | None) -> None:
        self.start = start
        self.tight = False
        self.items: list[tuple[Block, ...]] = []


class _OpenTable:
    def __init__(self) -> None:
        self.aligns: list[str] = []
        self.rows: list[list[Cell]] = []
        self._source = ""

    def open_row(self, source: str) -> None:
        self.rows.append([])
        self._source = source

    def close_row(self) -> None:
        """The parser drops the cells beyond the last column; they join the last cell."""
        extra = split_row(self._source)[len(self.aligns) :] if len(self.rows) > 1 else []
        if extra:
            spans = read_spans(PARSER.parseInline(" | ".join(extra))[0].children or [])
            self.rows[-1][-1] = (*self.rows[-1][-1], Span(" | "), *spans)

    def finish(self) -> Table:
        rows = [tuple(row) for row in self.rows]
        return Table(tuple(self.aligns), rows[0], tuple(rows[1:]))


_BLOCKS: Mapping[str, Callable[[_Blocks, Token, int], None]] = {
    "paragraph_open": _Blocks._paragraph,
    "heading_open": _Blocks._heading,
    "fence": _Blocks._code,
    "code_block": _Blocks._code,
    "hr": _Blocks._rule,
    "blockquote_open": _Blocks._open,
    "blockquote_close": _Blocks._close_quote,
    "bullet_list_open": _Blocks._list,
    "ordered_list_open": _Blocks._list,
    "list_item_open": _Blocks._open,
    "list_item_close": _Blocks._close_item,
    "bullet_list_close": _Blocks._list,
    "ordered_list_close": _Blocks._list,
    "definition": _Blocks._definition,
    "tr_open": _Blocks._row,
    "th_open": _Blocks._cell,
    "td_open": _Blocks._cell,
    "tr_close": _Blocks._row,
    "table_close": _Blocks._close_table,
}


def _used_labels(tokens: Sequence[Token]) -> set[str]:
    """The labels of the definitions that some link or image of the text points to."""
    return {
        str(child.meta["label"])
        for token in tokens
        for child in token.children or ()
        if "label" in child.meta
    }
