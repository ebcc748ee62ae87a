"""Databases with the schema and no rows, in a moment: one is migrated once in a process and copied.
So are new workspaces.

A file is copied in less than a millisecond. PostgreSQL copies a database that it is told to take
as a template, which costs it a fifth of a second of a processor, with the first connection and the
drop. So a database that a test gives back is emptied and lent again, under another name.
`drop_templates` is called at the end of a test run.
"""

import asyncio
import stat
import tempfile
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import asyncpg

import gateway.features  # noqa: F401 - it brings the tables of the features
from runtime.store.dialect import sqlite_path
from runtime.store.migrate import migrate
from runtime.workspace.scaffold import find_template, scaffold
from tests.support.postgres import PostgresServer

_schema: bytes | None = None
_workspace: "list[Entry] | None" = None

DISCONNECT = """
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""

# `xmin` is the transaction that wrote a row of the catalogue: an object that was altered has
# another one.
CATALOGUE = """
SELECT string_agg(entry, E'\n' ORDER BY entry) FROM (
    SELECT concat_ws(' ', 'relation', oid, xmin) FROM pg_class WHERE oid >= 16384
    UNION ALL SELECT concat_ws(' ', 'column', attrelid, attnum, xmin) FROM pg_attribute
        WHERE attrelid >= 16384 AND attnum > 0
    UNION ALL SELECT concat_ws(' ', 'constraint', oid, xmin) FROM pg_constraint WHERE oid >= 16384
    UNION ALL SELECT concat_ws(' ', 'trigger', oid, xmin) FROM pg_trigger WHERE oid >= 16384
    UNION ALL SELECT concat_ws(' ', 'function', oid, xmin) FROM pg_proc WHERE oid >= 16384
    UNION ALL SELECT concat_ws(' ', 'schema', oid, xmin) FROM pg_namespace WHERE oid >= 16384
    UNION ALL SELECT concat_ws(' ', 'setting', setrole, setconfig) FROM pg_db_role_setting
        WHERE setdatabase = (SELECT oid FROM pg_database WHERE datname = current_database())
) AS entries (entry)
"""

# A table whose file is empty never held a row since it was made: neither do its indexes.
WRITTEN = """
SELECT oid::regclass::text FROM pg_class
WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND pg_relation_size(oid) > 0
"""

TABLES = """
SELECT string_agg(oid::regclass::text, ', ') FROM pg_class
WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
"""

RESTART_SEQUENCES = "SELECT setval(seqrelid, seqstart, false) FROM pg_sequence"


@dataclass(frozen=True, slots=True)
class Entry:
    """A folder or file of a workspace as a gateway makes it; a folder has no content."""

    path: str
    mode: int
    content: bytes | None


@dataclass(frozen=True, slots=True)
class Template:
    """A database, what it looks like, and the copies that no test has in use.

    `catalogue` is None for one without tables; `rows` are those of each table that has some, as
    JSON.
    """

    name: str
    catalogue: str | None
    rows: dict[str, str]
    free: list[str]


_templates: Final[dict[tuple[PostgresServer, bool], Template]] = {}
"""By the server, and whether they have the schema."""


async def make_database(url: str) -> None:
    """A SQLite file with the schema; one that is there stays, as at a restart."""
    path = sqlite_path(url)
    assert path is not None, "PostgreSQL: see `create_database`"
    if not path.exists():
        path.write_bytes(await asyncio.to_thread(sqlite_schema))
        path.chmod(0o600)


def sqlite_schema() -> bytes:
    """What stands in a SQLite file that has the schema and no rows."""
    global _schema
    if _schema is None:
        with tempfile.TemporaryDirectory(prefix="gatehouse-schema-") as folder:
            path = Path(folder) / "gatehouse.db"
            asyncio.run(migrate(f"sqlite:///{path}"))
            _schema = path.read_bytes()
    return _schema


def make_workspace(root: Path) -> None:
    """A workspace as a gateway makes it, written from memory without a wait for the disk. One that
    is there gets what it lacks, as at a restart."""
    if root.exists() or not root.parent.is_dir():
        scaffold(root, find_template())
        return
    for entry in workspace_entries():
        path = root / entry.path
        if entry.content is None:
            path.mkdir()
        else:
            path.write_bytes(entry.content)
        path.chmod(entry.mode)


def workspace_entries() -> "list[Entry]":
    """What a new workspace holds, outer folders first."""
    global _workspace
    if _workspace is None:
        with tempfile.TemporaryDirectory(prefix="gatehouse-workspace-") as folder:
            root = Path(folder) / "workspace"
            scaffold(root, find_template())
            _workspace = [
                Entry(
                    path.relative_to(root).as_posix(),
                    stat.S_IMODE(path.stat().st_mode),
                    None if path.is_dir() else path.read_bytes(),
                )
                for path in (root, *sorted(root.rglob("*")))
            ]
    return _workspace


@asynccontextmanager
async def postgres_database(server: PostgresServer, *, migrated: bool = True) -> AsyncIterator[str]:
    """The name of a database with the schema or without a table; afterwards it is gone."""
    name = await create_database(server, migrated=migrated)
    try:
        yield name
    finally:
        await release_database(server, name, migrated=migrated)


async def create_database(server: PostgresServer, *, migrated: bool = True) -> str:
    """The name of a database with the schema and no rows, or without a table.

    The caller releases or drops it.
    """
    template = await _template(server, migrated)
    return template.free.pop() if template.free else await server.create(template=template.name)


async def release_database(server: PostgresServer, name: str, *, migrated: bool = True) -> None:
    """Whoever is connected is cut off, and nobody reaches the database by this name any more.

    It is kept for another test if only its rows changed, or if it had no table at first and what
    was made are tables.
    """
    template = await _template(server, migrated)
    renamed = f"gatehouse_test_{uuid.uuid4().hex}"
    try:
        if await _emptied(server.url(name), template):
            await server.run(f"ALTER DATABASE {name} RENAME TO {renamed}")
            template.free.append(renamed)
            return
    except asyncpg.ObjectInUseError:
        # Somebody came back, and may have written.
        pass
    await server.drop(name)


async def template_of(server: PostgresServer) -> str:
    """The name of a database with the schema, which nobody may open or drop."""
    return (await _template(server, True)).name


async def drop_templates() -> None:
    """Leave no template behind on a server, and no copy."""
    while _templates:
        (server, _), template = _templates.popitem()
        for name in (*template.free, template.name):
            await server.drop(name)


async def _template(server: PostgresServer, migrated: bool) -> Template:
    if (server, migrated) not in _templates:
        name = await server.create()
        if migrated:
            await migrate(server.url(name))
        async with _connected(server.url(name)) as connection:
            rows = {table: await _rows(connection, table) for table in await _written(connection)}
            catalogue = await connection.fetchval(CATALOGUE)
        if (server, migrated) in _templates:
            # Somebody else asked meanwhile, and was first.
            await server.drop(name)
        else:
            _templates[server, migrated] = Template(name, catalogue, rows, [])
    return _templates[server, migrated]


async def _emptied(url: str, template: Template) -> bool:
    """Give each table and sequence what it has in the template; whether that was possible."""
    async with _connected(url) as connection:
        while await connection.fetchval(DISCONNECT):
            pass
        if template.catalogue is None and (tables := await connection.fetchval(TABLES)):
            await connection.execute(f"DROP TABLE {tables} CASCADE")
        if await connection.fetchval(CATALOGUE) != template.catalogue:
            return False
        changed = [
            table
            for table in await _written(connection)
            if table not in template.rows or await _rows(connection, table) != template.rows[table]
        ]
        if changed:
            # One statement, so that no table has to go before the one that refers to it.
            deleted = ", ".join(f"d{at} AS (DELETE FROM {one})" for at, one in enumerate(changed))
            await connection.execute(f"WITH {deleted} SELECT")
            # Also gives the files back their first length. New rows would otherwise fill the holes
            # of old ones, and come in an order that depends on them.
            await connection.execute(f"VACUUM {', '.join(changed)}")
        for table in template.rows.keys() & set(changed):
            await connection.execute(
                f"INSERT INTO {table} SELECT * FROM json_populate_recordset(null::{table}, $1)",
                template.rows[table],
            )
        await connection.execute(RESTART_SEQUENCES)
        return set(await _written(connection)) == template.rows.keys()


@asynccontextmanager
async def _connected(url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


async def _written(connection: asyncpg.Connection) -> list[str]:
    return [row[0] for row in await connection.fetch(WRITTEN)]


async def _rows(connection: asyncpg.Connection, table: str) -> str:
    return str(await connection.fetchval(f"SELECT json_agg(row) FROM {table} AS row"))
