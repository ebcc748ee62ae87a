"""Markdown as plain text, nothing marked up and nothing left out, and as one fragment of HTML.

Tests hold the readings of Markdown against these, whatever a platform makes of them.
"""

from collections.abc import Sequence

from adapters.rendering.document import parse
from adapters.rendering.html import render_blocks
from adapters.rendering.leaves import Gutter, Leaf, flatten
from adapters.rendering.message_parts import Ruler, split, utf16_length
from adapters.rendering.nodes import unlink


def render_html(text: str) -> str:
    """`text` as a balanced HTML fragment, one block element a line."""
    return "\n".join(render_blocks(text))


def render_plain(text: str) -> str:
    """`text` without markup. Links read `label (address)`, quotes, lists and code keep their form.

    Escape sequences and control characters of the source are gone.
    """
    return _write(_leaves(text))


def split_plain(text: str, limit: int) -> list[str]:
    """`render_plain` in parts of at most `limit` UTF-16 code units.

    Raises ValueError when `limit` is below `message_parts.SMALLEST_LIMIT`.
    """
    ruler = Ruler(
        limit=limit,
        text=utf16_length,
        span=lambda _: 0,
        leaf=lambda _: 0,
    )
    parts = [_write(leaves) for leaves in split(_leaves(text), ruler)]
    return [part for part in parts if part]


def _leaves(text: str) -> list[Leaf]:
    return [leaf._replace(spans=unlink(leaf.spans)) for leaf in flatten(parse(text))]


def _write(leaves: Sequence[Leaf]) -> str:
    gutter = Gutter()
    pieces: list[str] = []
    for leaf in leaves:
        separator, first, rest = gutter.enter(leaf)
        pieces += (separator, first, leaf.text.replace("\n", f"\n{rest}"))
    return "".join(pieces).strip("\n").rstrip()
