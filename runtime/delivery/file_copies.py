"""The copies of files that messages carry, as tools made them: where one lies, and whether it still
is what was to be sent. What touches files blocks."""

import hashlib
import os
import stat
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, Final

from runtime.domain.messages import FilePart

_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_PIECE: Final = 1024 * 1024


def located(workspace: Path, part: FilePart) -> FilePart:
    """The part with an absolute path, which follows the workspace when that is moved."""
    return part.model_copy(update={"path": str(workspace.resolve() / part.path)})


def open_copy(workspace: Path, part: FilePart) -> BinaryIO | None:
    """A copy, open at its start, if it still is what was copied; None where it is not."""
    with ExitStack() as stack:
        try:
            handle = os.open(located(workspace, part).path, _READ)
            content = stack.enter_context(os.fdopen(handle, "rb"))
            if not _is_whole(handle, part):
                return None
        except OSError:
            return None
        stack.pop_all()
        return content


def _is_whole(handle: int, part: FilePart) -> bool:
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        return False
    if not part.digest:
        return True
    found = hashlib.sha256()
    if status.st_size != part.size_bytes:
        return False
    while piece := os.read(handle, _PIECE):
        found.update(piece)
    os.lseek(handle, 0, os.SEEK_SET)
    return found.hexdigest() == part.digest
