"""The shared database: any number of gateways on one PostgreSQL, by asyncpg.

The same units as on SQLite, one transaction each (READ COMMITTED). One pooled connection is kept
for urgent units, so that a lease is renewed however many ordinary units wait for the others.
"""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final, Literal, TypeVar
from urllib.parse import urlencode

from sqlalchemy import URL, Connection, Engine, event
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import Pool, QueuePool
from sqlalchemy.util import greenlet_spawn

from runtime.domain.errors import CommitUnknown, InvalidInput, StoreUnavailable
from runtime.ports.clock import Clock
from runtime.store.database import (
    CLOCK_OPTION,
    WAITING_LIMIT,
    Database,
    Outcome,
    Point,
    closed,
    no_point,
    queue_full,
    unit_ends_transaction,
)
from runtime.store.dialect import parameters_of
from runtime.store.faults import (
    CROWDED,
    READ_ONLY,
    RETRIED,
    connection_lost,
    postgres_fault,
    sqlstate,
)
from runtime.store.postgres_address import SETTING, read_parameters

T = TypeVar("T")

_RETRIES: Final = 5
_OLDEST: Final = 130_000
"""PostgreSQL 13: the first with ``pg_current_xact_id``."""

_STATEMENT_TIMEOUT_S: Final = 15
"""A lease's life: what takes longer is of no use, and over a dead line nothing ever comes back."""
_CONNECT_TIMEOUT_S: Final = 10
_PAUSE_MS: Final = 5_000
_LOST: Final = {
    "tcp_keepalives_idle": "5",
    "tcp_keepalives_interval": "2",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "10000",
}
"""When the server gives up a client that is cut off: between the preparation of a statement and its
run a transaction is not idle, so no timeout of the server ends it, and its locks would stay."""
"""How long a unit may keep the server waiting between two statements. A process that is frozen or
cut off in the middle of one holds its locks no longer, well within the life of a lease."""
_IDLE_TRIES: Final = 2
"""How often a unit asks again for a connection where the server refused one and others are idle."""
_TROUBLE: Final = (SQLAlchemyError, OSError, TimeoutError)
_IN_UNIT: Final = "gatehouse_in_unit"
_FAILED: Final = "gatehouse_statement_failed"


