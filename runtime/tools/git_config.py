"""The configuration files of git, read by the rules of git-config(1). Pure.

What git would refuse is refused here as well, so that nobody takes a file for harmless that git
reads in another way: `BadConfig` stands for everything that is not surely understood. So does more
than a person writes, because a file may be made to be read slowly.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

MOST_BYTES: Final = 256 * 1024
MOST_ENTRIES: Final = 5_000
MOST_KEY: Final = 4_096
"""Characters of a variable's whole name."""
_ESCAPES: Final = {"n": "\n", "t": "\t", "b": "\b", "\\": "\\", '"': '"'}
_BLANKS: Final = " \t\r"

# What a file is made of. No two parts of a pattern can match the same character in a row, so that
# a file without an end takes no longer than its length.
_ITEM: Final = re.compile(
    r"(?P<gap>[ \t\n\r]+|[#;][^\n]*)"
    r"|\[(?P<section>[A-Za-z0-9.-]*)"
    r'(?:[ \t]+"(?P<subsection>[^"\\\n]*(?:\\[^\n][^"\\\n]*)*)")?\]'
    r"|(?P<name>[A-Za-z][A-Za-z0-9-]*)[ \t]*(?P<ends>=|\n|\Z)"
)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_SIMPLE: Final = re.compile(r'[^"\\#;\n]*')
_OUTSIDE: Final = re.compile(
    r'[^"\\#; \t\r\n]+|[ \t\r]+|(?:"")+|"[^"\\\n]*"|"'
    r'|(?:\\[ntb"\\])+|(?:\\\n)+|\\\Z|[#;\n]'
)
"""A piece of a value outside of quotes, by its first character."""
_INSIDE: Final = re.compile(r'[^"\\\n]+|"|(?:\\[ntb"\\])+|(?:\\\n)+|\\\Z|\n')


class BadConfig(Exception):
    """The text is no configuration that git reads; the message says where."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One variable. `section` and `name` are in small letters; a bare name has no `value`."""

    section: str
    subsection: str | None
    name: str
    value: str | None

    @property
    def key(self) -> str:
        """As git writes it: ``section.subsection.name``."""
        middle = "" if self.subsection is None else f"{self.subsection}."
        return f"{self.section}.{middle}{self.name}"


def entries(raw: bytes) -> tuple[Entry, ...]:
    """Every variable in order. Raises `BadConfig`."""
    if len(raw) > MOST_BYTES:
        raise BadConfig(f"it has more than {MOST_BYTES:,} bytes")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadConfig(f"it is not UTF-8 at byte {error.start}") from error
    if "\0" in text:
        raise BadConfig("it holds a NUL")
    found: list[Entry] = []
    for entry in _Reader(text).read():
        found.append(entry)
        if len(found) > MOST_ENTRIES:
            raise BadConfig(f"it sets more than {MOST_ENTRIES:,} variables")
    return tuple(found)


class _Reader:
    """By whole items and pieces, in the order of git's own parser."""

    def __init__(self, text: str) -> None:
        self._text = text.replace("\r\n", "\n")
        self._place = 0

    def read(self) -> Iterator[Entry]:
        section: tuple[str, str | None] | None = None
        while self._place < len(self._text):
            item = _ITEM.match(self._text, self._place)
            if item is None:
                raise self._bad()
            if item["gap"] is not None:
                self._place = item.end()
            elif item["name"] is None:
                section = _section(item["section"], item["subsection"])
                self._place = item.end()
            elif section is None:
                raise self._bad()
            else:
                if len(item["name"]) + sum(len(part or "") for part in section) > MOST_KEY:
                    raise BadConfig(f"it has a name of more than {MOST_KEY:,} characters")
                self._place = item.end()
                value = self._value() if item["ends"] == "=" else None
                yield Entry(*section, item["name"].lower(), value)

    def _bad(self) -> BadConfig:
        line = self._text.count("\n", 0, self._place) + 1
        return BadConfig(f"line {line} cannot be read")

    def _value(self) -> str:
        """What stands up to the end of the line or to a comment."""
        simple = _SIMPLE.match(self._text, self._place)
        if simple is None or self._text[simple.end() : simple.end() + 1] in ('"', "\\"):
            return self._pieces()
        value = simple[0].strip(_BLANKS)
        if "\t" in value or "\r" in value:
            # Versions of git differ in what becomes of a bare tab between words.
            raise self._bad()
        self._place = simple.end()
        return value

    def _pieces(self) -> str:
        value: list[str] = []
        blanks, quoted = "", False
        place, end = self._place, len(self._text)
        while place < end:
            self._place = place
            piece = (_INSIDE if quoted else _OUTSIDE).match(self._text, place)
            if piece is None:
                raise self._bad()
            text = piece[0]
            first = text[0]
            if first == "\n" or (not quoted and first in "#;"):
                break
            place = piece.end()
            if not quoted and first in _BLANKS:
                blanks = text if value else ""
                continue
            if blanks.strip(" "):
                raise self._bad()
            if text == '"':
                quoted = not quoted
            value += filter(None, (blanks, _meant(text)))
            blanks = ""
        if quoted:
            raise self._bad()
        self._place = place
        return "".join(value)


def _section(name: str, subsection: str | None) -> tuple[str, str | None]:
    if subsection is not None:
        return name.lower(), _ESCAPED.sub(r"\1", subsection)
    # [section.subsection], as it was written in old times.
    section, dot, old = name.lower().partition(".")
    return section, old if dot else None


def _meant(piece: str) -> str:
    """A piece of a value without its quotes and escapes."""
    if not piece.startswith("\\"):
        return piece.replace('"', "")
    return "".join(map(_ESCAPES.__getitem__, piece[1::2])) if piece[1:2] in _ESCAPES else ""
