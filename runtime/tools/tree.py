"""Walking a tree by handles: no link is followed, so nothing outside is ever met (TOOL-2)."""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from runtime.tools.hidden_paths import PRIVATE
from runtime.workspace.open_folders import FOLDER

SKIPPED = frozenset({".git", PRIVATE})
"""Folders that hold no one's work; reached only by naming them."""
_DEPTH = 64
_VISITS = 200_000


@dataclass(frozen=True, slots=True)
class Entry:
    """`path` is relative to where the walk began; `directory` is a handle, valid until the next."""

    path: str
    name: str
    directory: int
    status: os.stat_result

    @property
    def is_directory(self) -> bool:
        return stat.S_ISDIR(self.status.st_mode)

    @property
    def is_file(self) -> bool:
        return stat.S_ISREG(self.status.st_mode)


class Tree:
    """Entries below the open directory `handle`, sorted within each folder, parents first.

    `hides` is asked for each relative path; what it is true of is not there, nor what is below.
    """

    def __init__(
        self,
        handle: int,
        *,
        skipped: frozenset[str] = SKIPPED,
        hides: Callable[[str], bool] = lambda _path: False,
    ) -> None:
        self._handle = handle
        self._hides = hides
        self._skipped = skipped
        self._visits = 0
        self.truncated = False
        """Whether something was left out: too deep, or over 200,000 entries."""

    def __iter__(self) -> Iterator[Entry]:
        return self._below(self._handle, "", 0)

    def _below(self, handle: int, prefix: str, depth: int) -> Iterator[Entry]:
        for entry in entries(handle):
            path = f"{prefix}{entry.name}"
            if self._hides(path):
                continue
            self._visits += 1
            if self._visits > _VISITS:
                self.truncated = True
                return
            found = Entry(path, entry.name, handle, entry.status)
            if not found.is_directory:
                yield found
            elif entry.name not in self._skipped:
                yield found
                yield from self._inside(found, depth)

    def _inside(self, folder: Entry, depth: int) -> Iterator[Entry]:
        if depth >= _DEPTH:
            self.truncated = True
            return
        try:
            handle = os.open(folder.name, FOLDER, dir_fd=folder.directory)
        except OSError:
            # Gone, swapped for a link, or not ours to read since it was listed.
            return
        try:
            yield from self._below(handle, f"{folder.path}/", depth + 1)
        finally:
            os.close(handle)


def entries(handle: int) -> list[Entry]:
    """What is in the open directory, sorted by name; what cannot be looked at is left out."""
    found: list[Entry] = []
    with suppress(PermissionError):
        for name in sorted(os.listdir(handle)):
            with suppress(OSError):
                status = os.stat(name, dir_fd=handle, follow_symlinks=False)
                found.append(Entry(name, name, handle, status))
    return found
