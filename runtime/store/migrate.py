"""Bringing a database to the schema of this version; run at start and by `gatehouse migrate`.

Safe to run twice, and from two processes at once: the second waits and finds nothing to do. A
database that a newer version has migrated is left alone where its schema still carries this
version's code, as during a rolling upgrade, and refused where it does not (SCALE-4).

SQLite: a file with data is never altered in place. A copy is migrated with foreign keys off (a
batch ALTER with foreign keys on deletes child rows), checked, and put in the file's place.
PostgreSQL: one transaction under an advisory lock.

An empty database gets the tables as they are today, without the steps that led there: that is one
tenth of the work, and Alembic is not loaded for it. A test holds the two ways to the same schema.
Tables of features are known once their modules have been imported: whoever makes a database imports
`gateway.features`, and one that would lack a table is not made.
"""

import asyncio
import os
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sqlalchemy import (
    URL,
    Column,
    Connection,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    insert,
    inspect,
    select,
    update,
)

from runtime.domain.errors import StoreCorrupt, StoreUnavailable
from runtime.domain.schemas import Schema, Standing
from runtime.store.dialect import advisory_lock, database_url, sqlite_path
from runtime.store.filelock import hold, holder_of, lock_file
from runtime.store.metadata import metadata
from runtime.store.revisions import Revisions
from runtime.store.sqlite import BUSY_TIMEOUT_MS, create_file, driver_errors, writing_engine
from runtime.store.tables import settings
from runtime.store.writer import driver_connection

MIGRATIONS: Final = Path(__file__).parent / "migrations"

_COMPATIBLE_FROM: Final = "schema_compatible_from"
"""The setting in which a migration leaves word for older versions. They look for it here, so
neither the name nor the table `settings` can change."""
_ADVISORY_KEY: Final = 0x6761746568  # "gateh"
_LOCK_TIMEOUT: Final = "SET LOCAL lock_timeout = '30s'"
"""An ALTER that waits for a table makes every query behind it wait too, so it gives up."""

