r"""What a person cannot see is written out, in one place (APR-9). Pure, and fast to import.

A text that a model, a file or a stranger chose may hold characters that show nothing, that look
like a space or that turn the direction of others. Here each becomes a visible escape such as
``\u{202e}``. Letters of every script stay as they are, and so do the marks that belong to them.
Emoji that are joined or varied by hidden characters are written out too: what is read on a card
must be what runs, and looks come second.

`printable` is exact: it loses nothing and can be undone, so it is for cards and for whatever a
person decides about. `printable_name` makes one line of limited length, for names; `printable_path`
does so for paths, `quoted` and `code_name` put a name into quotes that it cannot close.
`without_hidden` drops what cannot be seen. `one_line` and `person_name` do so for labels and for
the names that people give to themselves.
"""

import os
import re
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
_QUOTE: Final = r"\u{22}"
_BACKTICK: Final = r"\u{60}"
_MOST_PERSON: Final = 60
_JOINED: Final = re.compile(r"(?<=[^\x00-\xff])([\u200c\u200d\ufe0f])(?=[^\x00-\xff])")
"""What joins characters in Persian, in Hindi and in emoji; next to ASCII it only hides."""
_WIDE_SPACE: Final = re.compile(r"[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]")
_TICKS: Final = re.compile(r"`+")
_MARKUP: Final = re.compile(r"[<>`*_\[\]()#|~\\]")


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


def printable_path(path: str | os.PathLike[str], limit: int = 500) -> str:
    r"""A path of the system as `printable_name` writes it. A byte that is not UTF-8 is ``\xff``."""
    return printable_name(os.fsencode(path).decode(errors="backslashreplace"), limit)


def quoted(text: str, limit: int = 80) -> str:
    """A name in quotes that it cannot close: what an error says that it was given.

    The quotes are single, or double where the name has single ones.
    """
    written = printable_name(text, limit)
    return f"'{written}'" if "'" not in written else f'"{written.replace(chr(34), _QUOTE)}"'


def code_name(text: str, limit: int = 100) -> str:
    """A name in backticks that it cannot close, for a text that is shown as Markdown."""
    return f"`{printable_name(text, limit).replace('`', _BACKTICK)}`"


def one_line(text: str, limit: int | None = None) -> str:
    """A label on one line, `without_hidden`. One longer than `limit` is cut and ends in ``...``."""
    line = " ".join(without_hidden(text).split())
    return line if limit is None or len(line) <= limit else f"{line[: limit - 3]}..."


def person_name(name: str) -> str:
    """A person's display name without markup, line breaks or marks that turn or hide text.

    At most 60 characters; ``someone`` where nothing is left.
    """
    parts = _JOINED.split(_MARKUP.sub("", _WIDE_SPACE.sub(" ", name)))
    kept = "".join(
        part if place % 2 else "".join(char for char in part if not is_hidden(char))
        for place, part in enumerate(parts)
    )
    return kept.strip()[:_MOST_PERSON] or "someone"


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


def code_block(shown: str) -> str:
    """What `printable` made, as a block of Markdown: all of it as it is, in a fence that it cannot
    close."""
    longest = max(map(len, _TICKS.findall(shown)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{shown}\n{fence}"
