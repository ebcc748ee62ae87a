"""SQLite's one writer: a thread that commits the units that wait together, in groups.

SQLite has one writer at a time and an fsync for each commit. So units share a transaction: each
runs under its own savepoint, and their callers hear of it after the COMMIT, with one call into
the event loop for the whole group. A unit that raises loses its own savepoint and nothing else.

When the transaction itself is gone (a full disk, an interrupt, an I/O error) the unit that lost it
fails and the others run again. When COMMIT fails, each unit is tried alone, so that the one that
is to blame fails alone. When the write lock cannot be had, all that were in the group fail; they
have done nothing.
"""

import asyncio
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import structlog
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from runtime.domain.errors import CommitUnknown, StoreFull, StoreUnavailable
from runtime.store.checkpoints import Checkpoints
from runtime.store.database import (
    WAITING_LIMIT,
    Outcome,
    Point,
    closed,
    queue_full,
    unit_ends_transaction,
)
from runtime.store.faults import as_core_error, sqlite_fault, sqlite_root_fault

log = structlog.get_logger(__name__)

GROUP_LIMIT: Final = 50
"""Units in a transaction: more gain little and make an urgent unit wait."""

T = TypeVar("T")

_DATABASE_ERRORS: Final = (sqlite3.Error, SQLAlchemyError)


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit that waits; `SqliteDatabase.write` makes its work and its outcome agree in type."""

    name: str
    work: Callable[[Connection], Any]
    outcome: Outcome[Any]


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of a unit: `error`, or else `result`."""

    unit: Unit
    result: object = None
    error: BaseException | None = None

    def tell(self) -> None:
        if self.error is None:
            self.unit.outcome.succeed(self.result)
        else:
            self.unit.outcome.fail(self.error)


class Queue:
    """The units that wait, the urgent ones first. Bounded; `close` lets what is in it out."""

    def __init__(self) -> None:
        self._ready = threading.Condition()
        self._urgent: deque[Unit] = deque()
        self._normal: deque[Unit] = deque()
        self._closed = False

    def put(self, unit: Unit, *, urgent: bool) -> None:
        """Raises StoreUnavailable when the queue is full or closed."""
        lane = self._urgent if urgent else self._normal
        with self._ready:
            if self._closed:
                raise closed()
            if len(lane) >= WAITING_LIMIT:
                raise queue_full(len(lane))
            lane.append(unit)
            self._ready.notify()

    def take(self) -> list[Unit]:
        """Wait for units and take a group of them; empty once closed and drained."""
        with self._ready:
            while not (self._urgent or self._normal or self._closed):
                self._ready.wait()
            group: list[Unit] = []
            for lane in (self._urgent, self._normal):
                while lane and len(group) < GROUP_LIMIT:
                    group.append(lane.popleft())
            return group

    def close(self) -> None:
        with self._ready:
            self._closed = True
            self._ready.notify()


class GuardedConnection(sqlite3.Connection):
    """A connection on which a unit cannot end the transaction that it shares with others.

    Here and not as an event of SQLAlchemy's, which would cost each statement a quarter more.
    """

    _in_unit = False

    def run(self, work: Callable[[Connection], T], conn: Connection) -> T:
        """Run a unit on `conn`, which stands on this connection."""
        self._in_unit = True
        try:
            return work(conn)
        finally:
            self._in_unit = False

    def cursor(self) -> sqlite3.Cursor:  # type: ignore[override]  # no caller has a factory
        # After SQLite has ended the transaction a statement would be committed by itself.
        if self._in_unit and not self.in_transaction:
            raise transaction_gone()
        return super().cursor()

    def commit(self) -> None:
        if self._in_unit:
            raise unit_ends_transaction()
        super().commit()

    def rollback(self) -> None:
        if self._in_unit:
            raise unit_ends_transaction()
        super().rollback()


