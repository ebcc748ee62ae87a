"""Markdown text as the events of pulldown-cmark (through pyromark), with nothing of it lost.

CommonMark with tables, strikethrough and formulas. The library takes four things out of a text
that a reader of a chat must still see, and this module puts them back as events: definitions that
no link uses, table cells beyond the last column, the Markdown after a line that opens HTML, and the
address of a link that may not be followed. It builds no tree and knows no platform.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit, urlunsplit

import pyromark

from adapters.rendering.control_characters import clean

if TYPE_CHECKING:
    from pyromark.event import Event, Range

LONGEST_URL = 2048
"""Characters of an address that still becomes a link; Slack and Telegram accept no more."""

# Subscript is on so that one tilde is told from two: `~/a:~/b` is a path, not a struck word.
_OPTIONS = (
    pyromark.Options.ENABLE_TABLES
    | pyromark.Options.ENABLE_STRIKETHROUGH
    | pyromark.Options.ENABLE_SUBSCRIPT
)

_OPTIONS_WITH_MATH = _OPTIONS | pyromark.Options.ENABLE_MATH

_CONTAINERS = r"(?:[ \t>]|[-+*](?=[ \t])|\d{1,9}[.)](?=[ \t]))*"
# `<` of a tag, comment or declaration, and not of an autolink.
_TAG = re.compile(
    r"<(?=[A-Za-z/!?])(?![A-Za-z][A-Za-z0-9+.\-]{1,31}:)(?![^\s<>@]{1,64}@)",
)
_BEFORE_BLOCK = re.compile(_CONTAINERS)
# A noncharacter, which `clean` takes out of every text, stands for the `<` of such a line.
_HIDDEN = "\ufdd0"
# Stands for a dollar that begins or ends no formula. The other two stand behind and in front of the
# dollars that were written as brackets.
_DOLLAR, _OPENED, _CLOSED = "\ufdd1", "\ufdd2", "\ufdd3"
_LINES = r"(?:(?!\n[ \t>]*\n)[^$`])"
_FORMULA = re.compile(
    rf"(?P<b>\$\${_LINES}{{1,2000}}?\$\$)"
    r"|(?P<a>(?<![\w$\\])\$(?![\s$])(?:[^$`\n\\]|\\[^`\n]){1,300}?(?<!\s)\$(?![\w$]))"
    rf"|(?P<d>\\\[(?:(?!\\\[){_LINES}){{1,2000}}?\\\])"
    r"|(?P<c>\\\((?:(?!\\\()[^$`\n]){1,300}?\\\))"
)
# What tells a formula from a price, a variable of a shell and an escaped bracket.
_MATHEMATICAL = re.compile(r"[\^_=+<>{}]|\\[A-Za-z]|[A-Za-z]\(")
_LETTER = re.compile(r"\s*[A-Za-z]'*\s*")
_REFERENCE = re.compile(r"&(?:#|NewLine;)")
_DEFINITION = re.compile(rf"^{_CONTAINERS}\[((?:[^\[\]\\]|\\.){{1,999}})\]:", re.MULTILINE | re.S)
_MARKER_CHARS = " \t>-+*0123456789.)"
_PLAIN_URL = re.compile(r"(?:https?://|mailto:)[!#-;=?-\[\]_a-z~]+", re.IGNORECASE)
_SAFE = "!#$%&'()*+,/:;=?@[]_~-."
_BY_LABEL = frozenset({"Reference", "Collapsed", "Shortcut"})


def read_events(source: str) -> Iterable["Event"]:
    """The events of `source`, which `clean` has seen; every visible word is in one of them."""
    hidden = False
    if _TAG.search(source):
        source = _hide_html(source)
        hidden = _HIDDEN in source
    options = _OPTIONS
    if "$" in source or "\\(" in source or "\\[" in source:
        source, found = _mark_formulas(source)
        hidden = hidden or _DOLLAR in source or found
        options = _OPTIONS_WITH_MATH if found else options
    lossy = _may_lose(source)
    events = _restored(source, options) if lossy else pyromark.events(source, options=options)
    if hidden or _REFERENCE.search(source):
        return _shown(events)
    return events


def address(url: str) -> str | None:
    """`url` as it may be linked, in ASCII, or None when people should see it as text instead.

    Links go to http, https or mailto. What RFC 3986 wants encoded is, a host name becomes IDNA.
    """
    if len(url) > LONGEST_URL:
        return None
    if "[" not in url and _PLAIN_URL.fullmatch(url):
        return url
    return _encoded(url)


@lru_cache(maxsize=64)
def _encoded(url: str) -> str | None:
    try:
        parts = urlsplit(url)
        host = parts.netloc.encode("idna").decode() if not parts.netloc.isascii() else parts.netloc
        encoded = quote(urlunsplit(parts._replace(netloc=host)), safe=_SAFE)
    except ValueError:
        return None
    if len(encoded) > LONGEST_URL or not _PLAIN_URL.fullmatch(encoded):
        return None
    return encoded


def _hide_html(source: str) -> str:
    """Take the `<` from lines that open an HTML block, up to whose end all would be literal."""
    pieces: list[str] = []
    at = line = 0
    for found in _TAG.finditer(source):
        line = max(line, source.rfind("\n", at, found.start()) + 1)
        if line >= at and _BEFORE_BLOCK.fullmatch(source, line, found.start()):
            pieces += (source[at : found.start()], _HIDDEN)
        else:
            pieces.append(source[at : found.end()])
        at = found.end()
    return "".join((*pieces, source[at:]))


def _may_lose(source: str) -> bool:
    """Whether definitions or cells may be missing among the events. Errs towards yes."""
    if "]:" in source and any(map(_may_define, source.split("\n"))):
        return True
    return "|" in source and _overflows(source)


def _may_define(line: str) -> bool:
    at = line.find("]:")
    return at >= 0 and (line.lstrip(_MARKER_CHARS)[:1] == "[" or "[" not in line[:at])


def _overflows(source: str) -> bool:
    """Whether a line under the delimiter row of a table may hold more cells than that row."""
    columns = 0
    for line in source.split("\n"):
        bars = line.count("|")
        if not bars:
            columns = 0
        elif bars >= columns:
            row = line.strip(" \t>")
            cells = bars + 1 - row.startswith("|") - (row.endswith("|") and len(row) > 1)
            if not row.strip("|:- \t"):
                columns = cells
            elif columns and cells > columns:
                return True
    return False


def _shown(events: Iterable["Event"]) -> Iterator["Event"]:
    """Put back hidden characters, and clean what a character reference such as `&#27;` has made."""
    for event in events:
        if isinstance(event, str):
            yield event
        elif "Text" in event:
            yield {"Text": _clean(event["Text"])}
        elif "Code" in event:
            yield {"Code": _clean(event["Code"])}
        elif "InlineHtml" in event:
            yield {"InlineHtml": _clean(event["InlineHtml"])}
        elif "InlineMath" in event:
            yield {"InlineMath": _clean(f"${event['InlineMath']}$")}
        elif "DisplayMath" in event:
            yield {"DisplayMath": _clean(f"$${event['DisplayMath']}$$")}
        else:
            yield event


def _clean(text: str) -> str:
    return clean(unhide(text))


def unhide(text: str) -> str:
    """`text` of an event's tag (an address, a title, the words after a fence) as it was written."""
    text = text.replace(_HIDDEN, "<").replace(_DOLLAR, "$")
    if _OPENED in text or _CLOSED in text:
        text = text.replace(f"$${_OPENED}", "\\[").replace(f"{_CLOSED}$$", "\\]")
        text = text.replace(f"${_OPENED}", "\\(").replace(f"{_CLOSED}$", "\\)")
    return text


