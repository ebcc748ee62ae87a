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
from collections.abc import Callable
from typing import Final, Literal, Protocol, TypeVar, runtime_checkable

from sqlalchemy import Connection, text

from runtime.domain.errors import StoreUnavailable
from runtime.ports.clock import Clock

T = TypeVar("T")
Point = Callable[[str], None]
DialectName = Literal["sqlite", "postgresql"]

WAITING_LIMIT: Final = 10_000
"""Writes that may wait at once, over the whole process."""

CLOCK_OPTION: Final = "gatehouse_clock"
_SERVER_NOW = text("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")


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
    clock: Clock = conn.get_execution_options()[CLOCK_OPTION]
    if conn.dialect.name == "sqlite":
        return clock.now_ms()
    server = int(conn.execute(_SERVER_NOW).scalar_one())
    return server + clock.offset_ms() if isinstance(clock, ShiftedClock) else server


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
