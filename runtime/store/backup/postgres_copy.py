"""Copying a PostgreSQL database with pg_dump, and putting such a copy back with pg_restore.

The dump and the counts share one exported snapshot. Only Gatehouse's tables are dumped and
restored; others of the same database are left alone. What is replaced moves, in one transaction,
into a schema `before_restore_<n>` of the same database; when the restore fails it moves back.
Passwords travel in a file that only its owner can read, never in arguments.
"""

import asyncio
import os
import shutil
from itertools import count
from pathlib import Path
from typing import Final

from sqlalchemy import URL, Connection, inspect, text
from sqlalchemy.exc import ProgrammingError

from runtime.domain.backups import DatabaseCopy, Manifest
from runtime.domain.errors import StoreCorrupt, StoreUnavailable
from runtime.store.backup.copy_facts import compare, counts, revision
from runtime.store.dialect import advisory_lock, parameters_of
from runtime.store.migrate import MIGRATIONS
from runtime.store.postgres import server_name, single_engine
from runtime.store.postgres_address import read_parameters
from runtime.store.revisions import Revisions

_KEY: Final = 0x6761746573  # beside the key of the migrations
_VERSIONS: Final = "alembic_version"
_INSTALL: Final = "Install PostgreSQL's client programs (Debian: apt install postgresql-client)."
_OTHERS: Final = text(
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
    "AND pid <> pg_backend_pid() AND application_name LIKE 'gatehouse%'"
)
_SNAPSHOT: Final = text("SELECT pg_export_snapshot(), current_schema()")
_TOLD_BYTES: Final = 2_000


async def snapshot(url: URL, target: Path) -> DatabaseCopy:
    """Dump the database into the new file `target`. Raises the store's errors."""
    program = _program("pg_dump")
    async with single_engine(url, statement_timeout_s=None) as engine, engine.connect() as plain:
        conn = await plain.execution_options(
            isolation_level="REPEATABLE READ", postgresql_readonly=True
        )
        # pg_dump reads by this snapshot, which lasts as long as this transaction.
        name, schema = (await conn.execute(_SNAPSHOT)).one()
        found = await conn.run_sync(revision)
        rows = await conn.run_sync(counts)
        tables = await conn.run_sync(_present)
        options = ["--format=custom", "--no-owner", "--no-privileges", "--no-password"]
        options += [f"--snapshot={name}", f"--file={target}"]
        options += [f'--table="{schema}"."{table}"' for table in tables]
        await _run(url, target.parent, [program, *options])
    return DatabaseCopy(target, "postgresql", found, rows)


async def check(copy: Path) -> None:
    """Raises StoreCorrupt for what pg_restore cannot read to its end.

    The rows are compared with the manifest when they are restored: only a server can read them.
    """
    program = _program("pg_restore")
    listed = await _call([program, "--list", str(copy)])
    read = await _call([program, "--file=/dev/null", str(copy)])
    if listed[0] or read[0]:
        raise StoreCorrupt(f"pg_restore cannot read the backup: {listed[1] or read[1]}")


async def occupied(url: URL) -> bool:
    """Whether there is something that a restore would replace."""
    async with single_engine(url) as engine, engine.connect() as conn:
        return bool(await conn.run_sync(_present))


async def put(url: URL, copy: Path, manifest: Manifest) -> str | None:
    """Restore the dump; the schema that keeps the earlier tables, if there were any.

    Raises StoreUnavailable while a gateway is connected, and the store's errors when the restore
    fails; the earlier tables are in their place then.
    """
    program = _program("pg_restore")
    options = ["--exit-on-error", "--single-transaction", "--no-owner", "--no-privileges"]
    async with single_engine(url, statement_timeout_s=None) as engine:
        try:
            async with engine.begin() as conn:
                kept = await conn.run_sync(_set_aside, server_name(url))
        except ProgrammingError as error:
            raise StoreUnavailable(
                f"{server_name(url)} refused to set the earlier tables aside: {error.orig}.",
                hint="The database's user needs the right CREATE on it, and its own tables.",
            ) from error
        try:
            await _run(url, copy.parent, [program, *options, "--no-password", str(copy)])
            async with engine.connect() as conn:
                compare(manifest, await conn.run_sync(revision), await conn.run_sync(counts))
        except BaseException:
            await put_back(url, kept)
            raise
        return kept


