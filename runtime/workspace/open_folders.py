"""Folders as open handles: reached without following a link, made where they are missing, kept."""

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def opened(top: Path, folders: Sequence[str], *, made: Collection[str] = ()) -> Iterator[int]:
    """A handle of the folder below `top`, which has no links in it, for the block. Each step is
    opened without following a link; those that are to be `made` are, where they are missing.

    Raises `OSError`.
    """
    with ExitStack() as stack:
        handle = os.open(top, FOLDER)
        stack.callback(os.close, handle)
        for folder in folders:
            if folder in made:
                with suppress(FileExistsError):
                    os.mkdir(folder, 0o700, dir_fd=handle)
            handle = os.open(folder, FOLDER, dir_fd=handle)
            stack.callback(os.close, handle)
        yield handle


def settle(folder: Path) -> None:
    """Let the names in a folder be on the disk on return. Raises `OSError`."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
