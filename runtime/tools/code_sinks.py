"""What of the files that a call writes later acts as an instruction or as code (POL-9).

It looks at where paths really lead, and decides nothing. Commands are not looked at: they are kept
off what instructs the agent by the sandbox, and may write in `.git/`, because git must.
"""

import os
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from posixpath import basename
from typing import Final

from runtime.domain.printable import without_hidden
from runtime.domain.tools import Touches
from runtime.policy.decide import Bounds
from runtime.tools.base import ToolContext
from runtime.tools.canonical_paths import CanonicalPaths, above
from runtime.tools.git_repositories import laid_out
from runtime.workspace.layout import PLACES

_MOST_ENTRIES = 20_000
"""Entries of the known places among which links are looked for."""


@dataclass(frozen=True, slots=True)
class Written:
    """`sinks` are what is written that acts later, by the names that rules use for it; `memory`:
    the long-term notes are."""

    sinks: tuple[str, ...] = ()
    memory: bool = False


def written(touches: Touches, context: ToolContext, bounds: Bounds) -> Written:
    """What a call writes of these. Blocks on files."""
    if touches.command is not None or not touches.writes:
        return Written()
    home, landmarks = str(context.resolved.home), context.resolved.landmarks
    links = {_folded(path) for path in _linked(home, _INSTRUCTING)}
    notes = {_folded(path) for path in _linked(home, _NOTES)}
    code = {_folded(path) for path in _code(str(context.resolved.files), bounds)}
    written_now = frozenset(_folded(text) for text in touches.writes)
    sinks: dict[str, None] = {}
    memory = False
    for text in touches.writes:
        found = landmarks.places(_folded(text)) + landmarks.places(text)
        sinks |= dict.fromkeys(one.name for one in found if one.instructs)
        memory = memory or any(one.name == "memory" for one in found)
        repository = _repository(text, written_now)
        if repository is not None:
            sinks[context.resolved.name(repository)] = None
        parents = {_folded(one) for one in (text, *above(text))}
        memory = memory or bool(parents & notes)
        if parents & (links | code):
            only = len(touches.writes) == 1
            sinks[touches.subject if only else context.resolved.name(text)] = None
    return Written(tuple(sinks), memory)


def _code(folder: str, bounds: Bounds) -> frozenset[str]:
    """The files of commands that a rule or a grant allows."""
    granted = {path for grant in bounds.grants for path in grant.files}
    return CanonicalPaths().of_commands(bounds.allowed_commands, folder) | granted


@lru_cache(maxsize=2048)
def _folded(text: str) -> str:
    """A path as file systems take it that know no cases and no characters without a shape."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFD", text)
    return plain.casefold() if plain.isascii() else without_hidden(plain).casefold()


def _repository(path: str, written_now: frozenset[str]) -> str | None:
    """The repository that `path` lies in once everything is written: a `.git`, or a folder that is
    laid out as one."""
    for one in (path, *above(path)):
        if _folded(basename(one)) == ".git":
            return one
        if _laid_out(one, written_now):
            return one
    return None


def _laid_out(folder: str, written_now: frozenset[str]) -> bool:
    """Whether a folder may be a repository once everything is written."""
    top = folder.rstrip("/")

    def there(name: str) -> bool:
        place = _folded(f"{top}/{name}")
        new = any(text == place or text.startswith(f"{place}/") for text in written_now)
        return new or os.path.lexists(f"{top}/{name}")

    return laid_out(there)


_INSTRUCTING: Final = tuple(place.name for place in PLACES if place.instructs)
_NOTES: Final = ("memory",)


def _linked(home: str, places: Sequence[str]) -> Iterator[str]:
    """Where links in known places lead, also those in folders that links lead to. Where there are
    too many entries, everything may be led to."""
    looked, left = 0, [f"{home}/{place}" for place in places]
    while left:
        with suppress(OSError), os.scandir(left.pop()) as entries:
            for entry in entries:
                looked += 1
                if looked > _MOST_ENTRIES:
                    yield home
                    return
                with suppress(OSError):
                    if entry.is_symlink():
                        yield os.path.realpath(entry.path)
                    if entry.is_dir():
                        left.append(entry.path)
