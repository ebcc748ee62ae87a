"""The configuration files of git, read by the rules of git-config(1). Pure.

What git would refuse is refused here as well, so that nobody takes a file for harmless that git
reads in another way: `BadConfig` stands for everything that is not surely understood.
"""

from collections.abc import Iterator
from dataclasses import dataclass

_ESCAPES = {"n": "\n", "t": "\t", "b": "\b", "\\": "\\", '"': '"'}
_SPACES = " \t\n\r"


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
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadConfig(f"it is not UTF-8 at byte {error.start}") from error
    if "\0" in text:
        raise BadConfig("it holds a NUL")
    return tuple(_Reader(text).read())


class _Reader:
    """Character by character, as git's own parser goes."""

    def __init__(self, text: str) -> None:
        self._text = text.replace("\r\n", "\n")
        self._place = 0
        self._section: tuple[str, str | None] | None = None

    def read(self) -> Iterator[Entry]:
        while self._place < len(self._text):
            char = self._next()
            if char in "#;":
                self._skip_line()
            elif char == "[":
                self._section = self._header()
            elif _is_letter(char):
                yield self._variable(char)
            elif char not in _SPACES:
                raise self._bad()

    def _next(self) -> str:
        """The next character; the end of the file counts as the end of a line."""
        char = self._text[self._place] if self._place < len(self._text) else "\n"
        self._place += 1
        return char

    def _skip_line(self) -> None:
        while self._next() != "\n":
            pass

    def _bad(self) -> BadConfig:
        line = self._text.count("\n", 0, self._place - 1) + 1
        return BadConfig(f"line {line} cannot be read")

    def _header(self) -> tuple[str, str | None]:
        name = ""
        while (char := self._next()) != "]":
            if char in " \t":
                return name, self._subsection()
            if not (_is_key(char) or char == "."):
                raise self._bad()
            name += char.lower()
        # [section.subsection], as it was written in old times.
        section, dot, subsection = name.partition(".")
        return section, subsection if dot else None

    def _subsection(self) -> str:
        while (char := self._next()) in " \t":
            pass
        if char != '"':
            raise self._bad()
        name = ""
        while (char := self._next()) != '"':
            if char == "\\":
                char = self._next()
            if char == "\n":
                raise self._bad()
            name += char
        if self._next() != "]":
            raise self._bad()
        return name

    def _variable(self, first: str) -> Entry:
        if self._section is None:
            raise self._bad()
        name = first.lower()
        while _is_key(char := self._next()):
            name += char.lower()
        while char in " \t":
            char = self._next()
        if char not in "\n=":
            raise self._bad()
        value = None if char == "\n" else self._value()
        return Entry(*self._section, name, value)

    def _value(self) -> str:
        value, blanks, quoted = "", "", False
        while (char := self._next()) != "\n":
            if not quoted and char in "#;":
                self._skip_line()
                return value
            if not quoted and char in _SPACES:
                blanks += char if value else ""
                continue
            if blanks.strip(" "):
                # Versions of git differ in what becomes of a bare tab between words.
                raise self._bad()
            # One statement each, so that the text grows in its place.
            value += blanks
            blanks = ""
            if char == '"':
                quoted = not quoted
            elif char != "\\":
                value += char
            elif (char := self._next()) != "\n":
                if char not in _ESCAPES:
                    raise self._bad()
                value += _ESCAPES[char]
        if quoted:
            raise self._bad()
        return value


def _is_letter(char: str) -> bool:
    return char.isascii() and char.isalpha()


def _is_key(char: str) -> bool:
    return char == "-" or (char.isascii() and char.isalnum())
