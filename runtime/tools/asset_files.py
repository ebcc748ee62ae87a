"""Where uploads are kept: ``.gatehouse/assets/`` in the workspace, which no tool reaches.

What comes in is written piece by piece beside its place and gets its name when it is whole and on
the disk. A session that uses an upload gets a copy of its own among its files, since its commands
may write there. Every step of a way is opened without following a link. All of it blocks.
"""

import hashlib
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final

from runtime.domain.errors import ToolError
from runtime.domain.files import safe_name
from runtime.tools.atomic_write import staged_name
from runtime.tools.file_types import recognise_head
from runtime.tools.hidden_paths import PRIVATE
from runtime.tools.upload_folders import path_of
from runtime.workspace.open_folders import opened

FOLDER: Final = (PRIVATE, "assets")
HEAD: Final = 4_096
"""First bytes that tell what a file is."""
PIECE: Final = 1024 * 1024
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Incoming:
    """A file that is being written, in an open folder; `finish` or `discard` ends it.

    ``size``, ``digest`` and ``media_type`` are of what was written so far.
    """

    def __init__(self, directory: int) -> None:
        """`directory` is closed with it. Raises `OSError`."""
        self._directory = directory
        self._name: str | None = staged_name()
        self._hash = hashlib.sha256()
        self._head = b""
        self.size = 0
        try:
            self._file = os.fdopen(os.open(self._name, _NEW, 0o600, dir_fd=directory), "wb")
        except BaseException:
            os.close(directory)
            raise

    @property
    def digest(self) -> str:
        """SHA-256, in hexadecimal digits."""
        return self._hash.hexdigest()

    @property
    def media_type(self) -> str:
        """What it is by its first bytes."""
        return recognise_head(self._head)

    def write(self, piece: bytes) -> None:
        """Add a piece. Raises `OSError`."""
        if len(self._head) < HEAD:
            self._head += piece[: HEAD - len(self._head)]
        self._hash.update(piece)
        self.size += len(piece)
        self._file.write(piece)

    def finish(self, name: str) -> None:
        """Give the file its name, which replaces what has it; on the disk on return. Raises
        `OSError`."""
        self._file.flush()
        os.fsync(self._file.fileno())
        if self._name is not None:
            os.rename(self._name, name, src_dir_fd=self._directory, dst_dir_fd=self._directory)
            self._name = None
        os.fsync(self._directory)
        self.discard()

    def discard(self) -> None:
        """Close it, and take away what has no name yet. May be called again."""
        if self._directory < 0:
            return
        with suppress(OSError):
            self._file.close()
        if self._name is not None:
            with suppress(OSError):
                os.unlink(self._name, dir_fd=self._directory)
        os.close(self._directory)
        self._directory = -1


def receive(workspace: Path) -> Incoming:
    """Begin to write an upload. Raises `OSError`."""
    return _begin(workspace, FOLDER)


def new_name() -> str:
    """A name that no other upload has."""
    return secrets.token_hex(16)


def open_file(workspace: Path, name: str, size: int) -> BinaryIO | None:
    """The content of an upload; None where it is gone, or is no file of this size."""
    try:
        with opened(workspace.resolve(), FOLDER) as directory:
            handle = os.open(name, _READ, dir_fd=directory)
    except OSError:
        return None
    state = os.fstat(handle)
    if not stat.S_ISREG(state.st_mode) or state.st_size != size:
        os.close(handle)
        return None
    return os.fdopen(handle, "rb")


def copy_to_session(
    workspace: Path, source: BinaryIO, *, digest: str, session_id: str, name: str
) -> str:
    """Copy an upload to the files of a session; its path in the workspace. Once, however often.

    Raises `ToolError` where the content is another one, and where the disk takes nothing.
    """
    path = path_of(session_id, digest, safe_name(name))
    *folders, last = path.split("/")
    try:
        copy = _begin(workspace, folders)
        try:
            while piece := source.read(PIECE):
                copy.write(piece)
            if copy.digest != digest:
                raise ToolError("it was changed on the disk; upload it again")
            copy.finish(last)
        finally:
            copy.discard()
    except OSError as error:
        raise ToolError(f"{path} cannot be written: {error.strerror}") from error
    return path


def remove(workspace: Path, names: tuple[str, ...]) -> None:
    """Remove uploads; what is gone is no error. Raises `OSError` for what cannot be removed."""
    if not names:
        return
    with suppress(FileNotFoundError), opened(workspace.resolve(), FOLDER) as directory:
        for name in names:
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=directory)


def names_before(workspace: Path, before_ms: int) -> frozenset[str]:
    """What is in the folder and was written last before, half-written files too."""
    found = set()
    with suppress(FileNotFoundError), opened(workspace.resolve(), FOLDER) as directory:
        for name in os.listdir(directory):  # noqa: PTH208 - by the open folder
            with suppress(FileNotFoundError):
                state = os.stat(name, dir_fd=directory, follow_symlinks=False)
                if state.st_mtime_ns < before_ms * 1_000_000:
                    found.add(name)
    return frozenset(found)


def _begin(workspace: Path, folders: tuple[str, ...] | list[str]) -> Incoming:
    with opened(workspace.resolve(), folders, made=folders) as directory:
        return Incoming(os.dup(directory))
