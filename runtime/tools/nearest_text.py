"""Where a text nearly is: what to tell a model whose `old_text` is not in the file (TOOL-3)."""

import difflib
from heapq import nlargest
from itertools import islice

_LINES = 20_000
_WIDTH = 200
_WINDOW = 400
_CANDIDATES = 5
_SHOWN = 12
_LIKENESS = 0.5
"""Below it, what is nearest is no help but noise."""


def nearest(text: str, wanted: str, *, given: str = "old_text") -> str | None:
    """The line number and the difference of the part of `text` that is most like `wanted`, which
    the caller knows as `given`.

    None where nothing is alike. The cost is bounded: the first 20,000 lines are looked at by
    their beginning, and the five best by their first 400 characters.
    """
    lines = text.split("\n", _LINES)[:_LINES]
    sought = wanted.strip("\n").split("\n")
    first = next((index for index, line in enumerate(sought) if line.strip()), 0)
    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(sought[first].strip()[:_WIDTH])
    # Places count down, so that of two equal ones the first in the file is the greater.
    scores: list[tuple[float, int]] = []
    for index, line in enumerate(lines):
        matcher.set_seq1(line.strip()[:_WIDTH])
        if matcher.real_quick_ratio() >= _LIKENESS and (score := matcher.quick_ratio()) > 0:
            scores.append((score, -max(index - first, 0)))
    best = max(
        ((_likeness(lines, -place, sought), place) for _, place in nlargest(_CANDIDATES, scores)),
        default=(0.0, 0),
    )
    if best[0] < _LIKENESS:
        return None
    return _difference(lines, -best[1], sought, given)


def _likeness(lines: list[str], start: int, sought: list[str]) -> float:
    here = "\n".join(lines[start : start + len(sought)])[:_WINDOW]
    there = "\n".join(sought)[:_WINDOW]
    return difflib.SequenceMatcher(None, here, there, autojunk=False).ratio()


def _difference(lines: list[str], start: int, sought: list[str], given: str) -> str:
    here = [line[:_WIDTH] for line in lines[start : start + min(len(sought), _SHOWN * 2)]]
    there = [line[:_WIDTH] for line in sought[: _SHOWN * 2]]
    changes = [
        f"{mark}{_visible(line)}"
        # The first two are its headers; a line of code may begin like one.
        for line in islice(difflib.unified_diff(here, there, lineterm="", n=0), 2, None)
        if not line.startswith("@@")
        for mark, line in [(line[0], line[1:])]
    ]
    told = "\n".join(changes[:_SHOWN]) or "(they differ further on)"
    return f"the nearest is at line {start + 1} (- in the file, + in {given}):\n{told}"


def _visible(line: str) -> str:
    """Blanks at the ends are what such a mistake is often about."""
    body = line.strip()
    start = len(line) - len(line.lstrip())
    head = line[:start].replace("\t", "\\t")
    tail = line[start + len(body) :].replace("\t", "\\t").replace("\r", "\\r").replace(" ", "\\s")
    return head + body + tail
