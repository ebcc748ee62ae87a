"""Names of files that differ only in how they are spelled.

One name can be written in several ways that look alike: a letter with its accent in one character
or in two (a Mac writes two), and a blank that does not break a line in place of the usual one
(``Shot at 9.22.20 PM.txt`` of a Mac has U+202F). A Linux disk takes each for a name of its own.
"""

import unicodedata


def folded_name(text: str) -> str:
    """The one spelling that stands for all of a name or a path. Pure."""
    if text.isascii():
        return text
    plain = "".join(" " if unicodedata.category(c) == "Zs" else c for c in text)
    return unicodedata.normalize("NFC", plain)


def has_one_spelling(name: str) -> bool:
    """Whether no other name can look like this one: letters of ASCII, and no blank. Pure."""
    return name.isascii() and " " not in name
