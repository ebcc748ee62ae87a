"""Whether a SQLite file is whole, so that damage is told in words before somebody meets it."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from runtime.domain.errors import StoreCorrupt
from runtime.store.dialect import sqlite_path
from runtime.store.faults import damaged, sqlite_fault

AT_START: Final = 64 * 1024**2
"""Bytes of a file that are read in so little time that a start does not feel it."""
_PATIENCE_S: Final = 1.0


def examine(url: str, *, most_bytes: int | None = None) -> None:
    """Read a SQLite database and look for damage; one of more than `most_bytes` is not looked at.

    Nothing happens on PostgreSQL, where there is no file, and where another program locks it: that
    is for whoever opens it to tell. Raises `StoreCorrupt`.
    """
    path = sqlite_path(url)
    if path is None or not path.is_file():
        return
    if most_bytes is not None and path.stat().st_size > most_bytes:
        return
    examine_file(path, shown=path)


def examine_file(path: Path, *, shown: Path) -> None:
    """As `examine`, of a file whatever its size; `shown` is the name that people know it by."""
    try:
        with closing(sqlite3.connect(path, timeout=_PATIENCE_S, isolation_level=None)) as raw:
            # What is damaged may be no text.
            raw.text_factory = _shown
            raw.execute("PRAGMA trusted_schema=OFF")
            said = raw.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.Error as error:
        fault = sqlite_fault(error, str(shown))
        if isinstance(fault, StoreCorrupt):
            raise fault from error
        return
    if said != "ok":
        raise damaged(str(shown), str(said))


def _shown(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
