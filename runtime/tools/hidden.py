"""What does not exist for a call: private notes, and what other sessions kept.

It says where these are, and decides nothing about who may see them (CTX-6, POL-4, I10).
"""

import hashlib
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from runtime.domain.ids import IdPrefix
from runtime.domain.worktrees import FOLDER as WORKTREES
from runtime.policy.decide import PRIVATE_FILES

PRIVATE = ".gatehouse"
"""The gateway's folder at the top of a root: tools may read in it, never write."""
OUTPUTS = (PRIVATE, "outputs")
"""Where whole results are kept in the workspace: ``<session>/<run>/`` below it (TOOL-4)."""
UPLOADS = "uploads"
"""Where files that people sent are kept: ``<session>/<digest>/`` below it (MSG-19)."""
_SESSIONS = f"{IdPrefix.SESSION}_"


@dataclass(frozen=True, slots=True)
class Hidden:
    """Paths that are absent for one call, each with all that is below it.

    `masks` are absolute and may be links. `trees` are canonical and, like shelves, case-folded:
    some file systems do not tell cases apart. Of what begins like one of `shelves`, only what is
    in the folder beside it exists.
    """

    masks: tuple[str, ...] = ()
    trees: tuple[str, ...] = ()
    shelves: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, workspace: Path, session_id: str, *, notes: bool) -> Self:
        """For calls of a session; `notes` says that private notes exist for it. Reads links."""
        real = canonical(workspace)
        mine = file_name(session_id)
        outputs, uploads = real.joinpath(*OUTPUTS), real / UPLOADS
        # What is checked out in a worktree may hold notes as well.
        found = () if notes else (*note_paths(real), real / WORKTREES)
        return cls(
            masks=tuple(str(path) for path in found),
            trees=tuple(_folder(path).casefold() for path in found),
            shelves=(
                (_folder(outputs).casefold(), _folder(outputs / mine)),
                # Files of versions that kept them without their session stay open to all.
                (str(uploads / _SESSIONS).casefold(), _folder(uploads / mine)),
            ),
        )

    def covers(self, path: Path | str) -> bool:
        """Whether the canonical, absolute `path` is absent."""
        exact = _folder(path)
        asked = exact.casefold()
        if self.trees and asked.startswith(self.trees):
            return True
        return any(
            asked.startswith(shelf) and asked != shelf and not exact.startswith(own)
            for shelf, own in self.shelves
        )

    def below(self, folder: Path) -> Callable[[str], bool]:
        """`covers` for paths relative to the canonical `folder`."""
        return lambda path: self.covers(folder / path)


def canonical(path: Path) -> Path:
    """`path.resolve()` without the look for loops of links, which is one more question to the disk.

    A path in a loop comes back as it was, and opens nowhere.
    """
    return Path(os.path.realpath(path))


def note_paths(workspace: Path) -> tuple[Path, ...]:
    """Where the private notes of the canonical `workspace` are, and where links lead from there."""
    named = [workspace / name.rstrip("/") for name in PRIVATE_FILES]
    # The workspace is canonical, so that only the last part can be a link. `Path.is_symlink`
    # raises where the folder may not be looked into.
    led = [canonical(path) for path in named if os.path.islink(path)]  # noqa: PTH114
    return tuple(dict.fromkeys([*named, *led]))


def hold_notes(workspace: Path) -> None:
    """Let something be where private notes would be: what is made later is not hidden."""
    real = canonical(workspace)
    if WORKTREES in real.as_posix():
        # A worktree's own are nobody's notes, and what lies in it counts as work.
        return
    for name in PRIVATE_FILES:
        path = real / name.rstrip("/")
        with suppress(OSError):
            if name.endswith("/"):
                path.mkdir(mode=0o700)
            else:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
                os.close(os.open(path, flags, 0o600))


def is_note(path: Path, workspace: Path) -> bool:
    """Whether the canonical `path` is a private note of the canonical `workspace`, or in them."""
    trees = tuple(_folder(note).casefold() for note in note_paths(workspace))
    return _folder(path).casefold().startswith(trees)


def outputs_folder(workspace: Path) -> Path | None:
    """The folder of kept results, made if need be; None where something else took its place.

    Once commands run in the workspace they can put anything where there is nothing yet.
    """
    return _made(workspace, *OUTPUTS)


def uploads_folder(workspace: Path) -> Path | None:
    """The folder of files that people sent; as `outputs_folder`."""
    return _made(workspace, UPLOADS)


def worktrees_folder(workspace: Path) -> Path | None:
    """The folder of the worktrees of subagents; as `outputs_folder`."""
    return _made(workspace, *WORKTREES.split("/"))


def _made(workspace: Path, *names: str) -> Path | None:
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
