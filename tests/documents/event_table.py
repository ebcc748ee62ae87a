"""The stored events as `docs/api.md` describes them: their kinds, and what ``data`` may hold."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Final

from tests.documents.examples import ROOT

PAGE: Final = ROOT / "docs/api.md"
_CODE: Final = re.compile(r"`([^`]+)`")
_ASIDE: Final = re.compile(r"\([^)]*\)")
_LIKE: Final = re.compile(r"as `([a-z.]+)`")


@cache
def documented() -> Mapping[str, frozenset[str]]:
    """The keys of ``data`` of each kind."""
    page = PAGE.read_text(encoding="utf-8")
    section = page.partition("\n### Stored events\n")[2].partition("\n### ")[0]
    found: dict[str, frozenset[str]] = {}
    for line in section.splitlines():
        if not line.startswith("| `"):
            continue
        kinds, _, keys = (cell.strip() for cell in line.strip("|").split("|"))
        same = _LIKE.search(keys)
        named = _CODE.findall(_ASIDE.sub("", _LIKE.sub("", keys)))
        known = frozenset(named) | (found[same[1]] if same else frozenset())
        found |= dict.fromkeys(_CODE.findall(kinds), known)
    return found