def _mark_formulas(source: str) -> tuple[str, bool]:
    """Leave only dollars that are around formulas, also where brackets were; whether there are any.

    A price and a variable of a shell are no formulas, and must not make one together.
    """
    pieces: list[str] = []
    at, found = 0, False
    for formula in _FORMULA.finditer(source):
        text, kind = formula[0], formula.lastgroup
        inner = text[1:-1] if kind == "a" else text[2:-2]
        # A letter in square brackets is a box that was ticked.
        letter = kind != "d" and _LETTER.fullmatch(inner)
        if not letter and _MATHEMATICAL.search(inner) is None:
            continue
        found = True
        pieces.append(source[at : formula.start()].replace("$", _DOLLAR))
        if kind == "c":
            text = f"${_OPENED}{text[2:-2]}{_CLOSED}$"
        elif kind == "d":
            text = f"$${_OPENED}{text[2:-2]}{_CLOSED}$$"
        pieces.append(text)
        at = formula.end()
    pieces.append(source[at:].replace("$", _DOLLAR))
    return "".join(pieces), found


def _restored(source: str, options: pyromark.Options) -> Iterator["Event"]:
    """The events with unused definitions as paragraphs and with the cells beyond a table's end."""
    raw = source.encode()
    pairs = list(pyromark.events_with_range(source, options=options, merge_text=True))
    lost = _Lost(raw, pairs)
    last_cell = 0
    row_end: int | None = None
    for index, (event, span) in enumerate(pairs):
        yield from lost.before(event, span)
        if not isinstance(event, str):
            if "Start" in event and event["Start"] == "TableRow":
                row_end = span["end"]
            elif "End" in event and event["End"] == "TableCell":
                last_cell = span["end"]
                if row_end is not None and _closes_row(pairs[index + 1][0]):
                    yield from _extra_cells(raw[min(last_cell, row_end) : row_end].decode())
                    row_end = None
        yield event
    yield from lost.rest()


