"""Cuts leaves into parts that fit a platform's limit, in the platform's own unit.

Boundaries are preferred in this order: between leaves, at a line or sentence end, between words,
between graphemes (Unicode Standard Annex 29). A heading stays with what it introduces. Code is cut
between lines and each piece is a code leaf of its own, so that the back end closes and reopens the
fence with its language. Links and inline code are not cut unless they alone exceed a part, nor is a
grapheme; one that alone exceeds a part is cut between code points. Only white space at a cut goes.

Each character is measured a bounded number of times, so the time is linear in the length of the
text. The module renders nothing: a `Ruler` says what the back end will need.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import regex

from adapters.rendering.leaves import Kind, Leaf, links
from adapters.rendering.nodes import Span, Style, unlink

SMALLEST_LIMIT = 512
"""Below this the markers of deeply nested text would leave no room for the text."""

_GRAPHEME = regex.compile(r"\X")
# Possessive, and never starting inside a run, so that a row of dots costs linear time.
_SENTENCE_END = regex.compile(
    r"(?<![.!?\u2026])[.!?\u2026]++[)\]\"'\u201d\u2019]*+(?=\s)|[\u3002\uff01\uff1f]++|(?=\n)"
)
# Any two neighbours of these are two graphemes: ASCII (no CR gets here), kana, CJK, Hangul.
_SIMPLE = regex.compile("[\x00-\x7f\u3041-\u3096\u30a1-\u30fa\u3400-\u9fff\uac00-\ud7a3]{2}")
_SKIPPED = regex.compile(r"(?:[ \t\n](?![\p{M}\p{Cf}\p{EMod}]))*")
_SPACES = " \t\n"


@dataclass(frozen=True, slots=True)
class Ruler:
    """How a back end measures, in its unit. All costs are upper bounds that add up.

    `text` is the cost of a piece of text after escaping; `span` what the markers and the link of a
    span with either add (in a heading, of every span); `leaf` what the leaf itself adds, its gutter
    and the gap before it not included. A part holds at most `most_marks` marks (say, entities); a
    leaf uses up `leaf_marks` of them and each of those spans `marks`.
    """

    limit: int
    text: Callable[[str], int]
    span: Callable[[Span], int]
    leaf: Callable[[Leaf], int]
    marks: Callable[[Leaf, Span], int] = lambda _leaf, _span: 0
    leaf_marks: Callable[[Leaf], int] = lambda _: 0
    most_marks: int = 1


def utf16_length(text: str) -> int:
    """Length in UTF-16 code units, the unit of Telegram's limits and offsets."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2


def split(leaves: Sequence[Leaf], ruler: Ruler) -> list[tuple[Leaf, ...]]:
    """The leaves in parts of at most `ruler.limit`, none of them empty.

    Raises ValueError when the limit is below `SMALLEST_LIMIT`.
    """
    if ruler.limit < SMALLEST_LIMIT:
        raise ValueError(f"a limit below {SMALLEST_LIMIT} cannot hold nested text")
    packer = _Packer(ruler)
    for leaf in leaves:
        packer.add(leaf)
    return packer.finish()


def _without_oversized_links(leaf: Leaf, ruler: Ruler) -> Leaf:
    """Write out links whose address would eat most of a part, so that they can be cut as text."""
    most = ruler.limit // 4
    if all(span.link is None or ruler.span(span) <= most for span in leaf.spans):
        return leaf
    spans: list[Span] = []
    for link, group in links(leaf.spans):
        oversized = link is not None and any(ruler.span(span) > most for span in group)
        spans.extend(unlink(group) if oversized else group)
    return leaf._replace(spans=tuple(spans))


