"""The tree that a Markdown text becomes: frozen values, blocks with flat runs of text inside.

The tree says what the text is, never how a platform shows it. What comes by the ten thousand
(spans, paragraphs, lists) is a named tuple, and made by `make` where it is made by the thousand:
that takes a third of the time of the class's own constructor, and of a frozen dataclass.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

make = tuple.__new__
"""`make(Span, (text, style, link))` is `Span(text, style, link)`; all fields must be given."""


class Style:
    """How a run of text is set: bits of a plain int, since spans come by the ten thousand."""

    PLAIN: Final = 0
    BOLD: Final = 1
    ITALIC: Final = 2
    STRIKE: Final = 4
    CODE: Final = 8
    MATH: Final = 16
    """A formula; its text is the source with the signs around it."""
    EVERY: Final = range(32)
    """Every combination."""


@dataclass(frozen=True, slots=True, eq=False)
class Link:
    """Where a run of text leads. `url` is absolute (http, https, mailto), 2,048 characters at most.

    Links compare by identity: neighbouring spans with the same `Link` were one link in the source.
    """

    url: str


class Span(NamedTuple):
    """A run of text with one style. A line break is a span of its own whose text is a line feed."""

    text: str
    style: int = Style.PLAIN
    link: Link | None = None


class Paragraph(NamedTuple):
    """Prose. `spans` may hold line breaks and is not empty."""

    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of `level` 1 to 6, on one line."""

    level: int
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """Literal lines, not all blank, without the last line feed. `language` may be empty."""

    text: str
    language: str = ""


@dataclass(frozen=True, slots=True)
class Quote:
    """A block quote."""

    blocks: tuple["Block", ...]


class ListBlock(NamedTuple):
    """A list. `start` is the first number of an ordered list and None for a bulleted one.

    A `tight` list has no blank lines between its items.
    """

    items: tuple[tuple["Block", ...], ...]
    start: int | None
    tight: bool


Cell = tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table. Each row has as many cells as `aligns` ("", "left", "center" or "right")."""

    aligns: tuple[str, ...]
    header: tuple[Cell, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """A thematic break."""


Block = Paragraph | Heading | CodeBlock | Quote | ListBlock | Table | Rule


@dataclass(frozen=True, slots=True)
class Document:
    """The blocks of one text, in order."""

    blocks: tuple[Block, ...]


def unlink(spans: Sequence[Span]) -> tuple[Span, ...]:
    """The same spans with each link written out as `label (address)`, and only once where equal."""
    for span in spans:
        if span[2] is not None:
            break
    else:
        return tuple(spans)
    out: list[Span] = []
    for index, span in enumerate(spans):
        if span.link is None:
            out.append(span)
            continue
        out.append(Span(span.text, span.style))
        following = spans[index + 1].link if index + 1 < len(spans) else None
        url = span.link.url
        if following is not span.link and span.text not in (url, url.removeprefix("mailto:")):
            out.append(Span(f" ({url})"))
    return tuple(out)
