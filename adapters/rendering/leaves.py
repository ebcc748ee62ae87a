"""A document as a flat run of leaves, the form in which it is measured, cut and written out.

A leaf is a piece of text or code that stands on lines of its own, together with the quotes and list
items around it. Flattening once keeps every back end free of recursion and makes cutting a matter
of leaves and offsets. Tables become aligned code here and rules a line of dashes, because no chat
platform that is split into messages shows either.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from adapters.rendering.nodes import (
    Block,
    CodeBlock,
    Document,
    Heading,
    Link,
    ListBlock,
    Paragraph,
    Quote,
    Rule,
    Span,
    Table,
    make,
)
from adapters.rendering.tables import align

RULE_TEXT = "\N{EM DASH}" * 3


class Kind:
    """What a leaf is: plain ints, since an `Enum`'s member takes four times as long to look up."""

    TEXT: Final = 0
    HEADING: Final = 1
    CODE: Final = 2


class Frame(NamedTuple):
    """One quote (no marker) or one list item around a leaf. Tell frames apart by `is`.

    `marker` is `-` for a bullet, else the number with its full stop; `depth` counts the lists
    around a list item, itself not included.
    """

    marker: str = ""
    depth: int = 0


class Leaf(NamedTuple):
    """One stretch of lines.

    `spans` of a code leaf is one span whose text holds the line feeds; elsewhere a line feed is a
    span of its own. `frames[opened:]` begin with this leaf, so that their list markers are due.
    `gap` is the number of line feeds before the leaf (2 leaves a blank line), `gutter` the most
    characters that a `Gutter` writes before one of its lines.
    """

    kind: int
    spans: tuple[Span, ...]
    frames: tuple[Frame, ...] = ()
    opened: int = 0
    gap: int = 2
    level: int = 0
    language: str = ""
    gutter: int = 0

    @property
    def text(self) -> str:
        spans = self.spans
        return spans[0].text if len(spans) == 1 else "".join([span.text for span in spans])

    @property
    def bare(self) -> str | None:
        """The text of prose that is one span without a style and a link; None of any other leaf."""
        if self.kind != Kind.TEXT or len(self.spans) != 1:
            return None
        text, style, link = self.spans[0]
        return text if not style and link is None else None


def flatten(document: Document) -> list[Leaf]:
    """The leaves of `document` in reading order. A list item without text still has its leaf."""
    walk = _Walk()
    walk.blocks(document.blocks, _Place(), tight=False)
    return walk.leaves


class _Place(NamedTuple):
    """What is around a block: its frames, how many of them are lists, the width of their gutter."""

    frames: tuple[Frame, ...] = ()
    depth: int = 0
    width: int = 0

    def inside(self, marker: str) -> "_Place":
        frame = make(Frame, (marker, self.depth))
        width = self.width + (len(marker) + 1 if marker else 2)
        return make(_Place, ((*self.frames, frame), self.depth + bool(marker), width))


class _Walk:
    """Depth-first; the parser bounds the depth, so recursion is safe here."""

    def __init__(self) -> None:
        self.leaves: list[Leaf] = []
        self._gap = 2
        # How many frames of the last leaf are still open.
        self._open = 0

    def blocks(self, blocks: Sequence[Block], place: _Place, *, tight: bool) -> None:
        gap = 0
        for block in blocks:
            if gap:
                self._gap = gap
            gap = 1 if tight else 2
            if isinstance(block, Paragraph):
                self._emit(Kind.TEXT, block.spans, place)
            elif isinstance(block, ListBlock):
                self._list(block, place)
            else:
                self._block(block, place)

    def _block(self, block: Block, place: _Place) -> None:
        match block:
            case Heading():
                self._emit(Kind.HEADING, block.spans, place, level=block.level)
            case CodeBlock():
                self._emit(Kind.CODE, (Span(block.text),), place, language=block.language)
            case Table():
                self._emit(Kind.CODE, (Span(align(block)),), place)
            case Quote():
                self._open = min(self._open, len(place.frames))
                self.blocks(block.blocks, place.inside(""), tight=False)
            case Rule():
                self._emit(Kind.TEXT, (Span(RULE_TEXT),), place)

    def _list(self, block: ListBlock, place: _Place) -> None:
        items, start, tight = block
        around = len(place.frames)
        gap = 0
        for index, item in enumerate(items):
            if gap:
                self._gap = gap
            gap = 1 if tight else 2
            if self._open > around:
                self._open = around
            inside = place.inside("-" if start is None else f"{start + index}.")
            before = len(self.leaves)
            self.blocks(item, inside, tight=tight)
            if len(self.leaves) == before:
                self._emit(Kind.TEXT, (), inside)

    def _emit(
        self,
        kind: int,
        spans: tuple[Span, ...],
        place: _Place,
        *,
        level: int = 0,
        language: str = "",
    ) -> None:
        frames, _, width = place
        opened, around = self._open, len(frames)
        if opened > around:
            opened = around
        leaf = make(Leaf, (kind, spans, frames, opened, self._gap, level, language, width))
        self.leaves.append(leaf)
        self._gap, self._open = 2, around


def without_tabs(leaf: Leaf) -> Leaf:
    """The leaf with four spaces for each tab, for where a tab is one space or has no width."""
    if "\t" not in leaf.text:
        return leaf
    spans = (Span(span.text.replace("\t", "    "), span.style, span.link) for span in leaf.spans)
    return leaf._replace(spans=tuple(spans))


class Gutter:
    """Writes what stands left of the leaves of one part: quote marks, list markers, indentation.

    An item whose marker stands in an earlier part is not indented here, since in Markdown an
    indentation without its marker would read as code.
    """

    def __init__(
        self, *, quote: str = "> ", outer_quote: str | None = None, bullets: Sequence[str] = ("-",)
    ) -> None:
        self._quote = quote
        self._outer_quote = quote if outer_quote is None else outer_quote
        self._bullets = bullets
        # What stands before a further line of the last leaf: of its first frames, 0, 1, 2, ...
        self._rests = [""]
        self._started = False

    def enter(self, leaf: Leaf) -> tuple[str, str, str]:
        """What stands between the last leaf and this one, before its first line, before others."""
        _, _, frames, opened, gap, _, _, _ = leaf
        started, self._started = self._started, True
        if not frames:
            return ("\n" if gap == 1 else "\n\n") if started else "", "", ""
        # The leaf before this one in the document is also the one before it in the part.
        shared = opened if started else 0
        rests = self._rests
        del rests[shared + 1 :]
        between = first = rest = rests[shared]
        for index in range(shared, len(frames)):
            marker, depth = frames[index]
            if not marker:
                quote = self._quote if index else self._outer_quote
                first += quote
                rest += quote
            elif index >= opened:
                if marker == "-":
                    marker = self._bullets[min(depth, len(self._bullets) - 1)]
                first += f"{marker} "
                rest += " " * (len(marker) + 1)
            rests.append(rest)
        if not started:
            return "", first, rest
        return "\n" if gap == 1 else f"\n{between.rstrip()}\n", first, rest


def links(spans: Sequence[Span]) -> list[tuple[Link | None, list[Span]]]:
    """Neighbouring spans of the same link together, the others one group between two links."""
    groups: list[tuple[Link | None, list[Span]]] = []
    current: Link | None = None
    group: list[Span] = []
    for span in spans:
        if group and span[2] is current:
            group.append(span)
        else:
            current, group = span[2], [span]
            groups.append((current, group))
    return groups
