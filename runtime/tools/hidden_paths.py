"""What does not exist for a call: private notes, and what other sessions kept.

It says where these are, and decides nothing about who may see them (CTX-6, POL-4, I10).
"""

import hashlib
import os
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from runtime.domain.ids import IdPrefix
from runtime.domain.worktrees import FOLDER as WORKTREES
from runtime.workspace.layout import ResolvedLayout

PRIVATE = ".gatehouse"
"""The gateway's folder in the workspace: tools may read in it, never write."""
OUTPUTS = (PRIVATE, "outputs")
"""Where whole results are kept in the workspace: ``<session>/<run>/`` below it (TOOL-4)."""
PATCHES = (PRIVATE, "patches")
"""Where it is noted what a patch makes of its files, for a call that runs again after a crash."""
UPLOADS = "uploads"
"""Where files that people sent are kept: ``<session>/<digest>/`` below it (MSG-19)."""
# The kernel follows no more on the way to a file.
_MOST_LINKS = 40
_PROCESSES = Path("/proc")
_SESSIONS = f"{IdPrefix.SESSION}_"


@dataclass(frozen=True, slots=True)
class Hidden:
    """Paths that are absent for one call, each with all that is below it.

    `masks` are absolute and may be links. `trees` are canonical and, like shelves, case-folded:
    some file systems do not tell cases apart. Of what begins like one of `shelves`, only what is
    in the folder beside it exists. Of what is below `home` only what is in one of `shown` exists,
    and the folders on the way there.
    """

    masks: tuple[str, ...] = ()
    trees: tuple[str, ...] = ()
    shelves: tuple[tuple[str, str], ...] = ()
    home: str = ""
    shown: tuple[str, ...] = ()

    @classmethod
    def of(cls, resolved: ResolvedLayout, session_id: str, *, notes: bool) -> Self:
        """For calls of a session; `notes` says that private notes exist for it. Reads links."""
        layout, files = resolved.layout, _folder(resolved.files)
        top, mine = str(resolved.home).rstrip("/"), file_name(session_id)
        outputs, uploads = f"{top}/{'/'.join(OUTPUTS)}/", f"{top}/{UPLOADS}/"
        worktrees = f"{top}/{WORKTREES}/"
        found = () if notes else resolved.landmarks.notes
        shelves = [
            (outputs.casefold(), f"{outputs}{mine}/"),
            # Files of versions that kept them without their session stay open to all.
            (f"{uploads}{_SESSIONS}".casefold(), f"{uploads}{mine}/"),
        ]
        if not (notes and layout.whole):
            # What is checked out in the worktree of another session may hold notes as well.
            shelves.append((worktrees.casefold(), files))
        beside = [f"{top}/{place.name}/" for place in layout.names if place.name != PRIVATE]
        return cls(
            masks=found,
            trees=tuple(_folder(path).casefold() for path in found),
            shelves=tuple(shelves),
            home=_folder(resolved.home),
            shown=(files, outputs, worktrees, *beside),
        )

    def covers(self, path: Path | str) -> bool:
        """Whether the canonical, absolute `path` is absent."""
        exact = _folder(path)
        asked = exact.casefold()
        if self.trees and asked.startswith(self.trees):
            return True
        return self.stray(path) or any(
            asked.startswith(shelf) and asked != shelf and not exact.startswith(own)
            for shelf, own in self.shelves
        )

    def stray(self, path: Path | str) -> bool:
        """Whether the canonical `path` is in the workspace and no part of it that tools reach."""
        exact = _folder(path)
        if not self.home or not exact.startswith(self.home):
            return False
        return not (
            exact.startswith(self.shown) or any(one.startswith(exact) for one in self.shown)
        )

    def below(self, folder: Path) -> Callable[[str], bool]:
        """`covers` for paths relative to the canonical `folder`."""
        return lambda path: self.covers(folder / path)


def of_process(path: Path) -> bool:
    """Whether a path leads through /proc, by its name or by a link: there every process finds
    something else."""
    at, left, links = Path("/"), [*reversed(path.absolute().parts[1:])], 0
    while left and links <= _MOST_LINKS:
        part = left.pop()
        at = at.parent if part == ".." else at / part
        if at == _PROCESSES:
            return True
        with suppress(OSError):
            target = at.readlink()
            at = Path("/") if target.is_absolute() else at.parent
            left += reversed(target.parts[target.is_absolute() :])
            links += 1
    return False


def made_folder(workspace: Path, names: Sequence[str]) -> Path | None:
    """A folder of the gateway, made if need be; None where something else has its place."""
    path = workspace.resolve()
    for name in names:
        path /= name
        try:
            path.mkdir(mode=0o700)
        except FileExistsError:
            if not is_folder(path):
                return None
    return path


def is_folder(path: Path) -> bool:
    """Whether `path` is a directory itself, and no link to one."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except FileNotFoundError:
        return False


def file_name(text: str) -> str:
    """An id as a file name: ids of calls are the provider's, and may hold anything."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "_" for c in text)
    if plain == text and 0 < len(plain) <= 64:
        return plain
    digest = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=6)
    return f"{plain[:40]}-{digest.hexdigest()}"


def _folder(path: Path | str) -> str:
    return f"{path}/"
