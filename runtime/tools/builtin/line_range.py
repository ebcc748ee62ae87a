"""A range of lines out of a file of any size, in bounded memory."""

import os
from dataclasses import dataclass, field

BUDGET = 30 * 1024
"""Bytes; under the cap of a result, so that a read is cut here, where it can be gone on with."""
_PIECE = 64 * 1024


@dataclass(slots=True)
class Window:
    """Lines `first` to `last`. `seen` counts the lines that were passed, `more` says that others
    follow, `long` is how many bytes are shown of a line that alone is over the budget."""

    first: int
    lines: int = 0
    seen: int = 0
    more: bool = False
    long: int = 0
    text: bytearray = field(default_factory=bytearray)

    @property
    def last(self) -> int:
        return self.first + self.lines - 1


def window(handle: int, offset: int, limit: int | None) -> Window:
    """At most `limit` lines from line `offset` (from 1), and at most `BUDGET` bytes."""
    part = Window(first=offset)
    with os.fdopen(os.dup(handle), "rb") as file:
        while part.seen < offset - 1 and (piece := file.readline(_PIECE)):
            part.seen += piece.endswith(b"\n") or len(piece) < _PIECE
        while limit is None or part.lines < limit:
            line = file.readline(BUDGET + 1)
            if not line:
                return part
            room = BUDGET - len(part.text)
            if len(line) > room:
                part.more = True
                if not part.lines:
                    part.text += line[:BUDGET]
                    part.lines, part.long = 1, BUDGET
                    while line and not line.endswith(b"\n"):
                        line = file.readline(_PIECE)
                    part.more = bool(file.read(1))
                return part
            part.text += line
            part.lines += 1
        part.more = bool(file.read(1))
    return part
