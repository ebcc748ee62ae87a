"""The server's HTML mode, as strict as TDLib's `parse_html`, with its texts of errors.

Offsets in errors count bytes of the UTF-8 text, as the real ones do.
"""

import re

from tests.wire.telegram.entities import Entity, units
from tests.wire.telegram.links import checked_link, mentioned_user

_STYLES = {
    "b": "bold",
    "strong": "bold",
    "i": "italic",
    "em": "italic",
    "u": "underline",
    "ins": "underline",
    "s": "strikethrough",
    "strike": "strikethrough",
    "del": "strikethrough",
    "span": "spoiler",
    "tg-spoiler": "spoiler",
}
_TAGS = frozenset(_STYLES) | {"a", "code", "pre", "blockquote", "tg-emoji"}
_NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"'}
_REFERENCE = re.compile(r"&(?:#x([0-9a-fA-F]{1,6})|#([0-9]{1,7})|(lt|gt|amp|quot)(?![a-zA-Z]));?")
_BLANK = re.compile(r"\s*")


class MarkupError(Exception):
    """The text does not parse; the message is the real one without its prefix."""


def decode(text: str) -> str:
    """Resolve the character references that the server knows; others stay as they are."""

    def character(match: re.Match[str]) -> str:
        if match[3]:
            return _NAMED[match[3]]
        code = int(match[1], 16) if match[1] else int(match[2])
        return chr(code) if 0 < code < 0x10FFFF else match[0]

    return _REFERENCE.sub(character, text)


class _Tag:
    __slots__ = ("argument", "name", "offset", "start")

    def __init__(self, name: str, argument: str, offset: int, start: int) -> None:
        self.name, self.argument, self.offset, self.start = name, argument, offset, start