async def put_back(url: URL, kept: str | None) -> None:
    """Undo `put`."""
    async with single_engine(url, statement_timeout_s=None) as engine, engine.begin() as conn:
        await conn.run_sync(_put_back, kept)


def _present(conn: Connection) -> list[str]:
    # Of the migrations, because the tables of a feature are copied by a process without it too.
    known = {*Revisions(MIGRATIONS).tables, _VERSIONS}
    return sorted(known & set(inspect(conn).get_table_names()))


def _set_aside(conn: Connection, server: str) -> str | None:
    advisory_lock(conn, _KEY)
    if conn.execute(_OTHERS).scalar_one():
        raise StoreUnavailable(
            f"A gateway is connected to {server}.", hint="Stop every replica first."
        )
    tables = _present(conn)
    if not tables:
        return None
    taken = set(inspect(conn).get_schema_names())
    names = (f"before_restore_{number}" for number in count(1))
    kept = next(name for name in names if name not in taken)
    conn.exec_driver_sql(f"CREATE SCHEMA {kept}")
    for table in tables:
        conn.exec_driver_sql(f"ALTER TABLE {table} SET SCHEMA {kept}")
    return kept


def _put_back(conn: Connection, kept: str | None) -> None:
    schema = conn.exec_driver_sql("SELECT current_schema()").scalar_one()
    for table in _present(conn):
        conn.exec_driver_sql(f'DROP TABLE "{schema}".{table} CASCADE')
    if kept is None:
        return
    for table in inspect(conn).get_table_names(schema=kept):
        conn.exec_driver_sql(f'ALTER TABLE {kept}.{table} SET SCHEMA "{schema}"')
    conn.exec_driver_sql(f"DROP SCHEMA {kept}")


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise StoreUnavailable(f"{name} is not installed.", hint=_INSTALL)
    return found


async def _run(url: URL, folder: Path, command: list[str]) -> None:
    passwords = folder / ".pgpass"
    try:
        if url.password is not None:
            descriptor = os.open(passwords, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(f"*:*:*:*:{_escaped(str(url.password), ':')}\n")
            command = [*command, f"--dbname={_conninfo(url, passwords)}"]
        else:
            command = [*command, f"--dbname={_conninfo(url)}"]
        code, said = await _call(command)
    finally:
        passwords.unlink(missing_ok=True)
    if code:
        raise StoreUnavailable(
            f"{Path(command[0]).name} failed at {server_name(url)}: {said or f'exit code {code}'}"
        )


async def _call(command: list[str]) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        _, said = await process.communicate()
    except BaseException:
        process.kill()
        await process.wait()
        raise
    return process.returncode or 0, said[-_TOLD_BYTES:].decode("utf-8", "replace").strip()


def _conninfo(url: URL, passwords: Path | None = None) -> str:
    """The connection in libpq's words (libpq, "Keyword/Value Connection Strings")."""
    told = read_parameters(parameters_of(url))
    query = {key: str(value) for key, value in url.query.items() if isinstance(value, str)}
    parts = {
        "host": url.host or query.get("host"),
        "port": str(url.port or query.get("port", "")),
        "user": url.username,
        "dbname": url.database,
        **told.driver,
        **told.server,
        **({} if passwords is None else {"passfile": str(passwords)}),
    }
    return " ".join(f"{key}='{_escaped(one, chr(39))}'" for key, one in parts.items() if one)


def _escaped(value: str, mark: str) -> str:
    return value.replace("\\", "\\\\").replace(mark, f"\\{mark}")
