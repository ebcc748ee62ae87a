r"""What a person cannot see is written out, in one place (APR-9). Pure, and fast to import.

A text that a model, a file or a stranger chose may hold characters that show nothing, that look
like a space or that turn the direction of others. Here each becomes a visible escape such as
``\u{202e}``. Letters of every script stay as they are, and so do the marks that belong to them.
Emoji that are joined or varied by hidden characters are written out too: what is read on a card
must be what runs, and looks come second.

`printable` is exact: it loses nothing and can be undone, so it is for cards and for whatever a
person decides about. `printable_name` makes one line of limited length, for names and paths.
`without_hidden` drops what cannot be seen, for the names that people give to themselves.
"""

import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

_BLANKS: Final = (
    (0x034F, 0x034F),  # combining grapheme joiner
    (0x115F, 0x1160),  # Hangul fillers
    (0x17B4, 0x17B5),  # Khmer inherent vowels
    (0x180B, 0x180F),  # Mongolian variation selectors and vowel separator
    (0x2800, 0x2800),  # Braille pattern without dots
    (0x3164, 0x3164),  # Hangul filler
    (0xFE00, 0xFE0F),  # variation selectors
    (0xFFA0, 0xFFA0),  # half-width Hangul filler
    (0xFFFC, 0xFFFC),  # object replacement
    (0x13441, 0x13442),  # Egyptian blanks
    (0x16FE4, 0x16FE4),  # Khitan filler
    (0x1BC9D, 0x1BC9E),  # Duployan selectors
    (0x1D159, 0x1D159),  # musical null note head
    (0xE0000, 0xE0FFF),  # tags and more variation selectors
)
"""Characters that show nothing although `str.isprintable` takes them for letters, marks or symbols:
what Unicode calls default-ignorable, and look-alikes of a space."""
MOST_MARKS: Final = 3
"""Combining marks on one letter: what living languages need. A further one is written out."""
MOST_SPACES: Final = 32
"""Spaces in a row. A further one is written out, so that nothing is pushed out of sight."""
_DOT_ABOVE: Final = "\u0307"
"""It cannot be seen above a letter that has a dot of its own."""
_ESCAPE: Final = "u{"


@lru_cache(maxsize=4096)
def is_hidden(char: str) -> bool:
    """Whether a character shows nothing, passes for a space, or steers how others are shown.

    A line feed is hidden in this sense, the space U+0020 is not.
    """
    if not char.isprintable():
        return True
    return not char.isascii() and any(first <= ord(char) <= last for first, last in _BLANKS)


def printable(text: str, *, newlines: bool = True) -> str:
    r"""`text` with everything that cannot be seen as ``\u{...}``, the code point in hexadecimal.

    Line feeds stay where `newlines` is set; a tab and a carriage return never do. A backslash that
    would be taken for the beginning of an escape is written as ``\u{5c}``. So every text has one
    printable form, and no two texts have the same.
    """
    if _is_plain(text, newlines=newlines):
        return text
    return "".join(_pieces(text, newlines=newlines))


def printable_name(text: str, limit: int = 200) -> str:
    """A name or a path on one line of at most `limit` characters, which ends in ``...`` where it
    was longer. No escape is cut in two. `limit` is at least 3."""
    # Each character of the text gives at least one: what is behind these cannot be shown.
    written = printable(text[: limit + 1], newlines=False)
    if len(written) <= limit and len(text) <= limit:
        return written
    kept: list[str] = []
    room = limit - 3
    for piece in _pieces(text[: limit + 1], newlines=False):
        room -= len(piece)
        if room < 0:
            break
        kept.append(piece)
    return f"{''.join(kept)}..."


def without_hidden(text: str) -> str:
    """`text` with a space for each white space and control character, and without the rest that
    cannot be seen; marks beyond `MOST_MARKS` on a letter are dropped."""
    if _is_plain(text, newlines=False):
        return text
    kept: list[str] = []
    marks = 0
    for char in text:
        marks = marks + 1 if _is_mark(char) else 0
        if not is_hidden(char):
            if marks <= MOST_MARKS:
                kept.append(char)
        elif unicodedata.category(char) in ("Cc", "Zs", "Zl", "Zp"):
            kept.append(" ")
    return "".join(kept)


def _is_plain(text: str, *, newlines: bool) -> bool:
    """Whether nothing has to be written out, found without looking at each character."""
    bare = text.replace("\n", "") if newlines else text
    return (
        bare.isascii()
        and bare.isprintable()
        and f"\\{_ESCAPE}" not in bare
        and " " * (MOST_SPACES + 1) not in bare
    )


def _pieces(text: str, *, newlines: bool) -> Iterator[str]:
    """Each character of `text` as it is shown."""
    cluster = ""
    spaces = 0
    for place, char in enumerate(text):
        spaces = spaces + 1 if char == " " else 0
        if char == "\n" and newlines:
            shown = True
        elif char == "\\":
            shown = not _begins_escape(text, place, newlines=newlines)
        elif _is_mark(char):
            shown = not is_hidden(char) and _belongs(char, cluster)
        else:
            shown = not is_hidden(char) and spaces <= MOST_SPACES
        # A mark behind something that is written out would sit on the escape's last bracket.
        cluster = (cluster + char if _is_mark(char) else char) if shown else ""
        yield char if shown else f"\\{_ESCAPE}{ord(char):x}}}"


def _begins_escape(text: str, place: int, *, newlines: bool) -> bool:
    """Whether the backslash at `place` would stand before what reads as an escape."""
    behind = text[place + 1 : place + 3]
    if not behind:
        return False
    follows = behind[0]
    if follows == "\n" and newlines:
        return False
    return behind == _ESCAPE or is_hidden(follows) or _is_mark(follows)


@lru_cache(maxsize=4096)
def _is_mark(char: str) -> bool:
    return not char.isascii() and unicodedata.category(char)[0] == "M"


def _belongs(mark: str, cluster: str) -> bool:
    """Whether a mark may stay on the letter and the marks before it.

    Marks that strike through or enclose hide what is below them. Others stay on letters of scripts
    that use them; on ASCII, only where the two are also one character of Unicode.
    """
    letter, marks = cluster[:1], cluster[1:]
    if unicodedata.category(mark) == "Me" or unicodedata.combining(mark) == 1:
        return False
    if not letter.isalpha() or len(marks) >= MOST_MARKS:
        return False
    if letter.isascii() or mark == _DOT_ABOVE:
        return len(unicodedata.normalize("NFC", cluster + mark)) == 1
    return True
