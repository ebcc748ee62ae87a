"""Reading one text file of a workspace: bounded, UTF-8, never through a link that leaves it.

Commands may write in the workspace while it is read, so every part of a path is opened relative
to the one before and must be no link by then; a link is resolved once and must lead inside.
"""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from runtime.workspace.open_folders import opened
from runtime.workspace.private_notes import is_disguised

LIMIT = 256 * 1024
"""Bytes; a larger file is skipped (CTX-5)."""
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


Status = tuple[int, int, int, int] | None
"""What tells that a file changed: times in ns, size, inode; None where it is not there."""


@dataclass(eq=False)
class Skipped(Exception):
    """A file is there and is not read; `why` completes the sentence that begins with its name."""

    why: str

    def __str__(self) -> str:
        return self.why


def read_text(root: Path, relative: str, *, links: bool = True) -> str | None:
    """The text of `relative` below `root`, with LF line ends; None where there is no such file.

    Raises `Skipped` for what is no regular file, too large, not UTF-8, unreadable, a private note
    by another name (`notes`), or reached through a link that leaves `root`; through any link below
    `root`, where `links` is False.
    """
    try:
        raw = _read(root, relative, links=links)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise Skipped(f"it cannot be read: {error.strerror or type(error).__name__}") from error
    if len(raw) > LIMIT:
        raise Skipped(f"it is larger than {LIMIT // 1024} KiB")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Skipped(f"it is not UTF-8 (byte {error.start})") from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def status(path: Path) -> Status:
    """How a file, or what a link leads to, stands now."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


def real(path: Path) -> Path:
    """`path` without links, whether or not it exists; of links in a circle one is left."""
    # `Path.resolve` raises RuntimeError for a circle up to Python 3.12.
    return Path(os.path.realpath(path))


def _read(root: Path, relative: str, *, links: bool) -> bytes:
    top = real(root)
    target = real(top / relative)
    if not links and target != top / relative:
        raise Skipped("it is, or is reached through, a link")
    if top not in target.parents:
        raise Skipped("it is a link that leaves the workspace")
    *folders, name = target.relative_to(top).parts
    with opened(top, folders) as directory:
        handle = os.open(name, _FILE, dir_fd=directory)
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise Skipped("it is not a regular file")
        if is_disguised(status, target, top, relative):
            raise Skipped("it is a private note under another name: copy what others may read")
        # It closes nothing by itself: it refuses a folder and leaves that open.
        with os.fdopen(handle, "rb", closefd=False) as file:
            return file.read(LIMIT + 1)
    finally:
        os.close(handle)
