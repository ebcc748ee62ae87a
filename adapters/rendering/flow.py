"""A document as a flat run of leaves, the form in which it is measured, cut and written out.

A leaf is a piece of text or code that stands on lines of its own, together with the quotes and list
items around it. Flattening once keeps every back end free of recursion and makes cutting a matter
of leaves and offsets. Tables become aligned code here and rules a line of dashes, because no chat
platform that is split into messages shows either.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple

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
)
from adapters.rendering.tables import align

RULE_TEXT = "\N{EM DASH}" * 3


class Kind(Enum):
    """What a leaf is."""

    TEXT = auto()
    HEADING = auto()
    CODE = auto()


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """One quote (no marker) or one list item around a leaf. Frames compare by identity.

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

    kind: Kind
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


def flatten(document: Document) -> list[Leaf]:
    """The leaves of `document` in reading order. A list item without text still has its leaf."""
    walk = _Walk()
    walk.blocks(document.blocks, (), tight=False)
    return walk.leaves


class _Walk:
    """Depth-first; the parser bounds the depth, so recursion is safe here."""

    def __init__(self) -> None:
        self.leaves: list[Leaf] = []
        self._gap = 2
        self._open: tuple[Frame, ...] = ()
        self._width = 0

    def blocks(self, blocks: Sequence[Block], frames: tuple[Frame, ...], *, tight: bool) -> None:
        for index, block in enumerate(blocks):
            if index:
                self._gap = 1 if tight else 2
            self._block(block, frames)

    def _block(self, block: Block, frames: tuple[Frame, ...]) -> None:
        match block:
            case Paragraph():
                self._emit(Kind.TEXT, block.spans, frames)
            case ListBlock():
                self._list(block, frames)
            case Heading():
                self._emit(Kind.HEADING, block.spans, frames, level=block.level)
            case CodeBlock():
                self._emit(Kind.CODE, (Span(block.text),), frames, language=block.language)
            case Table():
                self._emit(Kind.CODE, (Span(align(block)),), frames)
            case Quote():
                self.blocks(block.blocks, (*frames, Frame()), tight=False)
            case Rule():
                self._emit(Kind.TEXT, (Span(RULE_TEXT),), frames)

    def _list(self, block: ListBlock, frames: tuple[Frame, ...]) -> None:
        depth = sum(1 for frame in frames if frame.marker)
        for index, item in enumerate(block.items):
            if index:
                self._gap = 1 if block.tight else 2
            marker = "-" if block.start is None else f"{block.start + index}."
            inside = (*frames, Frame(marker, depth))
            before = len(self.leaves)
            self.blocks(item, inside, tight=block.tight)
            if len(self.leaves) == before:
                self._emit(Kind.TEXT, (), inside)

    def _emit(
        self,
        kind: Kind,
        spans: tuple[Span, ...],
        frames: tuple[Frame, ...],
        *,
        level: int = 0,
        language: str = "",
    ) -> None:
        opened = 0
        if frames:
            opened = _shared(self._open, frames)
            if frames is not self._open:
                self._width = sum(len(one.marker) + 1 if one.marker else 2 for one in frames)
        self._open = frames
        gap, self._gap = self._gap, 2
        width = self._width if frames else 0
        self.leaves.append(Leaf(kind, spans, frames, opened, gap, level, language, width))


def _shared(left: Sequence[Frame], right: Sequence[Frame]) -> int:
    count = 0
    for one, other in zip(left, right, strict=False):
        if one is not other:
            break
        count += 1
    return count


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
        self._indents: dict[Frame, str] = {}
        self._started = False

    def enter(self, leaf: Leaf) -> tuple[str, str, str]:
        """What stands between the last leaf and this one, before its first line, before others."""
        frames, opened = leaf.frames, leaf.opened
        if not frames:
            separator = ("\n" if leaf.gap == 1 else "\n\n") if self._started else ""
            self._started = True
            return separator, "", ""
        # The leaf before this one in the document is also the one before it in the part.
        shared = opened if self._started else 0
        first, rest, between = "", "", ""
        for index, frame in enumerate(frames):
            if index == shared:
                between = rest
            if not frame.marker:
                quote = self._quote if index else self._outer_quote
                first += quote
                rest += quote
            elif index >= opened:
                marker = self._bullet(frame) if frame.marker == "-" else frame.marker
                first += f"{marker} "
                indent = self._indents[frame] = " " * (len(marker) + 1)
                rest += indent
            elif frame in self._indents:
                first += self._indents[frame]
                rest += self._indents[frame]
        if shared == len(frames):
            between = rest
        separator = ""
        if self._started:
            separator = "\n" if leaf.gap == 1 else f"\n{between.rstrip()}\n"
        self._started = True
        return separator, first, rest

    def _bullet(self, frame: Frame) -> str:
        return self._bullets[min(frame.depth, len(self._bullets) - 1)]


def links(spans: Sequence[Span]) -> list[tuple[Link | None, list[Span]]]:
    """Neighbouring spans of the same link together, the others one group between two links."""
    groups: list[tuple[Link | None, list[Span]]] = []
    if len(spans) == 1:
        return [(spans[0].link, [spans[0]])]
    for span in spans:
        if groups and groups[-1][0] is span.link:
            groups[-1][1].append(span)
        else:
            groups.append((span.link, [span]))
    return groups
