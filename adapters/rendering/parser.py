"""markdown-it-py as this package uses it: which rules run, which links count, how deep blocks nest.

The library drops what nests deeper than its limit; here a rule in front of all others turns such
lines into a paragraph instead, so that no text is lost and no input exhausts the stack.
"""

import re

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_block.table import escapedSplit

DEEPEST = 24
"""Block levels that are understood: 24 quotes, or 12 lists (a list and its item are two levels)."""

LONGEST_URL = 2048
"""Characters of an address that still becomes a link; Slack and Telegram accept no more."""

_ALLOWED_URL = re.compile(r"(?:https?://|mailto:)[^\s<>\"|\\`{}]+", re.IGNORECASE)
_ROW_LEAD = re.compile(r"[ \t>]*")


class _Parser(MarkdownIt):
    """CommonMark whose links go to http, https or mailto, or stay the text that they were."""

    def validateLink(self, url: str) -> bool:  # noqa: N802 - the library's name
        return len(url) <= LONGEST_URL and _ALLOWED_URL.fullmatch(url) is not None


def _too_deep(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Block rule: at the deepest level the lines up to a blank one are one paragraph as written."""
    if state.level < DEEPEST or silent:
        return False
    line = start + 1
    while line < end and not state.isEmpty(line) and state.sCount[line] >= state.blkIndent:
        line += 1
    content = state.getLines(start, line, state.blkIndent, False).strip()
    state.line = line
    state.push("paragraph_open", "p", 1)
    token = state.push("inline", "", 0)
    token.content = content
    token.map = [start, line]
    token.children = []
    state.push("paragraph_close", "p", -1)
    return True


def _build() -> MarkdownIt:
    options = {
        "maxNesting": DEEPEST + 8,
        "html": False,
        "store_labels": True,
        "inline_definitions": True,
    }
    parser = _Parser("commonmark", options)
    parser.enable(["table", "strikethrough"])
    parser.disable(["html_block", "html_inline"])
    parser.block.ruler.before("table", "too_deep", _too_deep)
    return parser


PARSER = _build()


def split_row(line: str) -> list[str]:
    """The cells of one source line of a table, also those beyond its last column."""
    cells = escapedSplit(_ROW_LEAD.sub("", line, count=1).strip())
    if cells and not cells[0].strip():
        cells = cells[1:]
    if cells and not cells[-1].strip():
        cells = cells[:-1]
    return cells
