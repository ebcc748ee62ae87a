"""Holds the schemas that follow a revision to what its code says.

An empty database is brought to the revision and then from one migration to the next. After each,
every recorded statement is prepared, the recorded story is carried out and rolled back, and the
tables are compared with what they were. The first migration that breaks something is named.
"""

import shutil
import sqlite3
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import asyncpg
from sqlalchemy import Connection, create_engine
from sqlalchemy.ext.asyncio import create_async_engine

from runtime.store.dialect import sqlite_path
from runtime.store.migrate import MIGRATIONS, database_url, migrate
from runtime.store.revisions import Revisions
from tests.upgrade import schema
from tests.upgrade.corpus import Corpus


@dataclass(frozen=True, slots=True)
class Broken:
    """Something that code of `revision` does and that `migration` has made impossible."""

    revision: str
    migration: str
    what: str
    reason: str

    def __str__(self) -> str:
        return (
            f"migration {self.migration} breaks the code of {self.revision}: {self.reason}\n"
            f"    {self.what}"
        )


async def check(url: str, corpus: Corpus, *, scripts: Path = MIGRATIONS) -> list[Broken]:
    """What is broken by the first migration after the corpus's that breaks anything.

    `url` names an empty database, which is left at that migration, or at the newest.
    """
    known = Revisions(scripts)
    await _bring(url, scripts, corpus.revision)
    before = await _picture(url)
    for name in (corpus.revision, *known.after(corpus.revision)):
        await _bring(url, scripts, name)
        broken = [
            Broken(corpus.revision, name, what, reason)
            for what, reason in [
                *[("the tables", line) for line in schema.taken(before, await _picture(url))],
                *await _statements(url, corpus),
            ]
        ]
        if broken:
            return broken
    return []


@contextmanager
def up_to(scripts: Path, revision: str) -> Iterator[Path]:
    """The migrations as they were when `revision` was the newest."""
    later = Revisions(scripts).after(revision)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "migrations"
        shutil.copytree(scripts, folder)
        for file in (folder / "versions").glob("*.py"):
            if file.name.startswith(tuple(f"{name}_" for name in later)):
                file.unlink()
        yield folder


async def _bring(url: str, scripts: Path, revision: str) -> None:
    with up_to(scripts, revision) as folder:
        await migrate(url, scripts=folder)


async def _picture(url: str) -> dict[str, schema.Table]:
    path = sqlite_path(database_url(url))
    if path is not None:
        engine = create_engine(f"sqlite:///{path}")
        try:
            with engine.connect() as conn:
                return schema.picture(conn)
        finally:
            engine.dispose()
    remote = create_async_engine(database_url(url))

    def work(conn: Connection) -> dict[str, schema.Table]:
        return schema.picture(conn)

    try:
        async with remote.connect() as conn:
            return await conn.run_sync(work)
    finally:
        await remote.dispose()


async def _statements(url: str, corpus: Corpus) -> list[tuple[str, str]]:
    path = sqlite_path(database_url(url))
    if path is not None:
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            return list(_on_sqlite(database, corpus))
    async with _asyncpg(url) as connection:
        return [*await _prepared(connection, corpus), *await _told(connection, corpus)]


def _on_sqlite(database: sqlite3.Connection, corpus: Corpus) -> Iterator[tuple[str, str]]:
    for statement in corpus.statements:
        try:
            # The count of marks, as the parser sees them: a question mark may stand in a text.
            marks = _marks(statement)
            database.execute(f"EXPLAIN {statement}", (None,) * marks).fetchall()
        except sqlite3.Error as error:
            yield statement, str(error)
    database.execute("PRAGMA foreign_keys=ON")
    database.execute("BEGIN")
    try:
        for step in corpus.story:
            database.execute(step.statement, step.values)
    except sqlite3.Error as error:
        yield step.statement, f"the story: {error}"
    finally:
        database.execute("ROLLBACK")


def _marks(statement: str) -> int:
    outside = statement.split("'")[::2]
    return sum(part.count("?") for part in outside)


@asynccontextmanager
async def _asyncpg(url: str) -> AsyncIterator[asyncpg.Connection]:
    plain = database_url(url).set(drivername="postgresql")
    connection = await asyncpg.connect(plain.render_as_string(hide_password=False))
    try:
        yield connection
    finally:
        await connection.close()


async def _prepared(connection: asyncpg.Connection, corpus: Corpus) -> list[tuple[str, str]]:
    async def one(statement: str, types: str) -> str | None:
        prepared = await connection.prepare(statement)
        given = ", ".join(each.name for each in prepared.get_parameters())
        back = ", ".join(each.type.name for each in prepared.get_attributes())
        now = f"({given}) -> ({back})"
        return None if now == types else f"its types were {types} and are {now}"

    found = []
    for statement, types in corpus.types.items():
        reason = await _refused(lambda told=(statement, types): one(*told))
        if reason is not None:
            found.append((statement, reason))
    return found


async def _told(connection: asyncpg.Connection, corpus: Corpus) -> list[tuple[str, str]]:
    transaction = connection.transaction()
    await transaction.start()
    try:
        for step in corpus.story:

            async def said(step: object = step) -> None:
                await connection.execute(step.statement, *step.values)

            reason = await _refused(said)
            if reason is not None:
                return [(step.statement, f"the story: {reason}")]
    finally:
        await transaction.rollback()
    return []


async def _refused(work: Callable[[], Awaitable[str | None]]) -> str | None:
    try:
        return await work()
    except asyncpg.PostgresError as error:
        return str(error)
