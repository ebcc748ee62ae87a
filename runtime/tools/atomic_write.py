"""Replacing a file so that a reader sees the old content or the new, never a half (TOOL-3)."""

import hashlib
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from threading import Lock

from runtime.domain.errors import ToolError
from runtime.tools.paths import Spot, opened_file, shown
from runtime.tools.seen_versions import Seen, SeenFiles

HASHED = 10 * 1024 * 1024
"""Bytes; a larger file is told from its changed self by time and size alone."""
_STRIPES = tuple(Lock() for _ in range(64))


@contextmanager
def exclusive(*spots: Spot) -> Iterator[None]:
    """One writer per file in this process: what was compared is what is replaced."""
    digests = (hashlib.blake2b(os.fsencode(one.path), digest_size=2).digest() for one in spots)
    # In one order for everybody, and each once: two files may share a stripe.
    places = sorted({int.from_bytes(digest) % len(_STRIPES) for digest in digests})
    with ExitStack() as held:
        for place in places:
            held.enter_context(_STRIPES[place])
        yield


def present(spot: Spot, text: str) -> tuple[os.stat_result, bytes | None] | None:
    """The file as it is: None where it is absent, no content where it is over `HASHED` bytes.

    Raises `ToolError` for what is not a regular file.
    """
    try:
        os.stat(spot.name, dir_fd=spot.directory, follow_symlinks=False)
    except FileNotFoundError:
        return None
    with opened_file(spot.directory, spot.name, text, spot.notes) as handle:
        status = os.fstat(handle)
        return status, None if status.st_size > HASHED else read_all(handle)


def refuse_changed(
    spot: Spot, text: str, found: tuple[os.stat_result, bytes | None], files: SeenFiles
) -> None:
    """Raises `ToolError` when the session saw another content than there is now."""
    if files.changed(spot.path, Seen.of(*found)):
        raise ToolError(
            f"{shown(text)} changed since it was last read in this session; read it again first"
        )


@dataclass(frozen=True, slots=True)
class Staged:
    """A new content beside the file whose place it is to take, on the disk already."""

    name: str
    status: os.stat_result
    seen: Seen


def staged_name() -> str:
    """A name that is new, for what is staged."""
    return f".gatehouse-{secrets.token_hex(8)}.tmp"


def stage(
    spot: Spot,
    content: bytes,
    like: os.stat_result | None,
    *,
    name: str | None = None,
    executable: bool = False,
) -> Staged:
    """Write `content` beside the file, with the mode and owner of `like`; who may read a new file
    that is `executable` may run it. Raises `OSError`."""
    name = name or staged_name()
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(name, flags, 0o666 if like is None else 0o600, dir_fd=spot.directory)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            if like is not None:
                _keep_owner_and_mode(file.fileno(), like)
            elif executable:
                mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
                os.fchmod(file.fileno(), mode | (mode & 0o444) >> 2)
            os.fsync(file.fileno())
            status = os.fstat(file.fileno())
    except BaseException:
        drop(spot, name)
        raise
    return Staged(name, status, Seen.of(status, content))


def drop(spot: Spot, name: str) -> None:
    """Take away what was staged, if it is there."""
    with suppress(OSError):
        os.unlink(name, dir_fd=spot.directory)


def put(spot: Spot, text: str, staged: Staged, old: os.stat_result | None) -> None:
    """Let what was staged take the place of `old`. Raises `ToolError` when the file is no longer
    that, and `OSError`."""
    _refuse_other(spot, text, old)
    os.rename(staged.name, spot.name, src_dir_fd=spot.directory, dst_dir_fd=spot.directory)
    os.fsync(spot.directory)


def remove(spot: Spot, text: str, old: os.stat_result) -> None:
    """Take a file away that still is `old`; raises as `put`."""
    _refuse_other(spot, text, old)
    os.unlink(spot.name, dir_fd=spot.directory)
    os.fsync(spot.directory)


def replace(spot: Spot, text: str, content: bytes, old: os.stat_result | None) -> Seen:
    """Put `content` in the place of `old`, keeping its mode and owner; on the disk on return.

    Raises `ToolError` when the file is no longer `old`, and `OSError`.
    """
    staged = stage(spot, content, old)
    try:
        put(spot, text, staged, old)
    except BaseException:
        drop(spot, staged.name)
        raise
    return staged.seen


def write_whole(directory: int, name: str, content: bytes) -> None:
    """Put a file of the gateway's own into an open directory, on the disk on return; what has its
    name is replaced. Raises `OSError`."""
    making = staged_name()
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(making, flags, 0o600, dir_fd=directory), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.rename(making, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        with suppress(OSError):
            os.unlink(making, dir_fd=directory)
        raise
    os.fsync(directory)


def read_all(handle: int) -> bytes:
    with os.fdopen(os.dup(handle), "rb") as file:
        return file.read(HASHED + 1)


def _keep_owner_and_mode(handle: int, old: os.stat_result) -> None:
    # Only root may give a file away; anyone else's file becomes the gateway's.
    with suppress(PermissionError):
        os.fchown(handle, old.st_uid, old.st_gid)
    # Without the set-user-id bits: they were granted to the program that was there.
    os.fchmod(handle, stat.S_IMODE(old.st_mode) & 0o777)


def _refuse_other(spot: Spot, text: str, old: os.stat_result | None) -> None:
    try:
        now = os.stat(spot.name, dir_fd=spot.directory, follow_symlinks=False)
    except FileNotFoundError:
        now = None
    if _identity(now) != _identity(old):
        raise ToolError(f"{shown(text)} changed while it was written; nothing was written")


def _identity(status: os.stat_result | None) -> tuple[int, int, int, int] | None:
    if status is None:
        return None
    return status.st_ino, status.st_dev, status.st_mtime_ns, status.st_size
