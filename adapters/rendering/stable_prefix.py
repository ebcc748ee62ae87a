"""What of a growing text can be shown without looking different a moment later. Pure.

A marker that was not closed yet is closed, and what may still become something else is left out:
an address, a formula, the first lines of a table, a line that is marks alone. It is a help for the
eyes: whatever it makes of a piece, the text that is whole is rendered as it stands.
"""

import re
from typing import Final

_FENCE: Final = re.compile(r"[ \t>]*(?:[-+*][ \t]+|\d+[.)][ \t]+)*(`{3,}|~{3,})(.*)")
_MARKS: Final = re.compile(r"[-+*=_#|:`~$\\.)>\d\s]*(?:(?<=[-+*] )\[[ xX]?\]?)?\s*")
_ADDRESS: Final = re.compile(r"(?<!\w)!?\[([^\[\]\n]*)\](?:\([^()\s]*)?\Z")
_BRACKET: Final = re.compile(r"(?<!\w)!?\[([^\[\]\n]*)\Z")
_MATH: Final = re.compile(r"(?<![\w$\\])\$(?![\s\d$])[^$\n]{0,80}\Z|\\\([^\n)]{0,300}\Z")
_TOKEN: Final = re.compile(r"\\.|`+|\*\*|\*|~~|~|\n[ \t]*\n", re.S)
LOOKED_AT: Final = 4_000
"""Characters at the end that are looked at; a marker further away stays as it is."""


def steady(text: str) -> str:
    """The part of `text` to be rendered while more of it is to come."""
    fence = _open_fence(text)
    if fence is not None:
        line = text.rfind("\n") + 1
        # The fence itself, its closing or the first word behind it may be half there.
        if not text[text.find("\n", fence) + 1 :].strip() or text.find("\n", fence) < 0:
            return text[:fence]
        return text[:line] if text[line:].strip() and not text[line:].strip("`~ \t") else text
    text = _without_line_of_marks(text)
    text = _without_table(text)
    return _closed(text)


def _open_fence(text: str) -> int | None:
    """Where the line of a fence begins that is not closed yet."""
    opened: tuple[int, str] | None = None
    at = 0
    for line in text.split("\n"):
        found = _FENCE.match(line) if "```" in line or "~~~" in line else None
        if found is not None:
            if opened is None:
                opened = at, found[1]
            elif found[1].startswith(opened[1]) and not found[2].strip():
                opened = None
        at += len(line) + 1
    return None if opened is None else opened[0]


def _without_line_of_marks(text: str) -> str:
    line = text.rfind("\n") + 1
    return text[:line] if _MARKS.fullmatch(text, line) else text


def _without_table(text: str) -> str:
    """Without a table of which not even the line under its head is whole."""
    start = len(text)
    while start > 0:
        line = text.rfind("\n", 0, start - 1) + 1
        if not text[line:start].lstrip(" \t>").startswith("|"):
            break
        start = line
    lines = text[start:].split("\n")
    if start == len(text) or (len(lines) > 2 and not lines[1].strip("|:- \t>")):
        return text
    return text[:start]


def _closed(text: str) -> str:
    start = max(text.rfind("\n\n") + 2 if "\n\n" in text else 0, len(text) - LOOKED_AT)
    tail = _without_beginnings(text[start:])
    opened, end = _opened(tail)
    if not opened and end == len(tail):
        return text[:start] + tail
    rest = tail[:end].rstrip()
    while opened and rest.endswith(opened[-1]):
        # Nothing stands behind it yet.
        rest = rest[: -len(opened.pop())].rstrip()
    return text[:start] + rest + "".join(reversed(opened))


def _without_beginnings(tail: str) -> str:
    """Without formulas, and with the words alone of links, of which only the beginning is there."""
    if tail.count("$$") % 2:
        tail = tail[: tail.rfind("$$")]
    if tail.rfind("\\[") > tail.rfind("\\]"):
        tail = tail[: tail.rfind("\\[")]
    tail = _ADDRESS.sub(r"\1", tail)
    tail = _BRACKET.sub(r"\1", tail)
    return _MATH.sub("", tail)


def _opened(tail: str) -> tuple[list[str], int]:
    """The markers that are open at the end, the outermost first; and where one begins that may be
    half of another, or opens nothing yet."""
    opened: list[str] = []
    for found in _TOKEN.finditer(tail):
        token = found[0]
        if token[0] in "\\\n":
            continue
        before = tail[found.start() - 1] if found.start() else " "
        code = bool(opened) and opened[-1][0] == "`"
        if code and token != opened[-1]:
            continue
        if token in opened and (code or not before.isspace()):
            del opened[opened.index(token) :]
        elif found.end() == len(tail):
            return opened, found.start()
        elif token != "~" and (token[0] == "`" or not tail[found.end()].isspace()):
            opened.append(token)
    return opened, len(tail)
