"""The server's MarkdownV2 mode, as strict as TDLib's ``parse_markdown_v2``, with its error texts.

It walks bytes, because the offsets in the errors count bytes of the UTF-8 text.
"""

import re

from tests.wire.telegram.entities import Entity, units
from tests.wire.telegram.links import checked_link, mentioned_user
from tests.wire.telegram.markup_html import MarkupError

_RESERVED = frozenset(b"_*[]()~`>#+-=|{}.!\n")
_CODE = frozenset({"Code", "Pre", "PreCode"})
_QUOTES = frozenset({"BlockQuote", "ExpandableBlockQuote"})
# In this order: the longer delimiter wins.
_OPENERS = (
    (b"__", "Underline"),
    (b"_", "Italic"),
    (b"*", "Bold"),
    (b"~", "Strikethrough"),
    (b"||", "Spoiler"),
    (b"![", "CustomEmoji"),
    (b"[", "TextUrl"),
    (b"```", "Pre"),
    (b"`", "Code"),
)
_CLOSERS = {
    "Bold": b"*",
    "Italic": b"_",
    "Underline": b"__",
    "Strikethrough": b"~",
    "Spoiler": b"||",
    "Code": b"`",
    "Pre": b"```",
    "PreCode": b"```",
    "TextUrl": b"]",
    "CustomEmoji": b"]",
}
_NAMES = {
    "Bold": "bold",
    "Italic": "italic",
    "Underline": "underline",
    "Strikethrough": "strikethrough",
    "Spoiler": "spoiler",
    "Code": "code",
    "Pre": "pre",
    "PreCode": "pre",
    "BlockQuote": "blockquote",
    "ExpandableBlockQuote": "expandable_blockquote",
}
_LANGUAGE = re.compile(rb"[^\s`]+(?=\s)")
_FIRST_BREAK = re.compile(rb"\r\n|\n\r|\n|\r")
_EMOJI = re.compile(r"tg:(?://)?emoji/?(?:\?(?P<query>[^#]*))?(?:#.*)?\Z", re.IGNORECASE)


class _Open:
    __slots__ = ("argument", "at", "kind", "start")

    def __init__(self, kind: str, at: int, start: int, argument: str = "") -> None:
        self.kind, self.at, self.start, self.argument = kind, at, start, argument

    def unclosed(self) -> MarkupError:
        return MarkupError(f"Can't find end of {self.kind} entity at byte offset {self.at}")


