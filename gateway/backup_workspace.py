"""The workspace's files as a backup takes them: opened without following any link (OPS-6).

Folders are walked by descriptor, so that a link that somebody puts in a folder's place meanwhile
leads nowhere. A link that stays inside is kept as words, one that leaves is skipped and named.
Empty folders are not kept. It refuses to guess: a file that cannot be read ends the backup.
"""

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Final

from runtime.domain.backups import BackupLink
from runtime.domain.errors import Unavailable
from runtime.domain.printable import printable_path

CACHE: Final = ".gatehouse/cache"
"""What the gateway can make again; nothing else of `.gatehouse` can be, so the rest is kept."""

_HALF_WRITTEN: Final = (".gatehouse-", ".tmp")
Identity = tuple[int, int]


@dataclass(frozen=True, slots=True)
class WorkspaceFile:
    """A plain file; `open` gives its content, or raises FileNotFoundError when it is gone."""

    path: str
    open: Callable[[], BinaryIO]


@dataclass(frozen=True, slots=True)
class Skipped:
    """What a backup leaves out, and why."""

    path: str
    reason: str

    def __str__(self) -> str:
        return f"{self.path} ({self.reason})"


Entry = WorkspaceFile | BackupLink | Skipped


def identities(paths: Iterator[Path]) -> frozenset[Identity]:
    """The files that must not be in a backup wherever they stand, by device and number."""
    found = set()
    for path in paths:
        try:
            state = path.stat()
        except OSError:
            continue
        found.add((state.st_dev, state.st_ino))
    return frozenset(found)


def walk(root: Path, *, without: frozenset[Identity] = frozenset()) -> Iterator[Entry]:
    """Everything in the workspace, by name; folders and files in `without` are passed over.

    A file's `open` works until the next entry is taken. Raises Unavailable for a folder that
    cannot be read.
    """
    if not root.is_dir():
        return
    top = root.resolve()
    for folder, folders, files, descriptor in os.fwalk(top, onerror=_unreadable):
        base = PurePosixPath(Path(folder).relative_to(top).as_posix())
        yield from _linked_folders(top, base, folders, descriptor)
        folders[:] = [
            name
            for name in sorted(folders)
            if (base / name).as_posix() != CACHE
            and (state := _state(name, descriptor)) is not None
            and _identity(state) not in without
        ]
        for name in sorted(files):
            found = _entry(top, base / name, descriptor, without)
            if found is not None:
                yield found


def inside(path: str, target: str) -> bool:
    """Whether a link at `path` to `target` stays in the workspace, whatever other links there are.

    So `..` may only stand at the front: after a name it may mean the parent of another link's end.
    """
    parts = PurePosixPath(target).parts
    if not parts or PurePosixPath(target).is_absolute() or "\0" in target:
        return False
    up = next((at for at, part in enumerate(parts) if part != ".."), len(parts))
    return ".." not in parts[up:] and up <= len(PurePosixPath(path).parts) - 1


def _linked_folders(
    top: Path, base: PurePosixPath, folders: list[str], descriptor: int
) -> Iterator[Entry]:
    for name in sorted(folders):
        state = _state(name, descriptor)
        if state is not None and stat.S_ISLNK(state.st_mode):
            folders.remove(name)
            yield _link(top, base / name, descriptor)


def _entry(
    top: Path, path: PurePosixPath, descriptor: int, without: frozenset[Identity]
) -> Entry | None:
    name = path.name
    if name.startswith(_HALF_WRITTEN[0]) and name.endswith(_HALF_WRITTEN[1]):
        return None
    state = _state(name, descriptor)
    if state is None:
        return None
    if not _is_text(str(path)):
        return Skipped(printable_path(path), "its name is not UTF-8")
    if _identity(state) in without:
        return Skipped(printable_path(path), "the gateway's own file")
    if stat.S_ISLNK(state.st_mode):
        return _link(top, path, descriptor)
    if not stat.S_ISREG(state.st_mode):
        return Skipped(printable_path(path), "not a plain file")
    return WorkspaceFile(str(path), lambda: _open(path, descriptor))


def _open(path: PurePosixPath, folder: int) -> BinaryIO:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(path.name, flags, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise FileNotFoundError(path)
    return os.fdopen(descriptor, "rb")


def _link(top: Path, path: PurePosixPath, descriptor: int) -> Entry:
    target = os.readlink(path.name, dir_fd=descriptor)
    if not _is_text(str(path)) or not _is_text(target):
        return Skipped(printable_path(path), "its name is not UTF-8")
    if Path(target).is_relative_to(top):
        # An absolute way into the workspace is kept as a relative one, which holds elsewhere too.
        up = [".."] * (len(path.parts) - 1)
        target = str(PurePosixPath(*up, Path(target).relative_to(top).as_posix()))
    if not inside(str(path), target):
        return Skipped(printable_path(path), "a link that leaves the workspace")
    return BackupLink(path=str(path), target=target)


def _state(name: str, folder: int) -> os.stat_result | None:
    """Of the name itself; None where it is gone by now."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _identity(state: os.stat_result) -> Identity:
    return state.st_dev, state.st_ino


def _is_text(name: str) -> bool:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _unreadable(error: OSError) -> None:
    if isinstance(error, FileNotFoundError):
        return
    raise Unavailable(
        f"{error.filename} cannot be read: {error.strerror}.",
        hint="Give the user that makes the backup the right to read the whole workspace.",
    ) from error
