"""Which files of a workspace are private notes: by the file that is opened, never by its name.

A link, symbolic or hard, gives a note another name, and what has another name would be read to a
group (CTX-6). So a file is compared with the notes by where its path really leads and, where it has
several names, by device and inode.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final

from runtime.workspace.content import PERSONAS_FOLDER

OWNERS_NOTES: Final = "USER.md"
"""Of the workspace, and of each persona."""
MEMORY_FOLDER: Final = "memory"
MOST_COMPARED: Final = 20_000
"""Notes that a file with several names is compared with; beyond that it counts as one of them."""

Identity = tuple[int, int]
"""Device and inode of a file."""


class NoteFiles:
    """The notes below some paths, to compare files that have several names with. They are looked
    for once, when the first such file is opened: one call's time."""

    def __init__(self, paths: Sequence[str] = ()) -> None:
        self._paths = paths
        self._found: frozenset[Identity] | None = None

    def hold(self, opened: os.stat_result) -> bool:
        """Whether an open file is one of the notes. Blocks on the disk."""
        if not self._paths or opened.st_nlink < 2:
            return False
        if self._found is None:
            files = (one for path in self._paths for one in _below(Path(path)))
            self._found = frozenset(islice(_identities(files), MOST_COMPARED + 1))
        identity = (opened.st_dev, opened.st_ino)
        return identity in self._found or len(self._found) > MOST_COMPARED


def is_disguised(opened: os.stat_result, real: Path, workspace: Path, relative: str) -> bool:
    """Whether what was opened as `relative` is a private note although its name is none.

    `real` is where the path led without links, `workspace` is canonical. Blocks on the disk.
    """
    first, *rest = relative.casefold().split("/")
    persona = first == PERSONAS_FOLDER
    if first in (OWNERS_NOTES.casefold(), MEMORY_FOLDER) or (
        persona and rest[-1:] == [OWNERS_NOTES.casefold()]
    ):
        return False
    if not persona and _lies_in_notes(real, workspace):
        return True
    identity = (opened.st_dev, opened.st_ino)
    if opened.st_nlink < 2:
        return identity in _identities([workspace / OWNERS_NOTES])
    notes = list(islice(_identities(_notes(workspace, personas=not persona)), MOST_COMPARED + 1))
    return identity in notes or len(notes) > MOST_COMPARED


def _lies_in_notes(real: Path, workspace: Path) -> bool:
    """Whether a canonical path is below a folder of notes, whatever that folder itself is."""
    folders = [workspace / MEMORY_FOLDER, workspace / PERSONAS_FOLDER]
    folders += [Path(os.path.realpath(folder)) for folder in folders]
    asked = f"{real}/".casefold()
    return any(asked.startswith(f"{folder}/".casefold()) for folder in folders)


def _notes(workspace: Path, *, personas: bool) -> Iterator[Path]:
    """The files of notes; of the personas' only the notes, unless all of `personas` count."""
    yield workspace / OWNERS_NOTES
    yield from _below(workspace / MEMORY_FOLDER)
    for path in _below(workspace / PERSONAS_FOLDER):
        if personas or path.name.casefold() == OWNERS_NOTES.casefold():
            yield path


def _below(path: Path) -> Iterator[Path]:
    """The path itself, and the files below it where it is a folder."""
    yield path
    for place, _, names in os.walk(path):
        yield from (Path(place, name) for name in names)


def _identities(paths: Iterable[Path]) -> Iterator[Identity]:
    for path in paths:
        # What is not there, or leads nowhere, is no note.
        with suppress(OSError):
            found = path.stat()
            yield found.st_dev, found.st_ino