class Writer:
    """The thread and its connection, which is opened anew after it has broken."""

    def __init__(
        self,
        path: Path,
        *,
        engine: Engine,
        verify: Callable[[Connection], None],
        checkpoints: Checkpoints,
        points: Point,
    ) -> None:
        self.queue = Queue()
        self._path = path
        self._engine = engine
        self._verify = verify
        self._checkpoints = checkpoints
        self._points = points
        self._conn: Connection | None = None
        self._thread: threading.Thread | None = None

    async def start(self) -> None:
        """Start the thread and wait until its connection is open. Raises what opening raises."""
        loop = asyncio.get_running_loop()
        opened: Outcome[None] = Outcome(loop=loop)
        # A daemon: a process that forgets `close` must still be able to end.
        self._thread = threading.Thread(
            target=self._run, args=(loop, opened), name="store-writer", daemon=True
        )
        self._thread.start()
        try:
            await opened
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Let the queue drain and the thread end."""
        self.queue.close()
        if self._thread is not None:
            # Joining blocks, and the loop must go on: it is told the outcomes of the last units.
            await asyncio.to_thread(self._thread.join)
            self._thread = None

    def _run(self, loop: asyncio.AbstractEventLoop, opened: Outcome[None]) -> None:
        try:
            self._open()
        except BaseException as error:  # noqa: BLE001 - `start` raises it
            _tell(loop, partial(opened.fail, sqlite_fault(error, str(self._path))))
        else:
            _tell(loop, partial(opened.succeed, None))
            while units := self.queue.take():
                try:
                    self._commit(units, loop)
                except BaseException as error:  # the root of the thread: whoever waits is told
                    log.exception("store_writer_failed", units=[unit.name for unit in units])
                    self._conn = None
                    _tell(loop, partial(_fail, units, error))
        self._drop()

    def _commit(self, units: list[Unit], loop: asyncio.AbstractEventLoop) -> None:
        """Run one taken group to the end and tell its callers, all with one call."""
        settled: list[Settled] = []
        todo = deque([units])
        error: BaseException = closed()
        try:
            while todo:
                todo.extendleft(reversed(self._attempt(todo.popleft(), settled)))
        except BaseException as fault:  # noqa: BLE001 - the callers get it; the writer goes on
            # BEGIN failed, or worse: what is not settled by now has not been committed.
            error = sqlite_fault(fault, str(self._path))
            self._drop()

        def tell() -> None:
            for each in settled:
                each.tell()
            for unit in units:
                unit.outcome.fail(error)

        _tell(loop, tell)
        self._keep_log(settled)

    def _keep_log(self, settled: Sequence[Settled]) -> None:
        """Between two groups: the log follows the room, and gives back what it can where a unit
        found none."""
        if self._conn is None:
            return
        raw = driver_connection(self._conn)
        if any(isinstance(each.error, StoreFull) for each in settled):
            self._checkpoints.reclaim(raw)
        self._checkpoints.keep(raw)

    def _attempt(self, units: list[Unit], settled: list[Settled]) -> list[list[Unit]]:
        """Run `units` in one transaction; return the parts that must run again, in order."""
        raw = self._begin()
        done: list[Settled] = []
        for index, unit in enumerate(units):
            outcome = self._unit(unit, raw)
            if not raw.in_transaction:
                self._rollback()
                settled.append(self._lost(outcome))
                rest = [each.unit for each in done] + units[index + 1 :]
                return [rest] if rest else []
            (done if outcome.error is None else settled).append(outcome)
        try:
            # SQLAlchemy's own commit would do nothing if a unit had tried to end the transaction.
            raw.execute("COMMIT")
        except sqlite3.Error as error:
            self._rollback()
            if len(done) > 1:
                return [[each.unit] for each in done]
            fault = sqlite_fault(as_core_error(error, "COMMIT"), str(self._path))
            settled += [Settled(each.unit, error=fault) for each in done]
            return []
        settled += [self._committed(each) for each in done]
        self._rollback()
        return []

    def _unit(self, unit: Unit, raw: GuardedConnection) -> Settled:
        # Savepoints go straight to the driver: through SQLAlchemy each costs as much as three
        # statements.
        try:
            raw.execute("SAVEPOINT unit")
            self._points(f"{unit.name}:begin")
            result = raw.run(unit.work, self._connection())
            raw.execute("RELEASE unit")
        except BaseException as error:  # noqa: BLE001 - the caller gets it; the writer goes on
            fault = sqlite_fault(error, str(self._path))
            try:
                if raw.in_transaction:
                    raw.execute("ROLLBACK TO unit")
                    raw.execute("RELEASE unit")
            except sqlite3.Error:
                # The savepoint could not be undone, so nothing of this transaction may be kept.
                with suppress(sqlite3.Error):
                    raw.rollback()
            return Settled(unit, error=fault)
        return Settled(unit, result)

    def _lost(self, outcome: Settled) -> Settled:
        """The outcome of the unit in which the transaction ended, whatever the unit made of it."""
        error = outcome.error or transaction_gone()
        fault = sqlite_root_fault(error, str(self._path))
        if isinstance(fault, _DATABASE_ERRORS):
            fault = transaction_gone()
        return Settled(outcome.unit, error=fault)

    def _committed(self, settled: Settled) -> Settled:
        try:
            self._points(f"{settled.unit.name}:commit")
        except BaseException as error:  # noqa: BLE001 - a crash test's own error, for its caller
            return Settled(settled.unit, error=error)
        return settled

    def _begin(self) -> GuardedConnection:
        raw = driver_connection(self._connection())
        raw.execute("BEGIN IMMEDIATE")
        return raw

    def _rollback(self) -> None:
        """End the transaction if it has not ended, and SQLAlchemy's idea of one."""
        conn = self._connection()
        try:
            driver_connection(conn).rollback()
            conn.rollback()
        except _DATABASE_ERRORS:
            self._drop()

    def _connection(self) -> Connection:
        return self._conn if self._conn is not None else self._open()

    def _open(self) -> Connection:
        conn = self._engine.connect()
        try:
            self._verify(conn)
            conn.rollback()
            self._checkpoints.begin(driver_connection(conn))
        except BaseException:
            conn.invalidate()
            conn.close()
            raise
        self._conn = conn
        return conn

    def _drop(self) -> None:
        """Close the connection; the next group opens another."""
        conn, self._conn = self._conn, None
        if conn is not None:
            conn.invalidate()
            conn.close()


def driver_connection(conn: Connection) -> GuardedConnection:
    """The sqlite3 connection below a synchronous one."""
    raw: object = conn.connection.dbapi_connection
    if not isinstance(raw, GuardedConnection):
        raise TypeError(f"not a connection of the writer: {raw!r}")
    return raw


def transaction_gone() -> StoreUnavailable:
    """What a unit gets when an error that it did not pass on has ended its transaction."""
    return StoreUnavailable("The transaction ended before the unit did: nothing was written.")


def _fail(units: list[Unit], error: BaseException) -> None:
    """Tell the callers of units whose end is unknown; those that were told keep what they know."""
    unknown = CommitUnknown("The writer met a defect, and nobody knows what it had committed.")
    unknown.__cause__ = error
    for unit in units:
        unit.outcome.fail(unknown)


def _tell(loop: asyncio.AbstractEventLoop, call: Callable[[], object]) -> None:
    try:
        loop.call_soon_threadsafe(call)
    except RuntimeError:
        # The loop is closed: whoever waited is gone, and the rows are what they are.
        return
