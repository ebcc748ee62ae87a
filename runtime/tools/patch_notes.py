"""Notes of what a patch makes of its files: kept before it begins, read after a crash (TOOL-14).

The same call that runs again finds its note and does what is left. What a killed process staged is
named there too: the same call takes it away, or `sweep` does once its run has ended. Blocks.
"""

import hashlib
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from pydantic import TypeAdapter, ValidationError

from runtime.domain.errors import ToolError
from runtime.domain.value import Value
from runtime.tools import atomic_write
from runtime.tools.base import ToolContext
from runtime.tools.hidden_paths import PATCHES, file_name, made_folder
from runtime.tools.paths import PathGuard, Spot
from runtime.workspace.open_folders import opened

NOTES_KEPT: Final = 64


def note_of(patch: str, context: ToolContext) -> str:
    """What the note of a call is called: an id alone may be used again by a provider."""
    return file_name(f"{context.run_id}-{context.call_id}-{digest(patch.encode())}")


def digest(content: bytes) -> str:
    """What tells a content from others."""
    return hashlib.sha256(content).hexdigest()


class Noted(Value):
    """What a call makes of one file: the digest of its content, None where the file goes; and the
    name of what is staged beside it until then, or until it is put back."""

    digest: str | None
    staged: str | None = None


_NOTED: Final = TypeAdapter(dict[str, Noted])


@dataclass(frozen=True, slots=True)
class Note:
    """What a call makes of each file, by its path. The same call finds it when it runs again."""

    home: Path
    name: str
    files: Mapping[str, Noted]

    @classmethod
    def read(cls, home: Path, name: str) -> Self:
        """The note of that name, empty where there is none."""
        return cls(home, name, _read(_folder(home) / name))

    def reached(self, spot: Spot, content: bytes | None) -> bool:
        """Whether a file is already what this very call makes of it."""
        noted = self.files.get(str(spot.path))
        return noted is not None and noted.digest == (None if content is None else digest(content))

    def clear(self, spots: Iterable[Spot]) -> None:
        """Take away what a process staged that died before it was used."""
        for spot in spots:
            noted = self.files.get(str(spot.path))
            if noted is not None and noted.staged is not None:
                atomic_write.drop(spot, Path(noted.staged).name)

    def write(self, more: Mapping[str, Noted]) -> None:
        """Keep it with these, on the disk on return; let go of old ones. Raises `OSError`."""
        files = {**self.files, **more}
        folder = _folder(self.home)
        with opened(self.home.resolve(), PATCHES) as directory:
            atomic_write.write_whole(directory, self.name, _NOTED.dump_json(files))
        for old in sorted(folder.iterdir(), key=lambda one: one.lstat().st_mtime)[:-NOTES_KEPT]:
            with suppress(OSError):
                if not _left(_read(old)):
                    old.unlink()

    def restore(self) -> None:
        """Let it be what it was: nothing that was added to it is going to be done."""
        with suppress(OSError, ToolError):
            self.write({}) if self.files else (_folder(self.home) / self.name).unlink()


def _folder(home: Path) -> Path:
    folder = made_folder(home, PATCHES)
    if folder is None:
        raise ToolError("something took the place of the gateway's folder, so nothing is patched")
    return folder


def _read(path: Path) -> Mapping[str, Noted]:
    try:
        return _NOTED.validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return {}


def _left(files: Mapping[str, Noted]) -> Sequence[tuple[str, str]]:
    """(file, name) of what is staged now: a process works on it, or died."""
    named = ((path, Path(one.staged).name) for path, one in files.items() if one.staged)
    return [(path, name) for path, name in named if os.path.lexists(Path(path).parent / name)]


def runs_that_left(home: Path) -> frozenset[str]:
    """The ids of the runs of which something is staged: they work on it, or a process died."""
    return frozenset(run for run, files in _notes(home) if _left(files))


def sweep(guarded: PathGuard, runs: Collection[str]) -> int:
    """Remove what patches of these runs left staged; how many files. A patch of this process that
    still works on them is waited for."""
    removed = 0
    for run, files in _notes(guarded.layout.home):
        for path, name in _left(files) if run in runs else ():
            with suppress(OSError, ToolError), guarded.parent(path, follow_last=False) as spot:
                with atomic_write.exclusive(spot):
                    atomic_write.drop(spot, name)
                removed += 1
    return removed


def _notes(home: Path) -> Iterator[tuple[str, Mapping[str, Noted]]]:
    """The id of the run of each note, which has no dash, and its files."""
    try:
        paths = list(home.resolve().joinpath(*PATCHES).iterdir())
    except OSError:
        return
    for path in paths:
        yield path.name.partition("-")[0], _read(path)
