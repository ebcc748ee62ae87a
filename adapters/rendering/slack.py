"""Markdown as Slack messages: blocks, and the text that stands in for them.

Limits are Slack's: 12,000 characters over the markdown blocks of a message, 3,000 in a section, 50
blocks, 40,000 characters of text. Characters are counted as UTF-16 units, the larger of the two
ways to count. A part is one message; its `text` is mrkdwn that may be sent alone (contract REN-3).
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from adapters.rendering.control_characters import visible
from adapters.rendering.document import parse
from adapters.rendering.leaves import Kind, Leaf, flatten
from adapters.rendering.mentions import defuse_url
from adapters.rendering.message_parts import Ruler, split, utf16_length
from adapters.rendering.mrkdwn import write_mrkdwn
from adapters.rendering.nodes import Span, Style
from adapters.rendering.slack_markdown import LONGEST_FENCE, write_markdown

Block = dict[str, str | dict[str, str]]


@dataclass(frozen=True, slots=True)
class SlackLimits:
    """What one message may hold.

    `markdown` is the room of the markdown block; 0 means that the surface takes none, and sections
    of mrkdwn are written instead, of `section` characters each and `sections_total` together (Slack
    refuses larger messages without naming the number). Leave room in `blocks` for buttons.
    """

    markdown: int = 12_000
    section: int = 3_000
    sections_total: int = 12_000
    blocks: int = 50
    text: int = 40_000


SLACK_LIMITS = SlackLimits()


@dataclass(frozen=True, slots=True)
class SlackPart:
    """One message: `blocks` to show, `text` for notifications and as the fallback."""

    text: str
    blocks: tuple[Block, ...]


def render_slack(text: str, *, limits: SlackLimits = SLACK_LIMITS) -> list[SlackPart]:
    """`text` as messages in order; an empty list when it holds no text at all.

    Raises ValueError when a limit cannot hold nested text (`message_parts.SMALLEST_LIMIT`).
    """
    leaves = flatten(parse(text))
    if limits.markdown:
        # The fallback of a markdown block is at most 3.3 times as long (see the costs below).
        limit = min(limits.markdown, limits.text * 3 // 10)
        return [
            SlackPart(write_mrkdwn(part), ({"type": "markdown", "text": written},))
            for part in split(leaves, _ruler(limit, _markdown_cost, _markdown_span))
            if visible(written := write_markdown(part))
        ]
    ruler = _ruler(limits.section, _mrkdwn_cost, _mrkdwn_span)
    sections = [written for part in split(leaves, ruler) if visible(written := write_mrkdwn(part))]
    return _pack(sections, limits)


def _pack(sections: Sequence[str], limits: SlackLimits) -> list[SlackPart]:
    """Sections together in as few messages as the limits allow."""
    parts: list[SlackPart] = []
    current: list[str] = []
    room = most = min(limits.sections_total, limits.text)
    for section in sections:
        size = utf16_length(section) + 2
        if current and (size > room or len(current) == limits.blocks):
            parts.append(_sections(current))
            current, room = [], most
        current.append(section)
        room -= size
    if current:
        parts.append(_sections(current))
    return parts


def _sections(texts: Sequence[str]) -> SlackPart:
    blocks: list[Block] = [
        {"type": "section", "text": {"type": "mrkdwn", "text": text}} for text in texts
    ]
    return SlackPart("\n\n".join(texts), tuple(blocks))


_COSTLY = re.compile(r"[\\`*_\[\]~&<>@#\n]")
_ENTITIES = re.compile("[&<>]")
_JOINED = re.compile("[`@<]")
_STYLE_COST = [4 * bits.bit_count() for bits in Style.EVERY]


def _markdown_cost(text: str) -> int:
    """A backslash or a joiner for what may need one, two for `<`, one for the start of each line.

    `& >` count double in code too: the mrkdwn beside the block writes them as entities, and the
    cost of a part bounds the length of both.
    """
    length = len(text) if text.isascii() else utf16_length(text)
    costly = _COSTLY.findall(text)
    return length + 1 + len(costly) + text.count("<") if costly else length + 1


def _mrkdwn_cost(text: str) -> int:
    """`&amp;`, `&lt;` and `&gt;` add at most four, a joiner one."""
    cost = utf16_length(text)
    if _COSTLY.search(text):
        cost += 4 * len(_ENTITIES.findall(text)) + len(_JOINED.findall(text))
    return cost


def _markdown_span(span: Span) -> int:
    text, style, link = span
    cost = _STYLE_COST[style]
    if link is not None:
        cost += _link_cost(span)
    if style & Style.CODE and "`" in text:
        cost += 2 * LONGEST_FENCE
    return cost


def _mrkdwn_span(span: Span) -> int:
    # Two for the marks that a heading, which the dialect lacks, puts around each of its spans.
    return _STYLE_COST[span.style] + _link_cost(span) + 2


def _link_cost(span: Span) -> int:
    """The address with each `&` as an entity, and at most four characters around it."""
    if span.link is None:
        return 0
    url = defuse_url(span.link.url)
    return len(url) + 4 * url.count("&") + 4


def _leaf_cost(leaf: Leaf) -> int:
    """Two fences on lines of their own with a language, or the marks of a heading."""
    kind = leaf.kind
    if kind == Kind.CODE:
        return 2 * (LONGEST_FENCE + 1 + leaf.gutter) + len(leaf.language) + 4
    return 10 if kind == Kind.HEADING else 1


def _ruler(limit: int, text: Callable[[str], int], span: Callable[[Span], int]) -> Ruler:
    return Ruler(limit=limit, text=text, span=span, leaf=_leaf_cost)