class V2Markup:
    """One text being parsed; `parse` gives the plain text and its entities."""

    def __init__(self, source: str) -> None:
        self._source = source.encode("utf-8", "surrogatepass")
        self._at = 0
        self._out = bytearray()
        self._open: list[_Open] = []
        self._entities: list[Entity] = []
        self._quoted = False
        self._line_start = True

    def parse(self) -> tuple[str, list[Entity]]:
        while self._at < len(self._source):
            self._step(self._source[self._at])
        if self._quoted:
            self._spoiler_ends_quote()
            if self._open[-1].kind in _QUOTES:
                self._finish(self._open.pop())
        if self._open:
            raise self._open[-1].unclosed()
        return self._out.decode("utf-8", "surrogatepass"), self._entities

    def _step(self, byte: int) -> None:
        following = self._source[self._at + 1 : self._at + 2]
        top = self._open[-1].kind if self._open else ""
        if byte == 0x5C and following and 0 < following[0] <= 126:
            self._literal(following[0], 2)
        elif byte != 0x60 if top in _CODE else byte not in _RESERVED:
            self._literal(byte, 1)
        elif byte == 0x0A:
            self._newline()
        elif self._line_start and not self._quoted and self._starts_quote():
            pass
        elif top in _CLOSERS and _closes(top, self._source, self._at):
            self._close()
        else:
            self._begin(byte)

    def _literal(self, byte: int, width: int) -> None:
        self._out.append(byte)
        self._at += width
        self._line_start = self._line_start and byte == 0x0D and width == 1

    def _newline(self) -> None:
        continues = self._source[self._at + 1 : self._at + 2] == b">"
        if self._quoted and not continues:
            self._spoiler_ends_quote()
            if self._open[-1].kind not in _QUOTES:
                raise self._open[-1].unclosed()
        self._out.append(0x0A)
        self._at += 1
        if not self._quoted:
            self._line_start = True
        elif continues:
            self._at += 1
        else:
            self._finish(self._open.pop())
            self._quoted = False
            self._line_start = True

    def _spoiler_ends_quote(self) -> None:
        """`||` right before the end of a quotation makes it expandable, it opens no spoiler."""
        if len(self._open) < 2 or self._open[-2].kind not in _QUOTES:
            return
        top = self._open[-1]
        if top.kind == "Spoiler" and not self._out[top.start :].strip(b"\r"):
            self._open.pop()
            self._open[-1].kind = "ExpandableBlockQuote"

    def _starts_quote(self) -> bool:
        width = next(
            (len(mark) for mark in (b">", b"**>") if self._source.startswith(mark, self._at)), 0
        )
        if width:
            self._open.append(_Open("BlockQuote", self._at, len(self._out)))
            self._at += width
            self._quoted, self._line_start = True, False
        return bool(width)

    def _begin(self, byte: int) -> None:
        for delimiter, kind in _OPENERS:
            if self._source.startswith(delimiter, self._at):
                opened = _Open(kind, self._at, len(self._out))
                self._at += len(delimiter)
                if kind == "Pre":
                    self._language(opened)
                self._open.append(opened)
                return
        raise MarkupError(
            f"Character '{chr(byte)}' is reserved and must be escaped with the preceding '\\'"
        )

    def _language(self, opened: _Open) -> None:
        if match := _LANGUAGE.match(self._source, self._at):
            opened.kind, opened.argument = "PreCode", match[0].decode("utf-8", "replace")
            self._at = match.end()
        if newline := _FIRST_BREAK.match(self._source, self._at):
            self._at = newline.end()

    def _close(self) -> None:
        opened = self._open.pop()
        self._at += len(_CLOSERS[opened.kind])
        self._line_start = False
        if opened.kind == "TextUrl":
            self._link(opened)
        elif opened.kind == "CustomEmoji":
            self._emoji(opened)
        else:
            self._finish(opened)

    def _finish(self, opened: _Open) -> None:
        offset, length = self._span(opened)
        if length:
            kind = _NAMES[opened.kind]
            self._entities.append(Entity(kind, offset, length, language=opened.argument))

    def _span(self, opened: _Open) -> tuple[int, int]:
        offset = units(self._out[: opened.start].decode("utf-8", "surrogatepass"))
        return offset, units(self._out.decode("utf-8", "surrogatepass")) - offset

    def _address(self, what: str) -> str:
        self._at += 1
        begin, url = self._at, bytearray()
        while self._at < len(self._source) and self._source[self._at] != 0x29:
            following = self._source[self._at + 1 : self._at + 2]
            if self._source[self._at] == 0x5C and following and 0 < following[0] <= 126:
                self._at += 1
            url.append(self._source[self._at])
            self._at += 1
        if self._at >= len(self._source):
            raise MarkupError(f"Can't find end of a {what} at byte offset {begin}")
        self._at += 1
        return url.decode("utf-8", "surrogatepass")

    def _link(self, opened: _Open) -> None:
        url = self._out[opened.start :].decode("utf-8", "surrogatepass")
        if self._source.startswith(b"(", self._at):
            url = self._address("URL")
        offset, length = self._span(opened)
        user, link = mentioned_user(url), checked_link(url)
        if length and user:
            self._entities.append(Entity("text_mention", offset, length, user_id=user))
        elif length and link:
            self._entities.append(Entity("text_link", offset, length, url=link))

    def _emoji(self, opened: _Open) -> None:
        if not self._source.startswith(b"(", self._at):
            raise MarkupError("Custom emoji entity must contain a tg://emoji URL")
        url = self._address("custom emoji URL")
        if not url.lower().startswith("tg:"):
            raise MarkupError("Custom emoji URL must have scheme tg")
        match = _EMOJI.match(url)
        if match is None:
            raise MarkupError('Custom emoji URL must have host "emoji"')
        fields = dict(pair.partition("=")[::2] for pair in (match["query"] or "").split("&"))
        if "id" not in fields:
            raise MarkupError("Custom emoji URL must have an emoji identifier")
        if not re.fullmatch(r"[1-9]\d{0,18}", fields["id"]):
            raise MarkupError("Invalid custom emoji identifier specified")
        offset, length = self._span(opened)
        if length:
            self._entities.append(
                Entity("custom_emoji", offset, length, custom_emoji_id=fields["id"])
            )


def _closes(kind: str, source: bytes, at: int) -> bool:
    if not source.startswith(_CLOSERS[kind], at):
        return False
    return kind != "Italic" or not source.startswith(b"__", at)


def parse_v2(source: str) -> tuple[str, list[Entity]]:
    """The plain text and the entities of `source`; raises `MarkupError`."""
    return V2Markup(source).parse()
