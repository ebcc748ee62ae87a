"""Backups of the database (OPS-6): a consistent copy, its check, and putting one back.

One interface over both databases. It refuses to know the archive, the workspace or the settings.
Nothing here waits for a gateway: copying goes on beside one, restoring refuses while one runs.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final, Protocol

from sqlalchemy import Connection

from runtime.domain.backups import DatabaseCopy, DatabaseKind, Manifest, RestoredDatabase, Settled
from runtime.domain.errors import Conflict
from runtime.ports.clock import Clock
from runtime.store.backup import postgres_copy, sqlite_copy
from runtime.store.dialect import database_url, sqlite_path
from runtime.store.filelock import gateway_lock
from runtime.store.migrate import MIGRATIONS, migrate
from runtime.store.postgres import PostgresDatabase
from runtime.store.revisions import UNRELEASED, Revisions
from runtime.store.sqlite import SqliteDatabase

COPY_NAMES: Final[dict[DatabaseKind, str]] = {
    "sqlite": "gatehouse.sqlite3",
    "postgresql": "gatehouse.pgdump",
}


class Settle(Protocol):
    """Makes the rows of a restored database fit to go on, in one unit; the store knows no rows."""

    def __call__(self, conn: Connection, *, resend: bool) -> Settled: ...


class DatabaseBackup:
    """Copies of one database, the one that `url` names. Raises InvalidInput for a wrong URL.

    `scripts` are the migrations of this version; `settle` runs once a copy was put back.
    """

    def __init__(
        self, url: str, *, clock: Clock, settle: Settle, scripts: Path = MIGRATIONS
    ) -> None:
        self._text = url
        self._url = database_url(url)
        self._path = sqlite_path(self._url)
        self._clock = clock
        self._settle = settle
        self._scripts = scripts
        self.kind: DatabaseKind = "postgresql" if self._path is None else "sqlite"

    @property
    def file(self) -> Path | None:
        """The database's file; None where a server keeps it."""
        return self._path

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep gateways away from a SQLite file; `restore` asks PostgreSQL by itself.

        Raises StoreUnavailable, naming the process that holds it.
        """
        hint = "Stop the gateway first, then run this again."
        with gateway_lock(self._text, hint=hint):
            yield

    async def snapshot(self, folder: Path) -> DatabaseCopy:
        """Copy the database into a new file in `folder`, which is private; writers go on.

        Raises StoreUnavailable (not there, not reachable, pg_dump missing), StoreFull when there
        is no room, and Conflict where a newer version has made the schema.
        """
        target = folder / COPY_NAMES[self.kind]
        if self._path is None:
            copy = await postgres_copy.snapshot(self._url, target)
        else:
            copy = await sqlite_copy.snapshot(self._path, target)
        _check_known(copy.revision, self._scripts)
        return copy

    async def check(self, copy: Path, manifest: Manifest) -> None:
        """Raises StoreCorrupt for a damaged copy, Conflict for one of a newer version.

        Both kinds can be checked, whichever this database is. Of PostgreSQL's only the form is
        checked; its rows are counted when they are restored.
        """
        _check_known(manifest.revision, self._scripts)
        if manifest.database == "sqlite":
            await asyncio.to_thread(sqlite_copy.check, copy, manifest)
        else:
            await postgres_copy.check(copy)

    async def occupied(self) -> bool:
        """Whether there is something that a restore would replace."""
        if self._path is None:
            return await postgres_copy.occupied(self._url)
        return await asyncio.to_thread(sqlite_copy.occupied, self._path)

    async def restore(self, copy: Path, manifest: Manifest, *, resend: bool) -> RestoredDatabase:
        """Put a checked copy of this kind in the database's place, at this version's schema.

        The copy stands on the database's own file system. Raises the store's errors; the database
        is as it was then.
        """
        if self._path is None:
            return await self._restore_postgres(copy, manifest, resend)
        return await self._restore_sqlite(self._path, copy, manifest, resend)

    async def _restore_sqlite(
        self, path: Path, copy: Path, manifest: Manifest, resend: bool
    ) -> RestoredDatabase:
        report = await migrate(f"sqlite:///{copy}", scripts=self._scripts)
        database = SqliteDatabase(copy, clock=self._clock)
        settled = await self._settled(database, resend)
        kept = await asyncio.to_thread(sqlite_copy.put, path, copy)
        return RestoredDatabase(
            before=manifest.revision,
            after=report.after or manifest.revision,
            kept=None if kept is None else str(kept),
            settled=settled,
        )

    async def _restore_postgres(
        self, copy: Path, manifest: Manifest, resend: bool
    ) -> RestoredDatabase:
        kept = await postgres_copy.put(self._url, copy, manifest)
        try:
            report = await migrate(self._text, scripts=self._scripts)
            database = PostgresDatabase(self._url, clock=self._clock, pool_size=2)
            settled = await self._settled(database, resend)
        except BaseException:
            await postgres_copy.put_back(self._url, kept)
            raise
        return RestoredDatabase(
            before=manifest.revision,
            after=report.after or manifest.revision,
            kept=None if kept is None else f"schema {kept}",
            settled=settled,
        )

    async def _settled(self, database: SqliteDatabase | PostgresDatabase, resend: bool) -> Settled:
        await database.start()
        try:
            return await database.write(partial(self._settle, resend=resend), name="restore")
        finally:
            await database.close()


def _check_known(revision: str, scripts: Path) -> None:
    if Revisions(scripts).knows(revision):
        return
    if revision in UNRELEASED:
        raise Conflict(
            f"The database's schema is {revision}, from before the first release of Gatehouse: "
            "only the code that made it can use it."
        )
    raise Conflict(
        f"The database's schema is {revision}, which a newer version of Gatehouse made: use that "
        "version for this backup."
    )