def _closes_row(event: "Event") -> bool:
    return not isinstance(event, str) and "End" in event and event["End"] == "TableRow"


def _extra_cells(rest: str) -> Iterator["Event"]:
    """What stands behind the last column of a row, each cell with a bar before it."""
    rest = rest.strip()
    if not rest.strip("| \t"):
        return
    columns = rest.count("|") + 1
    table = f"{'|a' * columns}|\n{'|-' * columns}|\n{rest}"
    cells: list[list[Event]] = []
    in_row = False
    for event in pyromark.events(table, options=_OPTIONS):
        tag = None if isinstance(event, str) else event.get("Start", event.get("End"))
        if tag == "TableRow":
            in_row = True
        elif tag == "TableCell" and in_row and not isinstance(event, str) and "Start" in event:
            cells.append([])
        elif in_row and tag not in ("TableCell", "Table"):
            cells[-1].append(event)
    while cells and not cells[-1]:
        cells.pop()
    for cell in cells:
        yield {"Text": " | "}
        yield from cell


class _Lost:
    """Finds the definitions that no link uses, where they stand between the blocks."""

    def __init__(self, raw: bytes, pairs: Iterable[tuple["Event", "Range"]]) -> None:
        self._raw = raw
        self._at = 0
        self._used = {_label(name) for event, _ in pairs for name in _labels(event)}
        self._defined: set[str] = set()

    def before(self, event: "Event", span: "Range") -> Iterator["Event"]:
        container = _is_container(event)
        ends = not isinstance(event, str) and "End" in event
        yield from self._gap(span["end"] if ends else span["start"])
        if not container:
            self._at = max(self._at, span["end"])

    def rest(self) -> Iterator["Event"]:
        yield from self._gap(len(self._raw))

    def _gap(self, end: int) -> Iterator["Event"]:
        if end <= self._at:
            return
        gap = self._raw[self._at : end]
        self._at = end
        if b"]:" not in gap:
            return
        text = gap.decode()
        found = list(_DEFINITION.finditer(text))
        for place, match in enumerate(found):
            label = _label(match[1])
            if label in self._used and label not in self._defined:
                self._defined.add(label)
                continue
            until = found[place + 1].start() if place + 1 < len(found) else len(text)
            lines = text[match.start(1) - 1 : until].split("\n")
            said = " ".join(line.strip(" \t>") for line in lines).strip()
            # A block that leaves the list around it tight, as a paragraph would not.
            yield {"Start": "HtmlBlock"}
            yield {"Text": said}
            yield {"End": "HtmlBlock"}


def _is_container(event: "Event") -> bool:
    if isinstance(event, str):
        return False
    tag = event.get("Start", event.get("End"))
    return tag == "Item" or (isinstance(tag, dict) and ("List" in tag or "BlockQuote" in tag))


def _labels(event: "Event") -> Iterator[str]:
    """The label through which a link or image of the text found its address, if it did."""
    if isinstance(event, str) or "Start" not in event:
        return
    tag = event["Start"]
    if isinstance(tag, str):
        return
    data = tag["Link"] if "Link" in tag else tag["Image"] if "Image" in tag else None  # noqa: SIM401 - typed
    if data is not None and data["link_type"] in _BY_LABEL and address(data["dest_url"]):
        yield data["id"]


def _label(text: str) -> str:
    return " ".join(text.casefold().split())