class _Packer:
    def __init__(self, ruler: Ruler) -> None:
        self._ruler = ruler
        self._small = ruler.limit // 4
        self._parts: list[tuple[Leaf, ...]] = []
        self._start(())

    def _start(self, leaves: Sequence[Leaf]) -> None:
        self._current: list[Leaf] = []
        self._left, self._marks = self._ruler.limit, self._ruler.most_marks
        for leaf in leaves:
            self._take(leaf, *self._measure(leaf))

    def add(self, leaf: Leaf) -> None:
        cost, marks = self._measure(leaf)
        if cost <= self._small and cost <= self._left and marks <= self._marks:
            self._take(leaf, cost, marks)
            return
        if cost > self._small:
            leaf = _without_oversized_links(leaf, self._ruler)
            cost, marks = self._measure(leaf)
        if self._fits(cost, marks):
            self._take(leaf, cost, marks)
        elif cost <= self._ruler.limit and marks <= self._ruler.most_marks:
            while self._current and not self._fits(cost, marks):
                self._flush()
            self._take(leaf, cost, marks)
        else:
            self._cut(leaf)

    def finish(self) -> list[tuple[Leaf, ...]]:
        if self._current:
            self._parts.append(tuple(self._current))
        return self._parts

    def _fits(self, cost: int, marks: int) -> bool:
        return cost <= self._left and marks <= self._marks

    def _take(self, leaf: Leaf, cost: int, marks: int) -> None:
        self._current.append(leaf)
        self._left -= cost
        self._marks -= marks

    def _flush(self) -> None:
        keep = 1 if len(self._current) > 1 and self._current[-1].kind == Kind.HEADING else 0
        done = len(self._current) - keep
        self._parts.append(tuple(self._current[:done]))
        self._start(self._current[done:])

    def _head(self, leaf: Leaf) -> int:
        """The leaf's fixed cost: its own, the gap before it, and the gutters of both lines."""
        return self._ruler.leaf(leaf) + 2 + 2 * leaf.gutter

    def _measure(self, leaf: Leaf) -> tuple[int, int]:
        ruler = self._ruler
        kind, spans, _, _, _, _, _, gutter = leaf
        text = spans[0][0] if len(spans) == 1 else "".join([span[0] for span in spans])
        # As in `_head`.
        cost, marks = ruler.leaf(leaf) + 2 + ruler.text(text), ruler.leaf_marks(leaf)
        if gutter:
            cost += (2 + text.count("\n")) * gutter
        always = kind == Kind.HEADING
        for span in spans:
            _, style, link = span
            if always or style or link is not None:
                cost += ruler.span(span)
                marks += ruler.marks(leaf, span)
        return cost, marks

    def _cut(self, leaf: Leaf) -> None:
        if self._current and self._left < self._ruler.limit // 2:
            self._flush()
        head = self._head(leaf)
        cursor = _Cursor(leaf, self._ruler)
        while not cursor.done:
            marks = self._marks - self._ruler.leaf_marks(leaf)
            piece = cursor.take(self._left - head, marks, fresh=not self._current)
            if piece is not None:
                self._take(piece, *self._measure(piece))
            if not cursor.done and self._current:
                self._flush()


def _is_marked(leaf: Leaf, span: Span) -> bool:
    return bool(span.style) or span.link is not None or leaf.kind == Kind.HEADING


