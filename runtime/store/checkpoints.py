"""How large SQLite's write-ahead log may grow: by the room on its disk, at any time.

The log is copied into the database's file, which is a checkpoint, once it holds so many pages; then
it begins anew in its place. Rare checkpoints are cheap, because pages that every message touches
are copied once for many. But a log that has filled a disk leaves no room for the pages that it must
be copied to, and nothing can be written any more: so it gets a part of the room alone.
"""

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

from runtime.store.dialect import sqlite_path

MOST_PAGES: Final = 8_000
LEAST_PAGES: Final = 62
PAGE_BYTES: Final = 4_096 + 24
"""A page in the log, with its header (sqlite.org/fileformat2, section 4.1)."""
SHARE: Final = 4
"""The log gets one part in so many: what it holds may all be new to the file, which then grows by
as much, and a transaction may be larger than the bound."""
KEPT: Final = 2
"""A log that grew beyond its bound is cut to so many times the bound when it begins anew."""


def room_on_disk(folder: Path) -> int:
    """Bytes that this process may still write beside `folder`'s files. Raises OSError."""
    found = os.statvfs(folder)
    # What is kept back for the system's administrator is room for nobody else.
    blocks = found.f_bavail if os.geteuid() else found.f_bfree
    return blocks * found.f_frsize


def pages_for(room: int) -> int:
    """The pages that a log may hold where there are so many bytes for it and for what it is copied
    to; in few sizes, so that the bound seldom changes."""
    pages = MOST_PAGES
    while pages > LEAST_PAGES and pages * PAGE_BYTES * SHARE > room:
        pages //= 2
    return pages


def make_room(url: str) -> None:
    """Copy a SQLite log that has filled its disk into the database's file, and cut it off.

    For a start, before anything else needs room; the caller holds the gateway's lock. A database
    that cannot be opened is left to whoever opens it next, and tells of it.
    """
    path = sqlite_path(url)
    if path is None or not path.exists():
        return
    with suppress(OSError, sqlite3.Error):
        log = _log_bytes(path)
        if log <= pages_for(room_on_disk(path.parent) + log) * PAGE_BYTES:
            return
        with closing(sqlite3.connect(path, isolation_level=None)) as raw:
            # Alone it needs no file for memory that it would share, for which there is no room.
            raw.execute("PRAGMA locking_mode=EXCLUSIVE").close()
            raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").close()


class Checkpoints:
    """Keeps the log of one database within its bound, on the connection that writes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._folder = path.parent
        self._pages = 0

    def begin(self, raw: sqlite3.Connection) -> None:
        """Bound the log of a connection that was just opened; one that is too large is copied at
        once, because what comes next may find no room."""
        self._pages = 0
        self.keep(raw)
        if _log_bytes(self._path) > self._pages * PAGE_BYTES:
            self.reclaim(raw)

    def keep(self, raw: sqlite3.Connection) -> None:
        """Bound the log by the room that there is now; some microseconds on a local disk."""
        try:
            room = room_on_disk(self._folder)
        except OSError:
            return
        if self._pages == MOST_PAGES == pages_for(room):
            # Nearly always: room enough, however large the log is.
            return
        pages = pages_for(room + _log_bytes(self._path))
        if pages == self._pages:
            return
        with suppress(sqlite3.Error):
            raw.execute(f"PRAGMA wal_autocheckpoint={pages}").close()
            raw.execute(f"PRAGMA journal_size_limit={pages * PAGE_BYTES * KEPT}").close()
            self._pages = pages

    def reclaim(self, raw: sqlite3.Connection) -> None:
        """Copy the log as far as nobody reads it, so that the next write begins it anew. What finds
        no room stays in it."""
        with suppress(sqlite3.Error):
            raw.execute("PRAGMA wal_checkpoint(PASSIVE)").close()


def _log_bytes(path: Path) -> int:
    try:
        return path.with_name(f"{path.name}-wal").stat().st_size
    except OSError:
        return 0
