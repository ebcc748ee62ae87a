"""Whether a start failed because a disk is full, which passes once somebody makes room."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from runtime.domain.errors import StoreFull, StoreUnavailable

NEARLY_NOTHING: Final = 64 * 1024
"""Bytes. With less, SQLite may say of a full disk only that a file cannot be opened or written."""
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})


def is_full(error: BaseException, home: Path) -> bool:
    """Whether a failure comes from a disk, or a quota, without room."""
    causes = tuple(_causes(error))
    if any(isinstance(cause, StoreFull) or _errno(cause) in _FULL for cause in causes):
        return True
    unclear = any(isinstance(cause, StoreUnavailable) for cause in causes)
    return unclear and _free_bytes(home) < NEARLY_NOTHING


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error, and what it was raised from."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _errno(error: BaseException) -> int | None:
    return error.errno if isinstance(error, OSError) else None


def _free_bytes(folder: Path) -> int:
    try:
        status = os.statvfs(folder)
    except OSError:
        return NEARLY_NOTHING
    return status.f_bavail * status.f_frsize