class _Cursor:
    """Takes pieces off the front of one leaf."""

    def __init__(self, leaf: Leaf, ruler: Ruler) -> None:
        self._leaf, self._ruler = leaf, ruler
        self._line = leaf.gutter
        self._text = leaf.text
        self._starts = list(accumulate((len(span.text) for span in leaf.spans), initial=0))
        prices = (
            self._price(index, self._starts[index], self._starts[index + 1])
            for index in range(len(leaf.spans))
        )
        self._costs = list(accumulate(prices, initial=0))
        counts = (ruler.marks(leaf, span) if _is_marked(leaf, span) else 0 for span in leaf.spans)
        self._counts = list(accumulate(counts, initial=0))
        self._pos = 0
        self._index = 0
        self._cut = False

    @property
    def done(self) -> bool:
        return self._pos >= len(self._text)

    def take(self, budget: int, marks: int, *, fresh: bool) -> Leaf | None:
        """The next piece, or None when a fresh part would hold more. A fresh part always takes."""
        reach = self._reach(budget, marks)
        if reach <= self._pos:
            if not fresh:
                return None
            reach = self._pos + 1
        end = reach if reach == len(self._text) else self._choose(reach, fresh=fresh)
        if end <= self._pos:
            return None
        piece = self._piece(self._pos, end)
        self._advance(end)
        return piece

    def _reach(self, budget: int, marks: int) -> int:
        """How far the text goes within `budget` and `marks`: whole spans, then a piece of one."""
        index, start = self._index, self._pos
        costs, counts = self._costs, self._counts
        marks -= counts[index + 1] - counts[index]
        if marks < 0:
            return start
        end = self._starts[index + 1]
        # Each character costs at least one, so a longer rest is not even measured.
        rest = end - start if end - start > budget else self._price(index, start, end)
        if rest > budget:
            return self._partly(index, start, budget)
        budget += costs[index + 1] - rest
        marks += counts[index + 1]
        reached = min(bisect_right(costs, budget), bisect_right(counts, marks)) - 1
        if reached == len(self._leaf.spans) or counts[reached + 1] > marks:
            return self._starts[reached]
        return self._partly(reached, self._starts[reached], budget - costs[reached])

    def _price(self, index: int, start: int, end: int) -> int:
        return self._fixed(index) + self._cost(self._text[start:end])

    def _fixed(self, index: int) -> int:
        span = self._leaf.spans[index]
        return self._ruler.span(span) if _is_marked(self._leaf, span) else 0

    def _cost(self, text: str) -> int:
        cost = self._ruler.text(text)
        return cost + text.count("\n") * self._line if self._line else cost

    def _partly(self, index: int, start: int, budget: int) -> int:
        budget -= self._fixed(index)
        if budget <= 0:
            return start
        end = min(self._starts[index + 1], start + budget)
        return start + self._fitting(self._text[start:end], budget)

    def _fitting(self, window: str, budget: int) -> int:
        """How many characters of `window` fit; costs only grow with length, so bisect."""
        if self._cost(window) <= budget:
            return len(window)
        low, high = 0, len(window)
        while high - low > 1:
            middle = (low + high) // 2
            if self._cost(window[:middle]) <= budget:
                low = middle
            else:
                high = middle
        return low

    def _choose(self, reach: int, *, fresh: bool) -> int:
        """The best place to cut at or before `reach`, the position itself if it should not be."""
        if self._leaf.kind == Kind.CODE:
            end = self._text.rfind("\n", self._pos + 1, reach + 1)
            return end if end > 0 else self._snap(reach)
        end = self._outside(self._boundary(reach))
        if end <= self._pos:
            if not fresh:
                return self._pos
            end = self._boundary(reach)
        return self._snap(end)

    def _boundary(self, reach: int) -> int:
        middle = self._pos + (reach - self._pos) // 2
        last = -1
        for match in _SENTENCE_END.finditer(self._text, middle, min(reach + 1, len(self._text))):
            if middle < match.end() <= reach:
                last = match.end()
        if last > 0:
            return last
        for low in (middle, self._pos + 1):
            space = max(self._text.rfind(char, low, reach + 1) for char in _SPACES)
            if space > self._pos:
                return space
        return reach

    def _outside(self, end: int) -> int:
        """`end`, or the start of the link or inline code that it would cut."""
        spans, index = self._leaf.spans, self._index
        while index + 1 < len(spans) and self._starts[index + 1] < end:
            index += 1
        link = spans[index].link
        inside = self._starts[index] < end < self._starts[index] + len(spans[index].text)
        if link is None:
            code = spans[index].style & Style.CODE
            return self._starts[index] if code and inside else end
        after = spans[index + 1].link if index + 1 < len(spans) else None
        if not inside and after is not link:
            return end
        while index and spans[index - 1].link is link:
            index -= 1
        return self._starts[index]

    def _snap(self, end: int) -> int:
        """The last grapheme boundary at or before `end`; `end` if that would be no progress."""
        text = self._text
        if end >= len(text):
            return end
        safe = end
        while safe > self._pos and not _SIMPLE.match(text, safe - 1):
            safe -= 1
        if safe == end:
            return end
        last = safe
        for match in _GRAPHEME.finditer(text, safe, end + 1):
            last = match.start()
        return last if last > self._pos else end

    def _piece(self, start: int, end: int) -> Leaf | None:
        if self._leaf.kind != Kind.CODE:
            while end > start and self._text[end - 1] in _SPACES:
                end -= 1
        spans: list[Span] = []
        for index in range(self._index, len(self._leaf.spans)):
            begin, span = self._starts[index], self._leaf.spans[index]
            if begin >= end:
                break
            text = self._text[max(begin, start) : min(begin + len(span.text), end)]
            if text:
                spans.append(Span(text, span.style, span.link))
        if not spans:
            return None
        opened = len(self._leaf.frames) if self._cut else self._leaf.opened
        self._cut = True
        return self._leaf._replace(spans=tuple(spans), opened=opened)

    def _advance(self, end: int) -> None:
        if self._leaf.kind == Kind.CODE:
            end += self._text.startswith("\n", end)
        elif match := _SKIPPED.match(self._text, end):
            end = match.end()
        self._pos = end
        spans = self._leaf.spans
        while self._index + 1 < len(spans) and self._starts[self._index + 1] <= end:
            self._index += 1
