"""Both databases for tests: every test gets one of its own, and each test runs on each.

`database_url` is an empty database, `database` the same one opened, `migrated_url` and `store` the
same with the schema. PostgreSQL needs a server where databases may be created:

    GATEHOUSE_TEST_POSTGRES_URL=postgresql://postgres@127.0.0.1:5432/postgres
"""

import asyncio
import gc
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import asyncpg
import pytest
from sqlalchemy import Connection, text

from runtime.store import Database, Point, no_point, open_database
from tests.support.postgres import NO_POSTGRES, POSTGRES_VARIABLE, PostgresServer, postgres_server
from tests.support.templates import make_database, postgres_database, sqlite_schema, template_of

__all__ = ["NO_POSTGRES", "POSTGRES_VARIABLE", "PostgresServer", "postgres_server"]

BOTH = ["sqlite", "postgresql"]
on_sqlite = pytest.mark.parametrize("dialect", ["sqlite"])
"""For a test that is no matter of rows, beside others that write the same ones on both."""


class StillClock:
    """A clock that stands still until it is told; the store asks for nothing else."""

    def __init__(self, now: int = 1_800_000_000_000) -> None:
        self._now = now
        self._offset = 0

    def now_ms(self) -> int:
        return self._now + self._offset

    def offset_ms(self) -> int:
        return self._offset

    def advance(self, milliseconds: int) -> None:
        self._offset += milliseconds


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


@pytest.fixture(params=BOTH)
def dialect(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def database_url(dialect: str, tmp_path: Path) -> AsyncIterator[str]:
    """An empty database."""
    if dialect == "sqlite":
        yield f"sqlite:///{tmp_path / 'gatehouse.db'}"
        return
    server = postgres_server()
    async with postgres_database(server, migrated=False) as name:
        yield server.url(name)


@pytest.fixture(scope="session")
def schema_templates(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """For a dialect, a file's path or a database's name that holds the schema; made once."""
    path = tmp_path_factory.mktemp("schema") / "template.db"

    def template(dialect: str) -> str:
        if dialect == "postgresql":
            return asyncio.run(template_of(postgres_server()))
        if not path.exists():
            path.write_bytes(sqlite_schema())
        return str(path)

    return template


@pytest.fixture
async def migrated_url(dialect: str, tmp_path: Path) -> AsyncIterator[str]:
    """A database with the schema and no rows."""
    if dialect == "sqlite":
        url = f"sqlite:///{tmp_path / 'gatehouse.db'}"
        await make_database(url)
        yield url
        return
    server = postgres_server()
    async with postgres_database(server) as name:
        yield server.url(name)


class Points:
    """The crash points that were passed, in order; `then` is called at each, in its thread."""

    def __init__(self) -> None:
        self.passed: list[str] = []
        self.then: Point = no_point

    def __call__(self, name: str) -> None:
        self.passed.append(name)
        self.then(name)


@pytest.fixture
def points() -> Points:
    return Points()


@pytest.fixture
async def database(database_url: str, clock: StillClock, points: Points) -> AsyncIterator[Database]:
    """An open, empty database."""
    async for opened in _opened(database_url, clock, points):
        yield opened


@pytest.fixture
async def store(migrated_url: str, clock: StillClock, points: Points) -> AsyncIterator[Database]:
    """An open database with the schema."""
    async for opened in _opened(migrated_url, clock, points):
        yield opened


async def _opened(url: str, clock: StillClock, points: Points) -> AsyncIterator[Database]:
    opened = open_database(url, clock=clock, points=points)
    await opened.start()
    try:
        yield opened
    finally:
        await opened.close()
        # A connection that was not closed warns when it is collected, and warnings are errors.
        gc.collect()


class Gate:
    """Holds a unit in the middle of its transaction until the test opens it."""

    def __init__(self, lock: asyncpg.Connection | None) -> None:
        self._lock = lock
        self._loop = asyncio.get_running_loop()
        self._entered = asyncio.Event()
        self._open = threading.Event()

    def hold(self, conn: Connection) -> None:
        """Called by the unit: blocks the writer, or on PostgreSQL this one transaction."""
        self._loop.call_soon_threadsafe(self._entered.set)
        if conn.dialect.name == "sqlite":
            assert self._open.wait(30)
        else:
            conn.execute(text("SELECT pg_advisory_xact_lock(1)"))

    async def entered(self) -> None:
        await self._entered.wait()

    async def open(self) -> None:
        self._open.set()
        if self._lock is not None:
            await self._lock.execute("SELECT pg_advisory_unlock_all()")


@pytest.fixture
async def gate(database_url: str) -> AsyncIterator[Gate]:
    if database_url.startswith("sqlite"):
        gate = Gate(None)
        yield gate
        await gate.open()
        return
    connection = await asyncpg.connect(database_url)
    await connection.execute("SELECT pg_advisory_lock(1)")
    gate = Gate(connection)
    yield gate
    await gate.open()
    await connection.close()
