"""What others may not read below a folder; as a program, below several.

A command of a root gateway owns what root owns, so `closed_folders` hides what is found here from
it. As a program of its own a walk over the whole system takes its half second of the processor
beside the gateway, not from it. Standard library only, and little of it, as in `launch_spec`.
"""

import os
import stat
import sys
from collections.abc import Iterator

BOOT = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from adapters.sandbox.folder_walk import main; main(sys.argv[2:])"
)
END = b"\0"
"""After each path: the one byte that no path holds. What was written without it is not whole."""


def main(folders: list[str]) -> None:
    """Write what is closed below `folders`, and then an empty path."""
    paths = (path for folder in folders for path in closed_below(folder, depth=None))
    with os.fdopen(sys.stdout.fileno(), "wb", closefd=False) as out:
        for path in paths:
            out.write(os.fsencode(path) + END)
        out.write(END)


def read(written: bytes) -> tuple[str, ...] | None:
    """The paths that `main` wrote; None where it did not come to its end."""
    if not written.endswith(END + END) and written != END:
        return None
    return tuple(os.fsdecode(path) for path in written.split(END) if path)


def open_to_others(path: str) -> bool:
    """Whether anybody on this machine may read it."""
    try:
        return _is_open(os.stat(path))
    except OSError:
        return False


def closed_below(path: str, *, depth: int | None) -> Iterator[str]:
    """What a root gateway's command could read in a folder and others may not, outermost first.

    It looks down to `depth` levels, or everywhere. Files of other users are left out: root without
    capabilities is a stranger to them.
    """
    if os.geteuid() != 0:
        return
    groups = {os.getegid(), *os.getgroups()}
    level = [path]
    while level and depth != 0:
        deeper: list[str] = []
        for folder in level:
            for child, found in _children(folder):
                if _is_open(found):
                    if stat.S_ISDIR(found.st_mode):
                        deeper.append(child)
                elif found.st_uid == os.geteuid() or found.st_gid in groups:
                    yield child
        level = deeper
        depth = None if depth is None else depth - 1


def _is_open(found: os.stat_result) -> bool:
    wanted = stat.S_IROTH | (stat.S_IXOTH if stat.S_ISDIR(found.st_mode) else 0)
    return found.st_mode & wanted == wanted


def _children(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    """What lies in a folder, without links."""
    try:
        with os.scandir(folder) as children:
            for child in children:
                if not child.is_symlink():
                    yield child.path, child.stat(follow_symlinks=False)
    except OSError:
        # It is gone, and so is what was in it.
        return