class PostgresDatabase(Database):
    """A pool of `pool_size` connections (at least 2), one of them for urgent units."""

    dialect: Literal["postgresql"] = "postgresql"

    def __init__(
        self, url: URL, *, clock: Clock, points: Point = no_point, pool_size: int = 10
    ) -> None:
        self._url = url
        self._server = server_name(url)
        self._clock = clock
        self._points = points
        self._pool_size = max(pool_size, 2)
        self._engines: dict[bool, AsyncEngine] = {}
        self._writes: set[asyncio.Task[None]] = set()
        self._busy: Counter[Pool] = Counter()
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def start(self) -> None:
        self._engines = {
            True: postgres_engine(self._url, size=1, clock=self._clock),
            False: postgres_engine(self._url, size=self._pool_size - 1, clock=self._clock),
        }
        try:
            with server_errors(self._url):
                for engine in self._engines.values():
                    async with engine.connect() as conn:
                        await conn.run_sync(self._verify)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        engines, self._engines = self._engines, {}
        if self._writes:
            await asyncio.wait(self._writes)
        for engine in engines.values():
            await engine.dispose()

    async def write(self, work: Callable[[Connection], T], *, name: str, urgent: bool = False) -> T:
        if not self._engines:
            raise closed()
        if len(self._writes) >= WAITING_LIMIT and not urgent:
            raise queue_full(len(self._writes))
        outcome: Outcome[T] = Outcome()
        unit = self._settle(work, name, self._engines[urgent], outcome)
        task = asyncio.create_task(unit, name=f"store-write:{name}")
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)
        return await outcome

    async def read(self, work: Callable[[Connection], T]) -> T:
        if not self._engines:
            raise closed()
        engine = self._engines[False].sync_engine.execution_options(
            isolation_level="REPEATABLE READ", postgresql_readonly=True
        )
        with server_errors(self._url, reading=True):
            return await self._patiently(lambda: self._read(work, engine), engine)

    async def _settle(
        self,
        work: Callable[[Connection], T],
        name: str,
        engine: AsyncEngine,
        outcome: Outcome[T],
    ) -> None:
        try:
            with server_errors(self._url):
                result = await self._unit(work, name, engine)
        except BaseException as error:  # noqa: BLE001 - the outcome carries it to the caller
            outcome.fail(error)
        else:
            outcome.succeed(result)

    async def _unit(self, work: Callable[[Connection], T], name: str, engine: AsyncEngine) -> T:
        """Run the unit, again if the server asked for it or a pooled connection was no good."""
        dead = False
        for _ in range(_RETRIES):
            try:
                return await self._patiently(
                    lambda: self._transaction(work, name, engine.sync_engine), engine.sync_engine
                )
            except DBAPIError as error:
                lost = connection_lost(error) or sqlstate(error) == READ_ONLY
                if not (sqlstate(error) in RETRIED or (lost and not dead)):
                    raise
                dead = dead or lost
        return await greenlet_spawn(self._transaction, work, name, engine.sync_engine)

    async def _patiently(self, step: Callable[[], T], engine: Engine) -> T:
        """Run the step, again if the server had no further connection to give: as soon as one of
        the pool's own is free. With none of its own it fails at once, as what is urgent does."""
        pool = engine.pool
        idle_tries = _IDLE_TRIES
        while True:
            try:
                return await greenlet_spawn(step)
            except DBAPIError as error:
                if sqlstate(error) != CROWDED or not isinstance(pool, QueuePool):
                    raise
                if self._busy[pool] == 0:
                    # The others may have finished since it asked, or theirs are dead as well.
                    if pool.checkedin() == 0 or idle_tries == 0:
                        raise
                    idle_tries -= 1
                    continue
            freed = asyncio.get_running_loop().create_future()
            self._waiting.append(freed)
            await freed

    @contextmanager
    def _connected(self, engine: Engine) -> Iterator[Connection]:
        conn = engine.connect()
        self._busy[engine.pool] += 1
        try:
            with conn:
                yield conn
        finally:
            self._busy[engine.pool] -= 1
            self._wake_one()

    def _wake_one(self) -> None:
        while self._waiting:
            freed = self._waiting.popleft()
            if not freed.done():
                freed.set_result(None)
                return

    def _read(self, work: Callable[[Connection], T], engine: Engine) -> T:
        with self._connected(engine) as conn:
            return work(conn)

    def _transaction(self, work: Callable[[Connection], T], name: str, engine: Engine) -> T:
        """From the pool and back in one greenlet: what the asyncio classes of SQLAlchemy do for
        each of these steps costs more than a statement."""
        with self._connected(engine) as conn:
            info = conn.info
            info.pop(_FAILED, None)
            self._points(f"{name}:begin")
            result = _run_unit(conn, work)
            if info.pop(_FAILED, False):
                # After an error that the unit swallowed without a savepoint the server turns COMMIT
                # into ROLLBACK and reports success. This statement fails then.
                conn.exec_driver_sql("SELECT 1")
            try:
                conn.commit()
            except _TROUBLE as error:
                state = sqlstate(error)
                if state is None or connection_lost(error):
                    raise CommitUnknown(
                        f"The connection to {self._server} was lost while {name} was committed."
                    ) from error
                raise
            self._points(f"{name}:commit")
            return result

    def _verify(self, conn: Connection) -> None:
        version = int(conn.exec_driver_sql("SHOW server_version_num").scalar_one())
        if version < _OLDEST:
            raise StoreUnavailable(
                f"{self._server} runs PostgreSQL {version // 10_000}.",
                hint="Gatehouse needs 13 or newer.",
            )
        encoding = conn.exec_driver_sql("SHOW server_encoding").scalar_one()
        if encoding != "UTF8":
            raise StoreUnavailable(
                f"{self._server} keeps text as {encoding}.",
                hint="Create the database with ENCODING 'UTF8'.",
            )