class HtmlMarkup:
    """One text being parsed; `parse` gives the plain text and its entities."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._at = 0
        self._text = ""
        self._open: list[_Tag] = []
        self._entities: list[Entity] = []

    def parse(self) -> tuple[str, list[Entity]]:
        while self._at < len(self._source):
            start = self._source.find("<", self._at)
            start = len(self._source) if start < 0 else start
            self._text += decode(self._source[self._at : start])
            self._at = start
            if self._source.startswith("</", start):
                self._close(start)
            elif start < len(self._source):
                self._start(start)
        if self._open:
            name = self._open[-1].name
            raise MarkupError(f"Can't find end tag corresponding to start tag {name}")
        return self._text, self._entities

    def _byte(self, position: int) -> int:
        return len(self._source[:position].encode("utf-8", "surrogatepass"))

    def _word(self, stop: str) -> str:
        match = re.compile(rf"[^\s{stop}]*").match(self._source, self._at)
        word = match[0] if match else ""
        self._at += len(word)
        return word

    def _skip_blank(self) -> str:
        match = _BLANK.match(self._source, self._at)
        self._at = match.end() if match else self._at
        return self._source[self._at : self._at + 1]

    def _start(self, begin: int) -> None:
        self._at = begin + 1
        name = self._word(">").lower()
        if self._at >= len(self._source):
            raise MarkupError(f"Unclosed start tag at byte offset {self._byte(begin)}")
        if name not in _TAGS:
            where = self._byte(begin)
            raise MarkupError(f'Unsupported start tag "{name}" at byte offset {where}')
        argument = ""
        while (character := self._skip_blank()) != ">":
            if not character:
                raise MarkupError(f"Unclosed start tag at byte offset {self._byte(begin)}")
            attribute, value = self._attribute(name, begin)
            argument = _argument(name, attribute, value) or argument
        self._at += 1
        if name == "span" and argument != "spoiler":
            where = self._byte(begin)
            raise MarkupError(f'Tag "span" must have class "tg-spoiler" at byte offset {where}')
        self._open.append(_Tag(name, argument, units(self._text), len(self._text)))

    def _attribute(self, tag: str, begin: int) -> tuple[str, str]:
        where = self._byte(begin)
        name = self._word("=>" if tag == "blockquote" else "=")
        if not name:
            raise MarkupError(f'Empty attribute name in the tag "{tag}" at byte offset {where}')
        if tag == "blockquote" and name == "expandable" and self._skip_blank() != "=":
            return name, name
        if self._skip_blank() != "=":
            raise MarkupError(
                f'Expected equal sign in declaration of an attribute of the tag "{tag}"'
                f" at byte offset {where}"
            )
        self._at += 1
        quote = self._skip_blank()
        if not quote:
            raise MarkupError(f'Unclosed start tag "{tag}" at byte offset {where}')
        if quote not in {'"', "'"}:
            return name, self._token()
        end = self._source.find(quote, self._at + 1)
        if end < 0 or end + 1 >= len(self._source):
            raise MarkupError(f"Unclosed start tag at byte offset {where}")
        value = decode(self._source[self._at + 1 : end])
        self._at = end + 1
        return name, value

    def _token(self) -> str:
        begin = self._at
        match = re.compile(r"[A-Za-z0-9.-]*").match(self._source, begin)
        self._at = match.end() if match else begin
        following = self._source[self._at : self._at + 1]
        if following != ">" and not following.isspace():
            raise MarkupError(f"Unexpected end of name token at byte offset {self._byte(begin)}")
        return self._source[begin : self._at].lower()

    def _close(self, begin: int) -> None:
        where = self._byte(begin)
        if not self._open:
            raise MarkupError(f"Unexpected end tag at byte offset {where}")
        self._at = begin + 2
        name = self._word(">").lower()
        if self._skip_blank() != ">":
            raise MarkupError(f"Unclosed end tag at byte offset {where}")
        self._at += 1
        tag = self._open.pop()
        if name and name != tag.name:
            raise MarkupError(
                f'Unmatched end tag at byte offset {where}, expected "</{tag.name}>",'
                f' found "</{name}>"'
            )
        length = units(self._text) - tag.offset
        if length:
            self._finish(tag, length)

    def _finish(self, tag: _Tag, length: int) -> None:
        if tag.name in {"code", "pre"}:
            self._finish_code(tag, length)
            return
        if tag.name == "a":
            self._finish_link(tag, length)
            return
        if tag.name == "tg-emoji":
            if not tag.argument.isdecimal() or int(tag.argument) == 0:
                raise MarkupError("Invalid custom emoji identifier specified")
            emoji = Entity("custom_emoji", tag.offset, length, custom_emoji_id=tag.argument)
            self._entities.append(emoji)
            return
        kind = _STYLES.get(tag.name) or ("expandable_blockquote" if tag.argument else "blockquote")
        self._entities.append(Entity(kind, tag.offset, length))

    def _finish_code(self, tag: _Tag, length: int) -> None:
        last = self._entities[-1] if self._entities else None
        other = "pre" if tag.name == "code" else "code"
        nested = last is not None and (last.type, last.offset, last.length) == (
            other,
            tag.offset,
            length,
        )
        language = (last.language if last and nested and other == "code" else "") or tag.argument
        if nested and language:
            self._entities[-1] = Entity("pre", tag.offset, length, language=language)
        else:
            self._entities.append(Entity(tag.name, tag.offset, length, language=tag.argument))

    def _finish_link(self, tag: _Tag, length: int) -> None:
        url = tag.argument or self._text[tag.start :]
        if user := mentioned_user(url):
            self._entities.append(Entity("text_mention", tag.offset, length, user_id=user))
        elif link := checked_link(url):
            self._entities.append(Entity("text_link", tag.offset, length, url=link))


def _argument(tag: str, attribute: str, value: str) -> str:
    match tag, attribute:
        case ("a", "href") | ("tg-emoji", "emoji-id") | ("blockquote", "expandable"):
            return value
        case ("code", "class") if value.startswith("language-"):
            return value.removeprefix("language-")
        case ("span", "class") if value.startswith("tg-"):
            return value.removeprefix("tg-")
    return ""


def parse_html(source: str) -> tuple[str, list[Entity]]:
    """The plain text and the entities of `source`; raises `MarkupError`."""
    text, entities = HtmlMarkup(source).parse()
    plain = [
        Entity(e.type, e.offset, e.length) if e.type == "code" and e.language else e
        for e in entities
    ]
    return text, plain
