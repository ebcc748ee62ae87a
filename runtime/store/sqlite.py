"""The embedded database: one file, one writing thread, a few reading threads.

Durable by default: WAL with `synchronous=FULL`, so that a committed unit survives a power cut.
It refuses `:memory:` and anything else that is not a file.
"""

import asyncio
import os
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Literal, TypeVar

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry, NullPool

from runtime.domain.errors import StoreUnavailable
from runtime.ports.clock import Clock
from runtime.store.checkpoints import Checkpoints
from runtime.store.database import (
    CLOCK_OPTION,
    Database,
    Outcome,
    Point,
    closed,
    no_point,
)
from runtime.store.faults import sqlite_fault
from runtime.store.writer import GuardedConnection, Unit, Writer

T = TypeVar("T")

BUSY_TIMEOUT_MS: Final = 5_000
_READERS: Final = 4
_STATEMENTS: Final = 512


class SqliteDatabase(Database):
    """The engine of one SQLite file; `busy_timeout_ms` is how long another writer is waited for."""

    dialect: Literal["sqlite"] = "sqlite"

    def __init__(
        self,
        path: Path,
        *,
        clock: Clock,
        points: Point = no_point,
        readers: int = _READERS,
        busy_timeout_ms: int = BUSY_TIMEOUT_MS,
    ) -> None:
        self._path = path
        self._busy_timeout_ms = busy_timeout_ms
        self._options = {CLOCK_OPTION: clock}
        self._points = points
        self._readers = readers
        self._writer: Writer | None = None
        self._reading: _Readers | None = None

    async def start(self) -> None:
        create_file(self._path)
        engine = writing_engine(self._path, busy_timeout_ms=self._busy_timeout_ms)
        writer = Writer(
            self._path,
            engine=engine.execution_options(**self._options),
            verify=lambda conn: _verify(conn, self._path),
            checkpoints=Checkpoints(self._path),
            points=self._points,
        )
        await writer.start()
        self._writer = writer
        self._reading = _Readers(
            self._reading_engine().execution_options(**self._options),
            ThreadPoolExecutor(self._readers, thread_name_prefix="store reader"),
        )

    async def close(self) -> None:
        writer, self._writer = self._writer, None
        readers, self._reading = self._reading, None
        # First: the last connection that may write locks the file while it goes.
        if readers is not None:
            await asyncio.to_thread(readers.close)
        if writer is not None:
            await writer.close()

    async def write(self, work: Callable[[Connection], T], *, name: str, urgent: bool = False) -> T:
        if self._writer is None:
            raise closed()
        outcome: Outcome[T] = Outcome()
        self._writer.queue.put(Unit(name, work, outcome), urgent=urgent)
        return await outcome

    async def read(self, work: Callable[[Connection], T]) -> T:
        readers = self._reading
        if readers is None:
            raise closed()
        # A cancelled caller leaves its read behind, which ends by itself; `close` waits for it.
        unit = partial(self._read, readers.engine, work)
        return await asyncio.get_running_loop().run_in_executor(readers.threads, unit)

    def _read(self, engine: Engine, work: Callable[[Connection], T]) -> T:
        with driver_errors(self._path), engine.begin() as conn:
            try:
                return work(conn)
            except StopIteration as error:
                # A future refuses StopIteration, and the caller would wait for ever.
                raise RuntimeError("the unit raised StopIteration") from error

    def _reading_engine(self) -> Engine:
        engine = create_engine(
            URL.create("sqlite", database=str(self._path)),
            hide_parameters=True,
            connect_args=_connect_args(),
            pool_size=self._readers,
            max_overflow=0,
        )
        pragmas = (f"PRAGMA busy_timeout={self._busy_timeout_ms}", "PRAGMA query_only=ON")
        on_connect(engine, pragmas)
        event.listen(engine, "begin", _begin_snapshot)
        return engine


@dataclass(frozen=True, slots=True)
class _Readers:
    """As many connections as threads, so that no read waits in a thread for another's."""

    engine: Engine
    threads: ThreadPoolExecutor

    def close(self) -> None:
        """Blocks until the reads that have begun are over."""
        self.threads.shutdown()
        self.engine.dispose()


@contextmanager
def driver_errors(path: Path) -> Iterator[None]:
    """Raise the store's errors for SQLite's, as `sqlite_fault` says."""
    try:
        yield
    except (SQLAlchemyError, sqlite3.Error) as error:
        fault = sqlite_fault(error, str(path))
        if fault is error:
            raise
        raise fault from error


def create_file(path: Path) -> None:
    """Create an empty database that only its owner can read, unless there is one.

    Raises StoreUnavailable when the folder is missing or may not be written.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise StoreUnavailable(
            f"The database {path} cannot be opened: {error.strerror}.",
            hint="Its folder must exist, and the gateway's user must be able to write to it.",
        ) from error


def writing_engine(path: Path, *, busy_timeout_ms: int = BUSY_TIMEOUT_MS) -> Engine:
    """A synchronous engine without a pool, whose transactions the caller begins itself."""
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        hide_parameters=True,  # they hold what people said
        connect_args=_connect_args() | {"factory": GuardedConnection},
        poolclass=NullPool,
    )
    pragmas = (
        f"PRAGMA busy_timeout={busy_timeout_ms}",
        "PRAGMA synchronous=FULL",
        "PRAGMA foreign_keys=ON",
    )
    on_connect(engine, pragmas)
    return engine


def on_connect(engine: Engine, pragmas: tuple[str, ...]) -> None:
    """Set `pragmas` on every connection that `engine` opens."""

    def configure(raw: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
        cursor = raw.cursor()
        for pragma in pragmas:
            cursor.execute(pragma)
        cursor.close()

    event.listen(engine, "connect", configure)


def _connect_args() -> dict[str, object]:
    # Without `isolation_level=None` the driver begins transactions of its own.
    return {"isolation_level": None, "cached_statements": _STATEMENTS}


def _begin_snapshot(conn: Connection) -> None:
    conn.exec_driver_sql("BEGIN")


def _verify(conn: Connection, path: Path) -> None:
    mode = conn.exec_driver_sql("PRAGMA journal_mode=WAL").scalar_one()
    if mode != "wal":
        raise StoreUnavailable(
            f"{path} cannot use a write-ahead log (it stays in {mode} mode).",
            hint="Put the database on a local disk, or use PostgreSQL.",
        )
    conn.exec_driver_sql("SELECT count(*) FROM sqlite_master").scalar_one()
