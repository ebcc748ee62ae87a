"""One gateway per SQLite file: an advisory lock beside it, which dies with its process.

The lock is `<database>.lock` under `flock`, so a crash never leaves it held; the process id in it
is for people. The file is never removed: a lock on a removed file excludes nobody.
"""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from runtime.domain.errors import StoreUnavailable
from runtime.store.dialect import sqlite_path

_TRIES: Final = 100
_WIDTH: Final = 16
"""Characters for a process id, padded, so that a shorter one leaves nothing of a longer."""


_SECOND: Final = (
    "A home has one gateway. Use that one with `gatehouse chat` or `gatehouse open`, or stop "
    "it. To run a second gateway, name another home folder in GATEHOUSE_HOME."
)


@contextmanager
def gateway_lock(url: str, *, hint: str = _SECOND) -> Iterator[None]:
    """Hold the database for one gateway. PostgreSQL is shared: nothing happens.

    Raises StoreUnavailable, naming the process that holds it, with the `hint`.
    """
    path = sqlite_path(url)
    if path is None:
        yield
        return
    with hold(lock_file(path), what=f"{path} is used by another gateway", hint=hint):
        yield


def holder_of(lock: Path) -> int | None:
    """The process id of the holder of the file `lock`; None if nobody holds it.

    0 means that somebody holds it whose id cannot be read.
    """
    if not lock.exists():
        return None
    descriptor = os.open(lock, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if _try(descriptor, fcntl.LOCK_SH):
            return None
        return _pid(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def hold(
    lock: Path,
    *,
    what: str,
    hint: str = "Stop that process first; the lock ends with it.",
    wait: bool = False,
) -> Iterator[None]:
    """Hold the file `lock`, and write this process's id into it.

    With `wait` it blocks, and belongs into a thread; else it raises StoreUnavailable, which says
    `what` and by whom, and the `hint`.
    """
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreUnavailable(
            f"The lock {lock} cannot be opened: {error.strerror}.",
            hint="Its folder must exist, and the gateway's user must be able to write to it.",
        ) from error
    try:
        if wait:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        elif not _acquire(descriptor):
            raise StoreUnavailable(
                f"{what} (process {_pid(descriptor) or 'unknown'}).",
                hint=hint,
            )
        _write_pid(descriptor, str(os.getpid()))
        try:
            yield
        finally:
            _write_pid(descriptor, "")
    finally:
        os.close(descriptor)


def _acquire(descriptor: int) -> bool:
    """Take the lock unless another process holds it; `holder_of` only looks, and is outwaited."""
    for _ in range(_TRIES):
        if _try(descriptor, fcntl.LOCK_EX):
            return True
        if not _try(descriptor, fcntl.LOCK_SH):
            return False
        os.sched_yield()
    return False


def _try(descriptor: int, mode: int) -> bool:
    try:
        fcntl.flock(descriptor, mode | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _pid(descriptor: int) -> int:
    text = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
    return int(text) if text.isdigit() else 0


def _write_pid(descriptor: int, pid: str) -> None:
    """Put a process id over the one that is there, which takes no room on a full disk; a lock whose
    file has no room for one excludes others all the same."""
    try:
        os.pwrite(descriptor, pid.ljust(_WIDTH).encode("ascii"), 0)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise


def lock_file(path: Path) -> Path:
    """The gateway's lock of the database `path`."""
    return path.with_name(path.name + ".lock")
