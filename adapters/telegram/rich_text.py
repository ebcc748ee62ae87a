"""The words of a rich message, as a plain text with entities. Pure; no shape is an error.

Since Bot API 10.1 a message with a list, a table or another block has no `text`: all its words are
in `rich_message.blocks`. Shapes: `RichBlock` and `RichText` of the Bot API. Kinds of blocks that
are not known here are read by the fields that the known ones have.
"""

from collections.abc import Sequence
from typing import Final

from pydantic import JsonValue

from runtime.domain.json_fields import object_of, objects_of, text_of
from runtime.domain.value import JsonObject

MOST_CHARACTERS: Final = 200_000
"""What comes after them is left out: no message of a person is that long."""
MOST_DEPTH: Final = 24
"""Blocks and formats inside of each other; what is deeper is left out."""
_ENTITIES: Final = frozenset({"mention", "text_mention", "bot_command"})
_QUOTES: Final = frozenset({"blockquote", "expandable_blockquote", "pullquote"})
_MEDIA: Final = ("animation", "audio", "document", "map", "photo", "video", "voice_note")


def words_of_rich(message: JsonObject) -> tuple[str, list[JsonObject]]:
    """The text of a message's rich content and its entities, with offsets in UTF-16 units; no text
    where it has none."""
    writer = _Writer()
    writer.blocks(objects_of(object_of(message, "rich_message"), "blocks"), 0)
    return writer.text, writer.entities


class _Writer:
    """Writes blocks one below the other; `entities` are those that say something to a bot."""

    def __init__(self) -> None:
        self.entities: list[JsonObject] = []
        self._pieces: list[str] = []
        self._characters = 0
        self._units = 0

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    def blocks(self, blocks: Sequence[JsonObject], depth: int) -> None:
        for number, block in enumerate(blocks if depth < MOST_DEPTH else ()):
            if number:
                self._write("\n")
            self._block(block, depth)

    def _block(self, block: JsonObject, depth: int) -> None:
        kind, begin = text_of(block, "type"), self._units
        if kind in _MEDIA:
            self._write(f"[{kind.replace('_', ' ')}]")
        if kind == "divider":
            self._write("---")
        for key in ("summary", "text", "expression"):
            self._rich(block.get(key), depth + 1)
        self._items(objects_of(block, "items"), depth + 1)
        self._table(block.get("cells"), depth + 1)
        inner = objects_of(block, "blocks")
        if inner and self._units > begin:
            self._write("\n")
        self.blocks(inner, depth + 1)
        self._caption(block, begin, depth)
        if kind in _QUOTES:
            self._mark("blockquote", begin)

    def _caption(self, block: JsonObject, begin: int, depth: int) -> None:
        """What stands below a medium, a table or a quotation, and who is credited for it."""
        caption = block.get("caption")
        credit = object_of(block, "caption").get("credit")
        for words in (caption, credit, block.get("credit")):
            if words:
                self._write(" " if self._units > begin else "")
                self._rich(words, depth + 1)

    def _items(self, items: Sequence[JsonObject], depth: int) -> None:
        for number, item in enumerate(items):
            if number:
                self._write("\n")
            label = text_of(item, "label") or "-"
            box = ("[x] " if item.get("is_checked") is True else "[ ] ") if _has_box(item) else ""
            self._write(f"{label} {box}")
            self.blocks(objects_of(item, "blocks"), depth + 1)

    def _table(self, rows: JsonValue, depth: int) -> None:
        for number, row in enumerate(rows if isinstance(rows, list) else []):
            if number:
                self._write("\n")
            for column, cell in enumerate(row if isinstance(row, list) else []):
                if column:
                    self._write(" | ")
                self._rich(cell, depth + 1)

    def _rich(self, rich: JsonValue, depth: int) -> None:
        """A text, a row of texts, or a text in a format."""
        if depth > 2 * MOST_DEPTH:
            return
        if isinstance(rich, str):
            self._write(rich.encode("utf-8", "replace").decode())
        elif isinstance(rich, list):
            for part in rich:
                self._rich(part, depth + 1)
        elif isinstance(rich, dict):
            begin, kind = self._units, text_of(rich, "type")
            for key in ("text", "alternative_text", "expression"):
                self._rich(rich.get(key), depth + 1)
            if kind in _ENTITIES:
                self._mark(kind, begin, user=object_of(rich, "user"))

    def _mark(self, kind: str, begin: int, *, user: JsonObject | None = None) -> None:
        entity: JsonObject = {"type": kind, "offset": begin, "length": self._units - begin}
        self.entities.append({**entity, "user": user} if user else entity)

    def _write(self, text: str) -> None:
        kept = text[: MOST_CHARACTERS - self._characters]
        self._pieces.append(kept)
        self._characters += len(kept)
        self._units += len(kept) + sum(ord(character) > 0xFFFF for character in kept)


def _has_box(item: JsonObject) -> bool:
    return item.get("has_checkbox") is True