_VERSION: Final = Table(
    "alembic_version",
    MetaData(),
    Column("version_num", String(32)),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
"""Where Alembic keeps the revision, as it makes it."""

_ONE_AT_A_TIME: Final = threading.Lock()
"""Alembic's ``op`` and ``context`` are the process's, so its migrations run one after the other."""


@dataclass(frozen=True, slots=True)
class MigrationReport:
    """Revisions: None is an empty database. `applied` is in the order in which they ran.

    `ahead` says that a newer version has migrated the database, which still carries this one's
    code; nothing was done then.
    """

    before: str | None
    after: str | None
    applied: tuple[str, ...] = ()
    ahead: bool = False


class TablesMissing(RuntimeError):
    """The migrations make tables that this process does not know: a defect of ours."""


async def migrate(url: str, *, scripts: Path = MIGRATIONS) -> MigrationReport:
    """Apply what is missing.

    Raises StoreUnavailable when a gateway uses the SQLite file and there is something to apply,
    or when the schema is too new for this version; StoreFull when there is no room for the copy;
    StoreCorrupt when rows break a foreign key or the file is damaged. The database is as it was
    then.
    """
    return await asyncio.to_thread(_migrate, database_url(url), scripts)


async def schema(url: str, *, scripts: Path = MIGRATIONS) -> Schema:
    """The database's revision, and what that means to this version. Creates nothing."""
    return await asyncio.to_thread(_schema_of, database_url(url), scripts)


def default_differs(*comparison: object) -> bool | None:
    """Alembic's ``compare_server_default``: it takes an empty text on SQLite for a change.

    None leaves the decision to Alembic.
    """
    _, _, _, inspected, _, rendered = comparison
    return False if rendered == "" and inspected in ("''", "('')") else None


def _migrate(url: URL, scripts: Path) -> MigrationReport:
    path = sqlite_path(url)
    with _ONE_AT_A_TIME:
        if path is None:
            return asyncio.run(_migrate_postgres(url, scripts))
        with driver_errors(path):
            return _migrate_sqlite(path, scripts)


def _schema_of(url: URL, scripts: Path) -> Schema:
    known, path = Revisions(scripts), sqlite_path(url)
    if path is None:
        return asyncio.run(_schema_of_postgres(url, known))
    if not path.exists():
        return known.schema(None, None)
    with driver_errors(path), closing(writing_engine(path).connect()) as conn:
        return _schema(conn, known)


async def _migrate_postgres(url: URL, scripts: Path) -> MigrationReport:
    # Lazy: as in `open_database`.
    from runtime.store.postgres import single_engine

    def work(conn: Connection) -> MigrationReport:
        advisory_lock(conn, _ADVISORY_KEY)
        conn.exec_driver_sql(_LOCK_TIMEOUT)
        return _upgrade(conn, scripts)

    async with single_engine(url, statement_timeout_s=None) as engine, engine.begin() as conn:
        return await conn.run_sync(work)


async def _schema_of_postgres(url: URL, known: Revisions) -> Schema:
    # Lazy: as in `open_database`.
    from runtime.store.postgres import single_engine

    async with single_engine(url) as engine, engine.connect() as conn:
        return await conn.run_sync(lambda each: _schema(each, known))


def _migrate_sqlite(path: Path, scripts: Path) -> MigrationReport:
    create_file(path)
    with hold(path.with_name(path.name + ".migrate.lock"), what="", wait=True):
        with closing(writing_engine(path).connect()) as conn:
            found = _schema(conn, Revisions(scripts))
            tables = conn.exec_driver_sql("SELECT count(*) FROM sqlite_master").scalar_one()
        done = _nothing_to_do(found)
        if done is not None:
            return done
        if tables and found.standing is Standing.EMPTY:
            raise StoreUnavailable(
                f"{path} holds tables that are not Gatehouse's.",
                hint="Name another file in database.url.",
            )
        with _alone(path):
            if not tables:
                return _upgrade_file(path, scripts)
            return _upgrade_copy(path, scripts)


def _upgrade_copy(path: Path, scripts: Path) -> MigrationReport:
    copy = path.with_name(path.name + ".migrating")
    _remove(copy)
    try:
        # The lock is kept until the copy has taken the file's place: a write in between would
        # be lost.
        with _locked(path) as source:
            with closing(sqlite3.connect(copy)) as target:
                source.backup(target)
            report = _upgrade_file(copy, scripts)
            _replace(path, copy)
            return report
    finally:
        _remove(copy)


def _upgrade_file(path: Path, scripts: Path) -> MigrationReport:
    with closing(writing_engine(path).connect()) as conn:
        raw = driver_connection(conn)
        # Foreign keys cannot be switched inside a transaction.
        raw.execute("PRAGMA foreign_keys=OFF")
        with conn.begin():
            raw.execute("BEGIN IMMEDIATE")
            report = _upgrade(conn, scripts)
            broken = raw.execute("PRAGMA foreign_key_check").fetchall()
            if broken:
                raise StoreCorrupt(
                    f"References to rows that are gone: {len(broken)}, first in {broken[0][0]}.",
                    hint="Nothing was changed. Restore a backup, or report this migration.",
                )
        return report


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Keep gateways away, unless this process is the gateway and holds its lock already."""
    if holder_of(lock_file(path)) == os.getpid():
        yield
        return
    with hold(lock_file(path), what=f"{path} must be migrated, but a gateway uses it"):
        yield


@contextmanager
def _locked(path: Path) -> Iterator[sqlite3.Connection]:
    """The only connection to the file, which is complete without its write-ahead log.

    A log that stayed behind would be read into the file that takes this one's place.
    """
    with closing(sqlite3.connect(path, isolation_level=None)) as source:
        source.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
        source.execute("PRAGMA locking_mode=EXCLUSIVE")
        mode = source.execute("PRAGMA journal_mode=DELETE").fetchone()[0]
        if mode != "delete":
            raise StoreUnavailable(f"{path} must be migrated, but another process has it open.")
        source.execute("BEGIN EXCLUSIVE")
        source.execute("COMMIT")
        yield source


def _replace(path: Path, copy: Path) -> None:
    shutil.copymode(path, copy)
    owner = path.stat()
    if (owner.st_uid, owner.st_gid) != (os.geteuid(), os.getegid()):
        os.chown(copy, owner.st_uid, owner.st_gid)
    try:
        copy.replace(path)
    except OSError as error:
        raise StoreUnavailable(
            f"The migrated copy cannot take the place of {path}: {error.strerror}.",
            hint="Mount the folder of the database, not the file alone.",
        ) from error
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _remove(copy: Path) -> None:
    for suffix in ("", "-journal", "-wal", "-shm"):
        copy.with_name(copy.name + suffix).unlink(missing_ok=True)


def _upgrade(conn: Connection, scripts: Path) -> MigrationReport:
    """Run Alembic inside the transaction that has begun on `conn`."""
    known = Revisions(scripts)
    before = _schema(conn, known)
    done = _nothing_to_do(before)
    if done is not None:
        return done
    if before.revision is None and scripts == MIGRATIONS:
        _create(conn, known)
    else:
        _run_alembic(conn, scripts)
    _leave_word(conn, known.compatible_from)
    after = _schema(conn, known).revision
    return MigrationReport(before.revision, after, known.after(before.revision))


def _create(conn: Connection, known: Revisions) -> None:
    """The tables of this version in an empty database."""
    missing = sorted(known.tables - metadata.tables.keys())
    if missing:
        raise TablesMissing(f"import the features first: nothing here knows {', '.join(missing)}")
    metadata.create_all(conn, checkfirst=False)
    _VERSION.create(conn)
    conn.execute(insert(_VERSION).values(version_num=known.head))


def _run_alembic(conn: Connection, scripts: Path) -> None:
    # Only a database that is behind needs Alembic: 10 MB that a running gateway would keep.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(scripts).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = conn
    command.upgrade(config, "head")


def _nothing_to_do(found: Schema) -> MigrationReport | None:
    """Raises StoreUnavailable for a schema that this version must not touch."""
    if found.standing is Standing.UNRELEASED:
        raise StoreUnavailable(
            f"The database's schema is {found.revision}, from before the first release of "
            "Gatehouse. No released version can use or upgrade it.",
            hint="Name another database in database.url, or move this one away: the gateway then "
            "makes a new one. Only the code that made the old one can read it.",
        )
    if found.standing is Standing.TOO_NEW:
        least = found.compatible_from or "nothing that this version knows"
        raise StoreUnavailable(
            f"The database's schema is {found.revision}, made by a newer version. It can be used "
            f"by versions with schema {least} or later; this one has {found.head}.",
            hint="Start the newer version here too, or restore a backup from before the upgrade.",
        )
    if found.standing in (Standing.CURRENT, Standing.AHEAD):
        ahead = found.standing is Standing.AHEAD
        return MigrationReport(found.revision, found.revision, ahead=ahead)
    return None


def _schema(conn: Connection, known: Revisions) -> Schema:
    if not inspect(conn).has_table("alembic_version"):
        return known.schema(None, None)
    revision = conn.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
    return known.schema(revision, _word_left(conn))


def _word_left(conn: Connection) -> str | None:
    if not inspect(conn).has_table(settings.name):
        return None
    query = select(settings.c.value).where(settings.c.name == _COMPATIBLE_FROM)
    return conn.execute(query).scalar()


def _leave_word(conn: Connection, compatible_from: str) -> None:
    # Without a moment: a migration has no clock, and nobody asks when.
    row = {"value": compatible_from, "updated_ms": 0}
    where = settings.c.name == _COMPATIBLE_FROM
    if conn.execute(update(settings).where(where).values(row)).rowcount == 0:
        conn.execute(insert(settings).values(name=_COMPATIBLE_FROM, **row))
