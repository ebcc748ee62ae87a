"""The database as the rest of the engine sees it: units of work, and nothing that awaits.

A unit is a plain function of a `Connection`. It cannot await, so no transaction is ever open
across a model call, a tool or a send. It has no effect but its statements, because it may run
twice: when the transaction that it shared with others is lost, or on a serialization failure.
A unit never commits or rolls back; where it expects a statement to fail it wraps the statement in
`with conn.begin_nested():`, which works on both databases.

This module holds what both databases share. It refuses to know either of them.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cache
from typing import Final, Literal, Protocol, TypeVar, runtime_checkable

from sqlalchemy import BigInteger, ColumnElement, Connection, bindparam, literal_column, select

from runtime.domain.errors import StoreUnavailable
from runtime.ports.clock import Clock

T = TypeVar("T")
Point = Callable[[str], None]
DialectName = Literal["sqlite", "postgresql"]
DIALECTS: Final[tuple[DialectName, ...]] = ("sqlite", "postgresql")

WAITING_LIMIT: Final = 10_000
"""Writes that may wait at once, over the whole process."""

CLOCK_OPTION: Final = "gatehouse_clock"
_CLOCK_MS: ColumnElement[int] = bindparam("clock_ms", type_=BigInteger())
_SERVER_MS: ColumnElement[int] = literal_column(
    "(extract(epoch FROM clock_timestamp()) * 1000)::bigint", BigInteger()
)
STORE_TIME: Final[Mapping[DialectName, ColumnElement[int]]] = {
    "sqlite": _CLOCK_MS,
    "postgresql": _SERVER_MS + _CLOCK_MS,
}
"""The time of `now_ms` as a part of a statement, by dialect; it is told `clock_ms`.

PostgreSQL reads its clock when it works out the expression, which for a condition is before the
statement waits for a lock: where the time after the lock is wanted, see `dialect.timed`.
"""
_NOW: Final = select(_SERVER_MS)


def no_point(name: str) -> None:
    """The crash point of production: nothing happens at `name`."""


@runtime_checkable
class ShiftedClock(Protocol):
    """A clock that runs ahead of real time by `offset_ms`, as the one in tests does."""

    def offset_ms(self) -> int: ...


def now_ms(conn: Connection) -> int:
    """Milliseconds since the epoch, for leases and timestamps of the unit's rows.

    PostgreSQL answers with its own clock, so replicas agree whatever theirs say; a `ShiftedClock`
    adds its offset. A SQLite database has one gateway, whose Clock port answers.
    """
    if conn.dialect.name == "sqlite":
        return clock_ms(conn)
    return int(conn.execute(_NOW).scalar_one()) + clock_ms(conn)


def clock_ms(conn: Connection) -> int:
    """What `STORE_TIME` is told: the Clock port's time on SQLite, its offset on PostgreSQL."""
    clock: Clock = conn.get_execution_options()[CLOCK_OPTION]
    if conn.dialect.name == "sqlite":
        return clock.now_ms()
    return _offset_ms(clock) if _is_shifted(type(clock)) else 0


@cache
def _is_shifted(kind: type) -> bool:
    """Asked once for each kind: a protocol's check looks at every name of it, each time."""
    return issubclass(kind, ShiftedClock)


def _offset_ms(clock: Clock) -> int:
    return clock.offset_ms() if isinstance(clock, ShiftedClock) else 0


class Outcome(asyncio.Future[T]):
    """The result of a unit, which a cancelled caller still waits for.

    `cancel` does nothing, so asyncio remembers the cancellation and raises it in the caller when
    the outcome is there. This is `asyncio.shield` with a wait, without a task for each write.
    """

    def cancel(self, msg: object = None) -> bool:  # noqa: ARG002 - the base class's signature
        return False

    def succeed(self, result: T) -> None:
        """Take the result; too late, it does nothing."""
        if not self.done():
            self.set_result(result)

    def fail(self, error: BaseException) -> None:
        """Take the error; too late, it does nothing."""
        if self.done():
            return
        if isinstance(error, StopIteration):
            # A future refuses StopIteration, and the caller would wait for ever.
            self.set_exception(RuntimeError("the unit raised StopIteration"))
        else:
            self.set_exception(error)


class Database(ABC):
    """One database. Built by `open_database`; belongs to the event loop that called `start`."""

    dialect: DialectName

    @abstractmethod
    async def start(self) -> None:
        """Open and verify. Migrates nothing.

        Raises StoreUnavailable (not reachable, locked, wrong kind) or StoreCorrupt.
        """

    @abstractmethod
    async def close(self) -> None:
        """Finish the writes that wait, then close every connection. May be called twice."""

    @abstractmethod
    async def write(self, work: Callable[[Connection], T], *, name: str, urgent: bool = False) -> T:
        """Run `work` in a transaction and return its result once that has been committed.

        `name` names the unit's crash points, `<name>:begin` and `<name>:commit`. An `urgent` unit
        (a lease's renewal) passes the others that wait. A cancelled caller gets its
        CancelledError after the outcome, so it never guesses whether the unit was committed.
        Raises what `work` raises, after rolling back what it did, and no other unit's work;
        StoreUnavailable when nothing was written; CommitUnknown when that is not known.
        """

    @abstractmethod
    async def read(self, work: Callable[[Connection], T]) -> T:
        """Run `work` on one snapshot of what is committed. It cannot write."""


def unit_ends_transaction() -> RuntimeError:
    """What a unit gets that commits or rolls back: it would do so for other units too."""
    return RuntimeError("a unit neither commits nor rolls back: use begin_nested, or raise")


def closed() -> StoreUnavailable:
    return StoreUnavailable("The database is not open.", hint="The gateway is starting or ending.")


def queue_full(waiting: int) -> StoreUnavailable:
    return StoreUnavailable(
        f"The write queue is full: {waiting} writes wait.", hint="Try again in a moment."
    )
