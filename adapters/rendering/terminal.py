"""Markdown as lines of a terminal: a rich renderable, wrapped to the width that it is given.

Text is stripped of everything that steers a terminal. A link shows its address, because a terminal
must not hide where it leads. Tables are aligned text. Code is wrapped where it must be, never cut
off; a first stretch of it is coloured by language. rich's own Markdown is not used: it reads text
a second way, shows no unused definitions, and takes a second for a long answer.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

import regex
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.segment import Segment
from rich.style import Style as RichStyle
from rich.syntax import Syntax

from adapters.rendering.control_characters import strip_controls
from adapters.rendering.document import parse
from adapters.rendering.leaves import Gutter, Kind, Leaf, flatten, without_tabs
from adapters.rendering.nodes import Span, Style, make, unlink
from adapters.rendering.tables import char_width

COLOURED = 1_000
"""Characters of code in one text that are coloured, which costs ten times what the rest does."""

_NARROWEST = 8
_BULLETS = ("\N{BULLET}", "\N{WHITE BULLET}", "\N{BLACK SMALL SQUARE}")
_QUOTE = "\N{BOX DRAWINGS LIGHT VERTICAL} "
_DIM = RichStyle(dim=True)
_HEADING = RichStyle(bold=True, underline=True)
_MINOR_HEADING = RichStyle(bold=True)
_GRAPHEME = regex.compile(r"\X")
# Each character is a grapheme: ASCII, kana, CJK, Hangul syllables.
_SIMPLE = re.compile(
    "[ -~\u3001-\u3003\u3041-\u3096\u30a1-\u30fa\u30fc\u3400-\u9fff\uac00-\ud7a3]*"
)
_LONGEST_KNOWN = 16
_LINE = Segment.line()


@dataclass(frozen=True, slots=True)
class TerminalMarkdown:
    """`text` as rich shows it: hand it to a `Console` or to a widget."""

    text: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in render_terminal(self.text, options.max_width):
            yield from line
            yield _LINE

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(min(_NARROWEST, options.max_width), options.max_width)


def render_terminal(text: str, width: int) -> list[list[Segment]]:
    """`text` in lines of at most `width` columns, where a single character is no wider."""
    writer = _Writer(max(width, 1))
    tabs = "\t" in text or "&" in text
    for leaf in flatten(parse(strip_controls(text))):
        writer.leaf(without_tabs(leaf) if tabs else leaf)
    return writer.lines


class _Writer:
    def __init__(self, width: int) -> None:
        self.lines: list[list[Segment]] = []
        self._width = width
        self._gutter = Gutter(quote=_QUOTE, bullets=_BULLETS)
        self._colour = COLOURED

    def leaf(self, leaf: Leaf) -> None:
        separator, first, rest = self._gutter.enter(leaf)
        if leaf.kind == Kind.CODE:
            first, rest = f"{first}  ", f"{rest}  "
        if len(separator) > 1:
            self.lines.append(_margin(separator.strip("\n")))
        taken = _columns(first) if first else 0
        if taken + _NARROWEST > self._width:
            if any(map(str.isalnum, first)):
                self.lines.append(_margin(first.strip()))
            first, rest, taken = "", "", 0
        room = self._width - taken
        spans = self._coloured(leaf) if leaf.kind == Kind.CODE else _styled(leaf)
        text = "".join([part for part, _ in spans])
        if len(text) <= room and text.isascii() and "\n" not in text:
            line = [make(Segment, (part, style, None)) for part, style in spans]
            self.lines.append([*_margin(first), *line] if first else line)
            return
        stretches = _wrapped(text, room, literal=leaf.kind == Kind.CODE)
        for number, line in enumerate(_sliced(spans, stretches)):
            self.lines.append(_margin(rest if number else first) + line)

    def _coloured(self, leaf: Leaf) -> list[tuple[str, RichStyle | None]]:
        text = leaf.text
        if not leaf.language or len(text) > self._colour:
            return [(text, None)]
        self._colour -= len(text)
        lexed = Syntax(text, leaf.language, theme="ansi_dark").highlight(text)
        lexed.right_crop(max(len(lexed.plain) - len(text), 0))
        shown: list[tuple[str, RichStyle | None]] = []
        at = 0
        for span in lexed.spans:
            if span.start < at or isinstance(span.style, str):
                continue
            shown += ((text[at : span.start], None), (text[span.start : span.end], span.style))
            at = span.end
        return [*shown, (text[at:], None)]


def _margin(text: str) -> list[Segment]:
    return [make(Segment, (text, _DIM, None))] if text else []


def _styled(leaf: Leaf) -> list[tuple[str, RichStyle | None]]:
    spans: Sequence[Span] = unlink(leaf.spans)
    if leaf.kind != Kind.HEADING:
        return [(text, _STYLES[style]) for text, style, _ in spans]
    heading = _HEADING if leaf.level <= 2 else _MINOR_HEADING
    return [(span.text, heading + _STYLES[span.style]) for span in spans]


def _style(bits: int) -> RichStyle | None:
    if not bits:
        return None
    if bits & Style.CODE:
        return RichStyle(color="cyan", bold=bool(bits & Style.BOLD))
    return RichStyle(
        bold=bool(bits & Style.BOLD) or None,
        italic=bool(bits & Style.ITALIC) or None,
        strike=bool(bits & Style.STRIKE) or None,
    )


_STYLES = [_style(bits) for bits in Style.EVERY]


def _wrapped(text: str, width: int, *, literal: bool) -> Iterator[tuple[int, int]]:
    """Where the lines of `text` begin and end. Code keeps its spaces and is cut anywhere."""
    at = 0
    for line in text.split("\n"):
        cut = _ascii_lines if line.isascii() else _wide_lines
        for start, end in cut(line, width, literal):
            yield at + start, at + end
        at += len(line) + 1


def _ascii_lines(line: str, width: int, literal: bool) -> Iterator[tuple[int, int]]:
    at = 0
    while len(line) - at > width:
        end = -1 if literal else line.rfind(" ", at + 1, at + width + 1)
        end = end if end > at else at + width
        yield at, end
        at = end + (not literal and line.startswith(" ", end))
    yield at, len(line)


def _wide_lines(line: str, width: int, literal: bool) -> Iterator[tuple[int, int]]:
    """As `_ascii_lines`, in columns, and never inside a grapheme."""
    simple = _SIMPLE.fullmatch(line) is not None
    graphemes = line if simple else _GRAPHEME.findall(line)
    if simple:
        columns = list(accumulate([1 if char <= "~" else 2 for char in line], initial=0))
    else:
        # A grapheme may be as long as the text, which the cache would keep.
        short = max(map(len, graphemes)) <= _LONGEST_KNOWN
        columns = list(accumulate(map(_known_size if short else _size, graphemes), initial=0))
    if columns[-1] <= width:
        yield 0, len(line)
        return
    ends: Sequence[int] = range(len(line) + 1)
    if not simple:
        ends = list(accumulate(map(len, graphemes), initial=0))
    first = 0
    while columns[-1] - columns[first] > width:
        last = max(bisect_right(columns, columns[first] + width) - 1, first + 1)
        start, end = ends[first], ends[last]
        space = -1 if literal else line.rfind(" ", start + 1, end + 1)
        after = bisect_left(ends, space + 1)
        # A space that carries a mark is a grapheme of its own and stays.
        if space > start and ends[after] == space + 1:
            yield start, space
            first = after
        else:
            yield start, end
            first = last
    yield ends[first], len(line)


def _size(grapheme: str) -> int:
    """Columns. An emoji of several joined characters is as wide as one."""
    return char_width(grapheme) if len(grapheme) == 1 else max(map(char_width, grapheme))


_known_size = lru_cache(maxsize=4096)(_size)


def _columns(text: str) -> int:
    return len(text) if text.isascii() else sum(map(char_width, text))


def _sliced(
    spans: Sequence[tuple[str, RichStyle | None]], stretches: Iterator[tuple[int, int]]
) -> Iterator[list[Segment]]:
    """The styled text of each stretch; stretches go forwards, so one pass is enough."""
    index, begin = 0, 0
    for start, end in stretches:
        line: list[Segment] = []
        while index < len(spans):
            text, style = spans[index]
            stop = begin + len(text)
            if piece := text[max(start - begin, 0) : max(end - begin, 0)]:
                line.append(make(Segment, (piece, style, None)))
            if stop > end:
                break
            begin, index = stop, index + 1
        yield line
