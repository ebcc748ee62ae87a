"""Markdown as Telegram messages: plain text and the entities over it.

Entities need no escaping and cannot fail to parse. Their rules are those of the Bot API
("Formatting options"): offsets and lengths in UTF-16 code units, nested or apart, `pre` and `code`
hold nothing else, quotes do not nest, 100 entities and 4,096 units a message. Tables become `pre`,
a quote inside a list or another quote is marked with `> `. One address that the server does not
take (`mailto:`, a host without a dot) would cost the whole message, so such links are written out.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from adapters.rendering.control_characters import visible
from adapters.rendering.document import parse
from adapters.rendering.leaves import Gutter, Kind, Leaf, flatten, links, without_tabs
from adapters.rendering.message_parts import Ruler, split, utf16_length
from adapters.rendering.nodes import Span, Style, make, unlink

MOST_UNITS = 4096
MOST_ENTITIES = 100

_LINKABLE = re.compile(
    r"https?://(?:(?:[a-z0-9_-]+\.)+[a-z0-9_-]{2,}|\d{1,3}(?:\.\d{1,3}){3})"
    r"(?::(?:\d{1,4}|[1-5]\d{4}))?(?=[/?#]|\Z)",
    re.IGNORECASE,
)
_BULLETS = ("\N{BULLET}", "\N{WHITE BULLET}", "\N{BLACK SMALL SQUARE}")


class Entity(NamedTuple):
    """A stretch of the text: `type` as in the Bot API, `offset` and `length` in UTF-16 units.

    `url` belongs to `text_link`, `language` to `pre`.
    """

    type: str
    offset: int
    length: int
    url: str | None = None
    language: str | None = None


@dataclass(frozen=True, slots=True)
class TelegramPart:
    """One message: `text` of at most 4,096 UTF-16 units, `entities` sorted and at most 100."""

    text: str
    entities: tuple[Entity, ...]


def render_telegram(text: str) -> list[TelegramPart]:
    """`text` as messages in order; an empty list when it holds nothing that could be seen."""
    leaves = [_linkable(leaf) for leaf in flatten(parse(text))]
    if "\t" in text or "&" in text:
        leaves = [without_tabs(leaf) for leaf in leaves]
    parts = [_write(part) for part in split(leaves, _RULER)]
    return [part for part in parts if visible(part.text)]


def plain_telegram(part: TelegramPart) -> list[str]:
    """The part as messages without entities, addresses written out (contract REN-3).

    One message, unless the addresses push the text over the limit.
    """
    units = part.text.encode("utf-16-le")
    pieces, at = [], 0
    for entity in part.entities:
        if entity.type != "text_link" or entity.url is None:
            continue
        end = (entity.offset + entity.length) * 2
        label = units[entity.offset * 2 : end].decode("utf-16-le")
        pieces.append(units[at:end].decode("utf-16-le"))
        at = end
        if label not in (entity.url, entity.url.removeprefix("mailto:")):
            pieces.append(f" ({entity.url})")
    pieces.append(units[at:].decode("utf-16-le"))
    lines: list[Span] = []
    for index, line in enumerate("".join(pieces).split("\n")):
        lines.extend([Span("\n")] * bool(index))
        lines.append(Span(line))
    leaf = Leaf(Kind.TEXT, tuple(span for span in lines if span.text))
    return [_write(leaves).text for leaves in split([leaf], _RULER)]


def _linkable(leaf: Leaf) -> Leaf:
    """The leaf with every link that Telegram refuses written out as `label (address)`."""
    for span in leaf.spans:
        link = span[2]
        if link is not None and not _LINKABLE.match(link.url):
            break
    else:
        return leaf
    spans: list[Span] = []
    for link, group in links(leaf.spans):
        spans += group if link is None or _LINKABLE.match(link.url) else unlink(group)
    return leaf._replace(spans=tuple(spans))


def _span_marks(leaf: Leaf, span: Span) -> int:
    _, style, link = span
    return len(_TYPES[style]) + (link is not None) + (leaf.kind == Kind.HEADING)


def _leaf_marks(leaf: Leaf) -> int:
    """One for `pre`, one for the quote around the leaf."""
    kind, frames = leaf.kind, leaf.frames
    return int(bool(frames) and not frames[0].marker) + (kind == Kind.CODE)


def _entity_types(style: int) -> tuple[str, ...]:
    if style & Style.CODE:
        return ("code",)
    names = ((Style.BOLD, "bold"), (Style.ITALIC, "italic"), (Style.STRIKE, "strikethrough"))
    return tuple(name for flag, name in names if flag & style)


_TYPES = [_entity_types(bits) for bits in Style.EVERY]

_RULER = Ruler(
    limit=MOST_UNITS,
    text=utf16_length,
    span=lambda _: 0,
    # A list marker before code stands on a line of its own.
    leaf=lambda leaf: 1 if leaf.kind == Kind.CODE else 0,
    marks=_span_marks,
    leaf_marks=_leaf_marks,
    most_marks=MOST_ENTITIES,
)


def _write(leaves: Sequence[Leaf]) -> TelegramPart:
    writer = _Writer()
    for leaf in leaves:
        writer.leaf(leaf)
    return writer.finish()


class _Writer:
    def __init__(self) -> None:
        self._gutter = Gutter(outer_quote="", bullets=_BULLETS)
        self._pieces: list[str] = []
        self._at = 0
        self._entities: list[Entity] = []
        self._quote: object = None
        self._quote_start = 0

    def leaf(self, leaf: Leaf) -> None:
        if leaf.kind == Kind.CODE:
            leaf = leaf._replace(spans=(Span(_without_blank_ends(leaf.text)),))
        separator, first, rest = self._gutter.enter(leaf)
        frames = leaf.frames
        outer = frames[0] if frames and not frames[0][0] else None
        if outer is not self._quote:
            self._close_quote()
        self._put(separator)
        if outer is not self._quote:
            self._quote, self._quote_start = outer, self._at
        if leaf.kind == Kind.CODE:
            self._code(leaf, first.rstrip())
        else:
            self._text(leaf, first, rest)

    def finish(self) -> TelegramPart:
        self._close_quote()
        text = "".join(self._pieces).rstrip()
        end = utf16_length(text)
        # The server drops white space in front unless an entity holds it (indented code does).
        lead = 0
        if all(entity.offset for entity in self._entities):
            lead = len(text) - len(text.lstrip())
        text = text[lead:]
        entities = self._entities
        if lead or (entities and max(one.offset + one.length for one in entities) > end):
            entities = [
                one._replace(offset=one.offset - lead, length=min(one.length, end - one.offset))
                for one in entities
                if one.offset < end
            ]
        entities.sort(key=_nesting)
        return TelegramPart(text, tuple(entities))

    def _put(self, text: str) -> None:
        if text:
            self._pieces.append(text)
            self._at += len(text) if text.isascii() else utf16_length(text)

    def _code(self, leaf: Leaf, marker: str) -> None:
        if marker.strip():
            self._put(f"{marker}\n")
        start = self._at
        self._put(leaf.text)
        if self._at > start:
            language = leaf.language or None
            self._entities.append(Entity("pre", start, self._at - start, language=language))

    def _text(self, leaf: Leaf, first: str, rest: str) -> None:
        if leaf.kind == Kind.TEXT and len(leaf.spans) == 1 and leaf.spans[0][1:] == _BARE:
            self._put(first + leaf.spans[0].text)
            return
        self._put(first if leaf.spans else first.rstrip())
        heading = leaf.kind == Kind.HEADING
        for link, group in links(leaf.spans):
            start = self._at
            for text, style, _ in group:
                if text == "\n":
                    self._put(f"\n{rest}")
                    continue
                if link is not None:
                    style &= ~Style.CODE
                if heading and not style & Style.CODE:
                    style |= Style.BOLD
                begin = self._at
                self._put(text)
                if style:
                    self._mark(text, begin, _TYPES[style])
            if link is not None:
                label = "".join(span.text for span in group)
                self._mark(label, start, ("text_link",), url=link.url)

    def _mark(self, text: str, start: int, types: Sequence[str], url: str | None = None) -> None:
        """Entities over `text` at `start`, without the white space at its ends."""
        inside = text.strip()
        if not inside:
            return
        if inside != text:
            start += utf16_length(text[: text.index(inside)])
        length = len(inside) if inside.isascii() else utf16_length(inside)
        for name in types:
            self._entities.append(make(Entity, (name, start, length, url, None)))

    def _close_quote(self) -> None:
        if self._quote is not None and self._at > self._quote_start:
            start = self._quote_start
            self._entities.append(Entity(_QUOTE, start, self._at - start))
        self._quote = None


_BARE = Span("")[1:]
_QUOTE = "blockquote"
_OUTERMOST = (_QUOTE, "text_link")


def _nesting(entity: Entity) -> tuple[int, int, int]:
    """Outer before inner."""
    rank = _OUTERMOST.index(entity.type) if entity.type in _OUTERMOST else len(_OUTERMOST)
    return entity.offset, -entity.length, rank


def _without_blank_ends(code: str) -> str:
    """Without blank lines at either end; the indentation of the first line stays."""
    lines = code.rstrip().split("\n")
    first = next((index for index, line in enumerate(lines) if line.strip()), len(lines))
    return "\n".join(lines[first:])
