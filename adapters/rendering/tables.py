"""A table as aligned lines of monospaced text, for platforms that show no tables.

Widths are columns of a terminal: wide East Asian characters count two, combining marks none
(Unicode Standard Annex 11). Links are written out, because code cannot hold them.
"""

import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from adapters.rendering.nodes import Cell, Table, unlink

WIDEST_PADDING = 40
"""Columns up to which a column is padded; a longer cell pushes its own row out of line."""

_GAP = " | "
_SHIFTED = ("right", "center")


def align(table: Table) -> str:
    """The rows of `table`, one a line, a line of dashes under the header.

    The result is at most about three times as long as the text of the cells: a table whose
    padding would cost more (many empty cells in wide columns) is left unpadded.
    """
    rows = [[_cell_text(cell) for cell in row] for row in (table.header, *table.rows)]
    widths = [0] * len(table.aligns)
    for row in rows:
        for column, text in enumerate(row):
            widths[column] = max(widths[column], min(_width(text), WIDEST_PADDING))
    length = sum(len(text) for row in rows for text in row)
    if sum(widths) * len(rows) > 2 * length + 2000:
        widths = [1] * len(widths)
    lines = [_line(row, widths, table.aligns) for row in rows]
    lines.insert(1, "-+-".join("-" * max(width, 1) for width in widths))
    return "\n".join(lines)


def _cell_text(cell: Cell) -> str:
    if not cell:
        return ""
    if len(cell) == 1 and cell[0].link is None:
        return " ".join(cell[0].text.split())
    return " ".join("".join(span.text for span in unlink(cell)).split())


def _line(row: Sequence[str], widths: Sequence[int], aligns: Sequence[str]) -> str:
    cells = []
    for text, width, side in zip(row, widths, aligns, strict=False):
        room = max(width - _width(text), 0)
        if side in _SHIFTED:
            before = room if side == "right" else room // 2
            cells.append(" " * before + text + " " * (room - before))
        else:
            cells.append(text + " " * room)
    return _GAP.join(cells).rstrip()


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(map(char_width, text))


@lru_cache(maxsize=8192)
def char_width(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