def postgres_engine(
    url: URL,
    *,
    size: int,
    clock: Clock | None = None,
    statement_timeout_s: float | None = _STATEMENT_TIMEOUT_S,
) -> AsyncEngine:
    """An engine with exactly `size` connections, opened as they are needed.

    What the URL says to the driver goes as an address of libpq's, which the driver reads.

    Without a `clock` its units cannot call `now_ms`, and they may pause: migrations do both.
    """
    pause_ms = 0 if clock is None else _PAUSE_MS
    told = read_parameters(parameters_of(url))
    address = {"dsn": f"postgresql://?{urlencode(told.driver)}"} if told.driver else {}
    engine = create_async_engine(
        url.set(query=told.engine).update_query_pairs(told.place, append=True),
        hide_parameters=True,  # they hold what people said
        pool_size=size,
        max_overflow=0,
        connect_args={
            **address,
            "timeout": told.timeout_s or _CONNECT_TIMEOUT_S,
            "command_timeout": statement_timeout_s,
            # Units are short statements; compiling them to machine code costs more than it saves.
            "server_settings": {
                "jit": "off",
                "application_name": "gatehouse",
                "idle_in_transaction_session_timeout": str(pause_ms),
                **_LOST,
                **told.server,
            },
        },
        execution_options={CLOCK_OPTION: clock},
    )
    event.listen(engine.sync_engine, "commit", _refuse_in_unit)
    event.listen(engine.sync_engine, "rollback", _refuse_in_unit)
    event.listen(engine.sync_engine, "handle_error", _drop_read_only)
    event.listen(engine.sync_engine, "handle_error", _remember_failure)
    return engine


@asynccontextmanager
async def single_engine(
    url: URL, *, statement_timeout_s: float | None = _STATEMENT_TIMEOUT_S
) -> AsyncIterator[AsyncEngine]:
    """An engine of one connection, which is gone in the end. Raises the store's errors."""
    engine = postgres_engine(url, size=1, statement_timeout_s=statement_timeout_s)
    try:
        with server_errors(url):
            yield engine
    finally:
        await engine.dispose()


def server_name(url: URL) -> str:
    """Host, port and database, for messages: never the user or the password."""
    return f"{url.host or 'localhost'}:{url.port or 5432}/{url.database}"


def _run_unit(conn: Connection, work: Callable[[Connection], T]) -> T:
    info = conn.info
    info[_IN_UNIT] = True
    try:
        return work(conn)
    finally:
        info.pop(_IN_UNIT, None)


def _refuse_in_unit(conn: Connection) -> None:
    if not conn.invalidated and conn.info.get(_IN_UNIT):
        raise unit_ends_transaction()


@contextmanager
def server_errors(url: URL, *, reading: bool = False) -> Iterator[None]:
    """Raise the store's errors for the server's and the network's, as `postgres_fault` says.

    A unit that was to read (`reading`) and tries to write is refused by its own transaction, which
    says nothing of the server.
    """
    # An extra: a gateway on SQLite runs without it.
    import asyncpg

    try:
        yield
    except asyncpg.ClientConfigurationError as error:
        # Certificates that are none, or a mode that needs some which nobody named.
        raise InvalidInput(SETTING, f"cannot be used: {error}") from error
    except _TROUBLE as error:
        if reading and sqlstate(error) == READ_ONLY:
            raise
        fault = postgres_fault(error, server_name(url))
        if fault is error:
            raise
        raise fault from error


def _drop_read_only(context: ExceptionContext) -> None:
    """Give up the pool's connections: each stays as read-only as it was opened, and leads to the
    server of that time, also when another takes the writes by now."""
    if sqlstate(context.original_exception) == READ_ONLY:
        context.is_disconnect = True


def _remember_failure(context: ExceptionContext) -> None:
    conn = context.connection
    # SQLAlchemy looks at an engine's first connection before it belongs to the pool: that one has
    # no options, and no `info` either.
    if conn is not None and CLOCK_OPTION in conn.get_execution_options() and not conn.invalidated:
        conn.info[_FAILED] = True
