"""The owner's token of a home: a file that nobody else may read (WEB-2).

The token names its home, so that the database can keep one fingerprint for each home and a new
token takes the place of the old one. It is made here and checked by `gateway.http.credentials`.
"""

import fcntl
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from gateway.config import TOKEN, read_tokens
from runtime.domain.errors import Unavailable

_SHAPE: Final = re.compile(r"gh-([0-9a-f]{16})-[A-Za-z0-9_-]{43}")


def home_of(token: str) -> str | None:
    """The home that a token names; None for a token that is of no home."""
    found = _SHAPE.fullmatch(token)
    return None if found is None else found[1]


def path(home: Path) -> Path:
    """The file."""
    return home / TOKEN


def read(home: Path) -> str | None:
    """The token of a home; None where it has none yet."""
    return next((one for one in read_tokens(path(home)) if home_of(one)), None)


def make(home: Path) -> str:
    """The token of a home, made where there is none. Raises `Unavailable`.

    Processes that make it at once end with the same one.
    """
    try:
        with _alone(home):
            return read(home) or _write(home, _new(secrets.token_hex(8)))
    except OSError as error:
        raise _unwritable(home, error) from error


def rotate(home: Path) -> str:
    """Put a new token in the place of the old one. Raises `Unavailable`."""
    try:
        with _alone(home):
            old = read(home)
            return _write(home, _new((old and home_of(old)) or secrets.token_hex(8)))
    except OSError as error:
        raise _unwritable(home, error) from error


@contextmanager
def _alone(home: Path) -> Iterator[None]:
    """No other process of this home writes its token during the block. Raises `OSError`."""
    folder = os.open(home, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _new(home: str) -> str:
    return f"gh-{home}-{secrets.token_urlsafe(32)}"


def _write(home: Path, token: str) -> str:
    """Write the token beside its place and move it there, so that no reader sees half of it."""
    aside = home / f".{TOKEN}"
    aside.unlink(missing_ok=True)
    handle = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(f"{token}\n")
        file.flush()
        os.fsync(file.fileno())
    aside.replace(path(home))
    return token


def _unwritable(home: Path, error: OSError) -> Unavailable:
    return Unavailable(
        f"The owner's token cannot be written to {path(home)}: {error.strerror}.",
        hint="Make the home folder writable, or name another folder in GATEHOUSE_HOME.",
    )
