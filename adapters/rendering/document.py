"""The one walk over the Markdown events: `parse` turns model text into a `Document`.

It keeps what a chat can show and loses no text: raw HTML, links whose scheme is not allowed, cells
beyond a table's last column, definitions that no link uses and nesting beyond `DEEPEST` all stay
readable. Only the title of a link (a tooltip) and the address of an image inside a link are
dropped. It renders nothing and measures nothing.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from adapters.rendering.control_characters import clean
from adapters.rendering.inline import Inline
from adapters.rendering.nodes import (
    Block,
    Cell,
    CodeBlock,
    Document,
    Heading,
    ListBlock,
    Paragraph,
    Quote,
    Rule,
    Span,
    Style,
    Table,
    make,
)
from adapters.rendering.parser import read_events, unhide

if TYPE_CHECKING:
    # The library's names for a tag where it opens and where it closes are private.
    from pyromark.event import Event
    from pyromark.event import _Tag as StartTag

DEEPEST = 24
"""Block levels that are kept: 24 quotes, or 12 lists (a list and its item are two levels)."""

_LANGUAGE = re.compile(r"[A-Za-z0-9_+#.\-]{1,32}")


def parse(text: str) -> Document:
    """Read `text` as Markdown. Never raises: any string has a reading, at worst as prose."""
    return Document(_Blocks().read(read_events(clean(text))))


class _List:
    """An open list. It is tight until one of its items holds a paragraph of its own."""

    def __init__(self, start: int | None) -> None:
        self.start = start
        self.tight = True
        self.items: list[tuple[Block, ...]] = []


class _Blocks:
    """Reads the events; one open quote or item is one list of blocks on the stack."""

    def __init__(self) -> None:
        self.inline = Inline()
        self.stack: list[list[Block]] = [[]]
        self.owners: list[_List | None] = [None]
        self.lists: list[_List] = []
        self.deep = _Deep(self.inline)
        self.code: list[str] | None = None
        self._info = ""
        self._level = 0
        self.table = _Table()

    def read(self, events: Iterable["Event"]) -> tuple[Block, ...]:
        # Not kept by `self`, which they hold: a cycle would live until the collector comes by.
        inline, opened, closed = self.inline, _opened(self), _closed(self)
        for event in events:
            if isinstance(event, str):
                self.rule() if event == "Rule" else inline.line_break()
            elif "Text" in event:
                inline.add(event["Text"]) if self.code is None else self.code.append(event["Text"])
            elif "Start" in event:
                tag = event["Start"]
                opened[tag]() if isinstance(tag, str) else self._start(tag)
            elif "End" in event:
                end = event["End"]
                closed[end if isinstance(end, str) else next(iter(end))]()
            elif "Html" in event:
                inline.add_lines(event["Html"])
            else:
                self._inside(event)
        self.flush()
        return tuple(self.stack[0])

    def _inside(self, event: "Event") -> None:
        if isinstance(event, str):
            return
        if "Code" in event:
            self.inline.add(event["Code"], Style.CODE)
        elif "InlineHtml" in event:
            self.inline.add(event["InlineHtml"])
        elif "InlineMath" in event:
            self.inline.add(event["InlineMath"], Style.MATH)
        elif "DisplayMath" in event:
            self.inline.add(event["DisplayMath"], Style.MATH)

    def flush(self) -> None:
        """End the paragraph that is being collected, if there is one."""
        if self.inline.pieces and (spans := self.inline.take()):
            self.stack[-1].append(make(Paragraph, (spans,)))

    def rule(self) -> None:
        self.flush()
        self.stack[-1].append(Rule())

    def _start(self, tag: "StartTag") -> None:
        if isinstance(tag, str):
            return
        if "Link" in tag:
            self.inline.open_link(tag["Link"])
        elif "Image" in tag:
            self.inline.open_image(tag["Image"])
        else:
            if self.inline.pieces and not self.deep.marked:
                self.flush()
            if "List" in tag:
                if not self.deep.holds(tag["List"], levels=2):
                    self.lists.append(_List(tag["List"]))
            else:
                self._start_block(tag)

    def _start_block(self, tag: "StartTag") -> None:
        if isinstance(tag, str):
            return
        if "BlockQuote" in tag:
            if not self.deep.holds(None, levels=1, marker="> "):
                self.stack.append([])
                self.owners.append(None)
        elif "CodeBlock" in tag:
            kind = tag["CodeBlock"]
            self.code, self._info = [], kind["Fenced"] if isinstance(kind, dict) else ""
        elif "Table" in tag:
            self.table = _Table(tuple(_ALIGNS[align] for align in tag["Table"]))
        elif "Heading" in tag:
            self._level = int(tag["Heading"]["level"][1])

    def end_list(self) -> None:
        if not self.deep.closes(levels=2):
            done = self.lists.pop()
            block = make(ListBlock, (tuple(done.items), done.start, done.tight))
            self.stack[-1].append(block)

    def end_quote(self) -> None:
        self.flush()
        if not self.deep.closes(levels=1):
            self.owners.pop()
            blocks = tuple(self.stack.pop())
            self.stack[-1].append(Quote(blocks))

    def item(self) -> None:
        if self.deep.numbers:
            self.deep.mark_item()
            return
        self.stack.append([])
        self.owners.append(self.lists[-1])

    def end_item(self) -> None:
        if self.inline.pieces:
            self.flush()
        if not self.deep.numbers:
            self.owners.pop()
            self.lists[-1].items.append(tuple(self.stack.pop()))

    def paragraph(self) -> None:
        owner = self.owners[-1]
        if owner is not None and not self.deep.numbers:
            owner.tight = False

    def heading(self) -> None:
        if spans := self.inline.take(one_line=True):
            self.stack[-1].append(Heading(self._level, spans))

    def end_code(self) -> None:
        text = "".join(self.code or ()).rstrip("\n")
        self.code = None
        info = clean(unhide(self._info)).strip()
        language, _, caption = info.partition(" ")
        if not _LANGUAGE.fullmatch(language) or not text.strip():
            language, caption = "", info
        if caption.strip():
            self.stack[-1].append(Paragraph((Span(caption.strip().replace("\n", " ")),)))
        if text.strip():
            self.stack[-1].append(CodeBlock(text, language))


class _Deep:
    """The containers beyond `DEEPEST`, which are not kept: their markers are text."""

    def __init__(self, inline: Inline) -> None:
        self._inline = inline
        self._level = 0
        # The next number of each such list, None for bullets and quotes; empty where none is open.
        self.numbers: list[int | None] = []
        self._size = -1

    @property
    def marked(self) -> bool:
        """Whether nothing but such markers was collected since the last paragraph."""
        return bool(self.numbers) and len(self._inline.pieces) == self._size

    def holds(self, start: int | None, *, levels: int, marker: str = "") -> bool:
        """Whether a container that opens here, with what belongs to it, is beyond."""
        if not self.numbers and self._level + levels <= DEEPEST:
            self._level += levels
            return False
        self.numbers.append(start)
        self._mark(marker)
        return True

    def mark_item(self) -> None:
        number = self.numbers[-1]
        self._mark("- " if number is None else f"{number}. ")
        if number is not None:
            self.numbers[-1] = number + 1

    def closes(self, *, levels: int) -> bool:
        if self.numbers:
            self.numbers.pop()
            return True
        self._level -= levels
        return False

    def _mark(self, marker: str) -> None:
        marked = self.marked or not self._inline.pieces
        self._inline.add(marker)
        if marked:
            self._size = len(self._inline.pieces)


class _Table:
    def __init__(self, aligns: tuple[str, ...] = ()) -> None:
        self.aligns = aligns
        self.rows: list[list[Cell]] = []

    def finish(self) -> Table:
        """Without the empty cells at the end of rows, of which a hostile table has millions."""
        for row in self.rows[1:]:
            while row and not row[-1]:
                row.pop()
        rows = [tuple(row) for row in self.rows]
        return Table(self.aligns, rows[0], tuple(rows[1:]))


_ALIGNS = {"None": "", "Left": "left", "Center": "center", "Right": "right"}


def _nothing() -> None:
    """What is done at a tag that no handler is named for."""


def _opened(blocks: _Blocks) -> defaultdict[str, Callable[[], object]]:
    inline = blocks.inline
    return defaultdict(
        lambda: _nothing,
        {
            "Strong": partial(inline.open_style, Style.BOLD),
            "Emphasis": partial(inline.open_style, Style.ITALIC),
            "Strikethrough": partial(inline.open_style, Style.STRIKE),
            "Item": blocks.item,
            "Paragraph": blocks.paragraph,
            "HtmlBlock": blocks.flush,
            "TableHead": lambda: blocks.table.rows.append([]),
            "TableRow": lambda: blocks.table.rows.append([]),
            "Subscript": partial(inline.add, "~"),
        },
    )


def _closed(blocks: _Blocks) -> defaultdict[str, Callable[[], object]]:
    inline = blocks.inline
    return defaultdict(
        lambda: _nothing,
        {
            "Strong": inline.close_style,
            "Emphasis": inline.close_style,
            "Strikethrough": inline.close_style,
            "Item": blocks.end_item,
            "List": blocks.end_list,
            "BlockQuote": blocks.end_quote,
            "Paragraph": blocks.flush,
            "HtmlBlock": blocks.flush,
            "Heading": blocks.heading,
            "CodeBlock": blocks.end_code,
            "Table": lambda: blocks.stack[-1].append(blocks.table.finish()),
            "TableCell": lambda: blocks.table.rows[-1].append(inline.take(one_line=True)),
            "Link": inline.close_link,
            "Image": inline.close_image,
            "Subscript": partial(inline.add, "~"),
        },
    )
