"""How a state machine runs units: at once, in the order in which it plays them.

SQLite runs them on a synchronous engine, as the writer thread does, but without waiting for the
disk; PostgreSQL runs them through the real `Database` on an event loop of its own.
"""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

from sqlalchemy import Connection

from runtime.store import Database, open_database
from runtime.store.database import CLOCK_OPTION
from runtime.store.metadata import metadata
from runtime.store.sqlite import writing_engine
from tests.contract.store_support import StillClock

T = TypeVar("T")


class Units(Protocol):
    """Runs one unit in a transaction of its own; a raise undoes it."""

    clock: StillClock

    def run(self, work: Callable[[Connection], T]) -> T: ...

    def close(self) -> None: ...


class SqliteUnits:
    """Units on a copy of the migrated file `template`."""

    def __init__(self, template: Path, path: Path) -> None:
        self.clock = StillClock()
        shutil.copyfile(template, path)
        engine = writing_engine(path).execution_options(**{CLOCK_OPTION: self.clock})
        self._conn = engine.connect()
        # What a power cut does is not asked here, so nothing has to reach the disk.
        self._conn.exec_driver_sql("PRAGMA synchronous=OFF")
        self._conn.exec_driver_sql("PRAGMA journal_mode=MEMORY")
        self._conn.rollback()

    def run(self, work: Callable[[Connection], T]) -> T:
        self._conn.exec_driver_sql("BEGIN IMMEDIATE")
        try:
            result = work(self._conn)
        except BaseException:
            self._conn.rollback()
            raise
        self._conn.commit()
        return result

    def close(self) -> None:
        self._conn.close()


class PostgresUnits:
    """Units on one server's database, emptied first."""

    def __init__(self, url: str) -> None:
        self.clock = StillClock()
        self._loop = asyncio.new_event_loop()
        self._database: Database = open_database(url, clock=self.clock, pool_size=2)
        self._loop.run_until_complete(self._database.start())
        names = ", ".join(table.name for table in metadata.sorted_tables)
        self.run(lambda conn: conn.exec_driver_sql(f"TRUNCATE {names} CASCADE").close())

    def run(self, work: Callable[[Connection], T]) -> T:
        return self._loop.run_until_complete(self._database.write(work, name="unit"))

    def close(self) -> None:
        self._loop.run_until_complete(self._database.close())
        self._loop.close()
