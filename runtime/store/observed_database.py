"""The store with an observer: what its units cost, how many wait, how many share a commit.

It changes nothing about a unit: results, errors and cancellation are the store's own.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from sqlalchemy import Connection

from runtime.domain.errors import StoreUnavailable
from runtime.ports.clock import Clock
from runtime.ports.metrics import Observer
from runtime.store.database import Database, Point
from runtime.store.write_check import Writable

T = TypeVar("T")
_TOLD_CHARACTERS: Final = 1_000
"""Of a cause: a server's words may be long."""


class ObservedDatabase(Database):
    """Passes everything on to `database` and tells `observer` of each write.

    `file` is that of a SQLite database, whose disk may be full.
    """

    def __init__(
        self, database: Database, observer: Observer, clock: Clock, *, file: Path | None = None
    ) -> None:
        self.dialect = database.dialect
        self.writable = Writable(clock, file)
        """Whether writes are taken, as they have found."""
        self.unreadable = ""
        """Why the last read failed; empty while the database can be read."""
        self.waiting = 0
        """Writes that were handed over and have not ended."""
        self._database = database
        self._observer = observer
        self._clock = clock
        self._open = False

    async def start(self) -> None:
        await self._database.start()
        self._open = True

    async def close(self) -> None:
        self._open = False
        await self._database.close()

    async def write(self, work: Callable[[Connection], T], *, name: str, urgent: bool = False) -> T:
        began, kept = self._clock.monotonic(), False
        self.waiting += 1
        try:
            result = await self._database.write(work, name=name, urgent=urgent)
            kept = True
            self.writable.wrote()
            return result
        except StoreUnavailable as error:
            if self._open:
                self.writable.failed(error)
            raise
        finally:
            self.waiting -= 1
            self._observer.wrote(name, self._clock.monotonic() - began, kept=kept)

    async def read(self, work: Callable[[Connection], T]) -> T:
        try:
            result = await self._database.read(work)
        except StoreUnavailable as error:
            if self._open:
                self.unreadable = str(error)[:_TOLD_CHARACTERS]
            raise
        self.unreadable = ""
        return result


def count_commits(observer: Observer, *, grouped: bool) -> Point:
    """A point that tells `observer` of each transaction.

    `grouped`: the units of a transaction pass their ``commit`` points one after another, with no
    ``begin`` between them, as on SQLite's one writing thread.
    """
    open_group = True

    def point(name: str) -> None:
        nonlocal open_group
        if not name.endswith(":commit"):
            open_group = True
        elif open_group:
            open_group = not grouped
            observer.committed()

    return point
