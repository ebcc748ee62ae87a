"""Where files that people sent are kept: ``uploads/<session>/<digest>/<name>`` in the workspace.

Only their own session finds them there (I10). The agent's own tools and commands may write in the
workspace, so every step of the way is opened without following a link, and what is read back is
compared with the digest that it was kept under. All of it blocks.
"""

import hashlib
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from runtime.domain.errors import ToolError
from runtime.domain.files import safe_name
from runtime.tools.atomic_write import write_whole
from runtime.tools.hidden_paths import UPLOADS, file_name
from runtime.workspace.open_folders import opened

_DIGITS: Final = 16
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def digest_of(content: bytes) -> str:
    """SHA-256, in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def path_of(session_id: str, digest: str, name: str) -> str:
    """Where a file is kept, relative to the workspace."""
    return f"{UPLOADS}/{file_name(session_id)}/{digest[:_DIGITS]}/{safe_name(name)}"


def keep(workspace: Path, session_id: str, name: str, content: bytes) -> str:
    """Write a file and return its path; on the disk on return, and once however often it is kept.

    Raises `ToolError` where something else has taken the place of a folder, and where the disk
    takes nothing.
    """
    path = path_of(session_id, digest_of(content), name)
    keep_at(workspace, path, content)
    return path


def keep_at(workspace: Path, path: str, content: bytes) -> None:
    """Write the file at the relative `path`, which nobody outside chose; as `keep`."""
    *folders, last = path.split("/")
    try:
        with opened(workspace.resolve(), folders, made=folders) as directory:
            if _content(directory, last, len(content)) != content:
                write_whole(directory, last, content)
    except OSError as error:
        raise ToolError(f"{path} cannot be written: {error.strerror}") from error


def read(workspace: Path, path: str, digest: str, most: int) -> bytes | None:
    """A kept file as it came; None where it is gone, was changed, or has more than `most` bytes."""
    *folders, last = path.split("/")
    if not folders or ".." in folders:
        return None
    try:
        with opened(workspace.resolve(), folders) as directory:
            content = _content(directory, last, most)
    except OSError:
        return None
    return content if content is not None and digest_of(content) == digest else None


def held(workspace: Path, session_id: str) -> int:
    """The bytes of the files in a session's folder, without following a link."""
    total = 0
    folders = (UPLOADS, file_name(session_id))
    with suppress(OSError), opened(workspace.resolve(), folders) as top:
        for _, _, names, directory in os.fwalk(dir_fd=top, follow_symlinks=False):
            for name in names:
                with suppress(OSError):
                    total += os.stat(name, dir_fd=directory, follow_symlinks=False).st_size
    return total


def _content(directory: int, name: str, most: int) -> bytes | None:
    try:
        handle = os.open(name, _READ, dir_fd=directory)
    except FileNotFoundError:
        return None
    with os.fdopen(handle, "rb") as file:
        if os.fstat(handle).st_size > most:
            return None
        return file.read(most)
