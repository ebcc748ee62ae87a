"""A database that one test had is as good as new for the next; see `tests.support.templates`."""

import asyncio
from dataclasses import dataclass, field

import asyncpg
import pytest

from tests.support.postgres import PostgresServer, postgres_server
from tests.support.templates import create_database, release_database

LOOKS = (
    "SELECT json_agg(leases) FROM leases",
    "SELECT json_agg(audit) FROM audit",
    "SELECT json_agg(settings) FROM settings",
    "SELECT json_agg(alembic_version) FROM alembic_version",
    "SELECT pg_relation_size('leases'), pg_relation_size('audit')",
    "SELECT last_value, is_called FROM audit_position_seq",
    "SELECT to_regclass('notes'), to_regclass('leases'), to_regclass('still.anything')",
    "SHOW search_path",
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()",
    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database = "
    "(SELECT oid FROM pg_database WHERE datname = current_database())",
)
OID = "SELECT oid FROM pg_database WHERE datname = current_database()"


@pytest.fixture
def server() -> PostgresServer:
    return postgres_server()


async def look(server: PostgresServer, name: str) -> list[list[tuple[object, ...]]]:
    connection = await asyncpg.connect(server.url(name))
    try:
        return [[tuple(row) for row in await connection.fetch(query)] for query in LOOKS]
    finally:
        await connection.close()


async def oid_of(server: PostgresServer, name: str) -> int:
    """Which database it is, whatever its name."""
    connection = await asyncpg.connect(server.url(name))
    try:
        return int(await connection.fetchval(OID))
    finally:
        await connection.close()


async def test_rows_and_sequences_and_connections_do_not_outlive_their_test(
    server: PostgresServer,
) -> None:
    name = await create_database(server)
    fresh, oid = await look(server, name), await oid_of(server, name)
    left = await asyncpg.connect(server.url(name))
    await left.execute(
        """
        INSERT INTO leases (name, holder, fence, expires_ms)
            SELECT n::text, 'a', 1, 1 FROM generate_series(1, 1000) AS n;
        INSERT INTO audit (at_ms, actor, action, data) VALUES (1, 'a', 'b', '{}');
        DELETE FROM audit;
        UPDATE settings SET value = 'other';
        DELETE FROM alembic_version;
        LISTEN something;
        SELECT pg_advisory_lock(1)
        """
    )
    assert await look(server, name) != fresh
    await release_database(server, name)
    with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError)):
        await left.fetchval("SELECT 1")
    await left.close()
    with pytest.raises(asyncpg.InvalidCatalogNameError):
        await look(server, name)
    again = await create_database(server)
    assert await oid_of(server, again) == oid
    assert await look(server, again) == fresh
    await release_database(server, again)


@pytest.mark.parametrize(
    ("statement", "kept"),
    [
        ("INSERT INTO leases (name, holder, fence, expires_ms) VALUES ('a', 'b', 1, 1)", True),
        ("CREATE TABLE notes (name text)", False),
        ("ALTER TABLE leases ALTER COLUMN holder DROP NOT NULL", False),
        ("ALTER DATABASE THIS SET search_path = still", False),
    ],
)
async def test_a_database_whose_schema_was_changed_is_not_lent_again(
    server: PostgresServer, statement: str, kept: bool
) -> None:
    name = await create_database(server)
    oid = await oid_of(server, name)
    await server.run(statement.replace("THIS", name), database=name)
    await release_database(server, name)
    again = await create_database(server)
    assert (await oid_of(server, again) == oid) == kept
    await release_database(server, again)


@dataclass(frozen=True)
class Counting(PostgresServer):
    """Knows what was created on it and not yet dropped."""

    names: list[str] = field(default_factory=list, compare=False)

    async def create(self, *, template: str = "template0", encoding: str = "UTF8") -> str:
        self.names.append(await super().create(template=template, encoding=encoding))
        return self.names[-1]

    async def drop(self, name: str) -> None:
        await super().drop(name)
        self.names.remove(name)


async def test_databases_that_are_made_side_by_side_leave_one_template(
    server: PostgresServer,
) -> None:
    counting = Counting(server.address)
    async with asyncio.TaskGroup() as group:
        made = [group.create_task(create_database(counting, migrated=False)) for _ in range(2)]
    assert len(counting.names) == 3
    for task in made:
        await counting.drop(task.result())


async def test_what_a_test_made_in_an_empty_database_is_gone(server: PostgresServer) -> None:
    name = await create_database(server, migrated=False)
    await server.run("CREATE TABLE notes (name text)", database=name)
    await release_database(server, name, migrated=False)
    again = await create_database(server, migrated=False)
    with pytest.raises(asyncpg.UndefinedTableError):
        await server.run("SELECT * FROM notes", database=again)
    await release_database(server, again, migrated=False)
