"""Migrations, on both databases: repeatable, exclusive, and all or nothing."""

import asyncio
import shutil
import sqlite3
import sys
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import pytest
from sqlalchemy import Connection, delete, insert, select, text, update

from runtime.domain.schemas import Schema, Standing
from runtime.store import Database, StoreCorrupt, StoreUnavailable, open_database
from runtime.store.dialect import sqlite_path
from runtime.store.filelock import gateway_lock
from runtime.store.migrate import (
    MIGRATIONS,
    MigrationReport,
    migrate,
    schema,
)
from runtime.store.revisions import Revisions
from runtime.store.tables import settings
from tests.conftest import FailAfter
from tests.contract.store_support import StillClock

T = TypeVar("T")

_SECOND = """
import sqlalchemy as sa
from alembic import op

revision = "9999"
down_revision = {head!r}
compatible_from = {compatible_from!r}


def upgrade() -> None:
    with op.batch_alter_table("settings") as batch:
        batch.add_column(sa.Column("note", sa.Text(), nullable=False, server_default="new"))
    {then}
"""
_ORPHAN = "op.execute(\"INSERT INTO lanes (session_id, root_id) VALUES ('nobody', 'nobody')\")"
_BROKEN = 'op.execute("INSERT INTO nowhere VALUES (1)")'

HEAD = Revisions(MIGRATIONS).head
MIGRATE = "import asyncio, sys, gateway.features; from runtime.store.migrate import migrate; "


def next_version(folder: Path, *, then: str = "pass", compatible_from: str = "") -> Path:
    """The migrations as they would be in the next version, with one more."""
    scripts = folder / "migrations"
    shutil.copytree(MIGRATIONS, scripts)
    text_of_it = _SECOND.format(head=HEAD, compatible_from=compatible_from or HEAD, then=then)
    (scripts / "versions" / "9999_next.py").write_text(text_of_it)
    return scripts


def every_step(folder: Path) -> Path:
    """The migrations from another folder: from there an empty database takes every step."""
    return Path(shutil.copytree(MIGRATIONS, folder / "steps"))


def setting(conn: Connection) -> None:
    conn.execute(insert(settings).values(name="a", value="kept", updated_ms=1))


async def inside(url: str, work: Callable[[Database], Awaitable[T]]) -> T:
    database = open_database(url, clock=StillClock())
    await database.start()
    try:
        return await work(database)
    finally:
        await database.close()


async def rows(url: str) -> list[tuple[object, ...]]:
    # Without the word that a migration leaves for older versions.
    query = text("SELECT * FROM settings WHERE name = 'a'")
    return await inside(
        url,
        lambda database: database.read(lambda conn: [tuple(r) for r in conn.execute(query)]),
    )


async def keep_a_row(url: str) -> None:
    await inside(url, lambda database: database.write(setting, name="setting"))


KNOWN = Revisions(MIGRATIONS)
EACH = KNOWN.after(None)
"""Every revision, in order."""


async def test_an_empty_database_gets_the_whole_schema_once(database_url: str) -> None:
    assert (await schema(database_url)).revision is None
    assert await migrate(database_url) == MigrationReport(None, HEAD, EACH)
    assert await migrate(database_url) == MigrationReport(HEAD, HEAD)
    assert (await schema(database_url)).revision == HEAD


async def test_two_tasks_migrate_at_once(database_url: str, fail_after: FailAfter) -> None:
    async with fail_after():
        reports = await asyncio.gather(migrate(database_url), migrate(database_url))
    assert sorted(len(report.applied) for report in reports) == [0, len(EACH)]


async def test_two_processes_migrate_at_once(database_url: str, fail_after: FailAfter) -> None:
    script = MIGRATE + "print(len(asyncio.run(migrate(sys.argv[1])).applied))"

    async def other() -> str:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", script, database_url, stdout=asyncio.subprocess.PIPE
        )
        output, _ = await process.communicate()
        assert process.returncode == 0
        return output.decode().strip()

    async with fail_after():
        assert sorted(await asyncio.gather(other(), other(), other())) == ["0", "0", str(len(EACH))]
    assert (await schema(database_url)).revision == HEAD


async def test_a_database_with_rows_keeps_them(migrated_url: str, tmp_path: Path) -> None:
    await keep_a_row(migrated_url)
    report = await migrate(migrated_url, scripts=next_version(tmp_path))
    assert report == MigrationReport(HEAD, "9999", ("9999",))
    assert await rows(migrated_url) == [("a", "kept", 1, "new")]


async def test_a_migration_that_fails_changes_nothing(migrated_url: str, tmp_path: Path) -> None:
    await keep_a_row(migrated_url)
    with pytest.raises(Exception, match="nowhere"):
        await migrate(migrated_url, scripts=next_version(tmp_path, then=_BROKEN))
    assert (await schema(migrated_url)).revision == HEAD
    assert await rows(migrated_url) == [("a", "kept", 1)]


@pytest.mark.requirement("SCALE-4")
async def test_the_version_before_starts_on_a_newer_schema_that_carries_it(
    migrated_url: str, tmp_path: Path
) -> None:
    await migrate(migrated_url, scripts=next_version(tmp_path))
    assert await migrate(migrated_url) == MigrationReport("9999", "9999", ahead=True)
    assert (await schema(migrated_url)).standing is Standing.AHEAD
    await keep_a_row(migrated_url)
    assert await rows(migrated_url) == [("a", "kept", 1, "new")]


@pytest.mark.requirement("SCALE-4")
async def test_a_version_that_a_newer_schema_no_longer_carries_is_refused_with_the_way_out(
    migrated_url: str, tmp_path: Path
) -> None:
    await keep_a_row(migrated_url)
    await migrate(migrated_url, scripts=next_version(tmp_path, compatible_from="9999"))
    for _ in range(2):
        with pytest.raises(StoreUnavailable) as refused:
            await migrate(migrated_url)
    assert "schema is 9999" in str(refused.value)
    assert "9999 or later" in str(refused.value)
    assert f"this one has {HEAD}" in str(refused.value)
    assert "Start the newer version here too" in str(refused.value)
    assert (await schema(migrated_url)).standing is Standing.TOO_NEW
    assert await rows(migrated_url) == [("a", "kept", 1, "new")], "nothing was touched"


@pytest.mark.requirement("SCALE-4")
async def test_a_newer_schema_that_left_no_word_is_refused(
    migrated_url: str, tmp_path: Path
) -> None:
    await migrate(migrated_url, scripts=next_version(tmp_path))
    await inside(
        migrated_url,
        lambda database: database.write(lambda conn: conn.execute(delete(settings)), name="lost"),
    )
    with pytest.raises(StoreUnavailable, match="by versions with schema nothing"):
        await migrate(migrated_url)


@pytest.mark.requirement("SCALE-4")
@pytest.mark.parametrize("revision", ["0001", "0007"])
async def test_a_database_from_before_the_first_release_is_refused_in_true_words(
    migrated_url: str, revision: str
) -> None:
    """Also one of 0001, the number of the first migration then."""
    await keep_a_row(migrated_url)
    old = text("UPDATE alembic_version SET version_num = :revision").bindparams(revision=revision)
    await inside(
        migrated_url, lambda database: database.write(lambda conn: conn.execute(old), name="old")
    )
    with pytest.raises(StoreUnavailable) as refused:
        await migrate(migrated_url)
    assert f"schema is {revision}, from before the first release" in str(refused.value)
    assert "Name another database in database.url" in str(refused.value)
    assert (await schema(migrated_url)).standing is Standing.UNRELEASED
    assert await rows(migrated_url) == [("a", "kept", 1)], "nothing was touched"


@pytest.mark.requirement("SCALE-4")
async def test_what_a_database_is_to_this_version(database_url: str, tmp_path: Path) -> None:
    assert (await schema(database_url)).standing is Standing.EMPTY
    await migrate(database_url)
    found = await schema(database_url)
    assert found == Schema(HEAD, found.compatible_from, HEAD, Standing.CURRENT)
    later = await schema(database_url, scripts=next_version(tmp_path))
    assert (later.standing, later.head) == (Standing.BEHIND, "9999")


def files(url: str) -> set[str]:
    path = sqlite_path(url)
    assert path is not None
    return {file.name for file in path.parent.iterdir()}


class TestPostgresServer:
    """What concerns a database that several gateways share."""

    @pytest.fixture
    def dialect(self) -> str:
        return "postgresql"

    @pytest.mark.requirement("SCALE-4")
    async def test_a_gateway_that_runs_goes_on_while_another_migrates(
        self, migrated_url: str, tmp_path: Path, fail_after: FailAfter
    ) -> None:
        """Its connections keep statements that were prepared before the tables changed."""
        query = select(settings).where(settings.c.name == "a")

        async def over_it(database: Database) -> None:
            for _ in range(20):
                await database.read(lambda conn: conn.execute(query).all())
            await migrate(migrated_url, scripts=next_version(tmp_path))
            for _ in range(20):
                found = await database.read(lambda conn: conn.execute(query).all())
                assert [tuple(row) for row in found] == [("a", "kept", 1)]
            await database.write(
                lambda conn: conn.execute(
                    update(settings).where(settings.c.name == "a").values(value="changed")
                ),
                name="after",
            )

        async with fail_after():
            await keep_a_row(migrated_url)
            await inside(migrated_url, over_it)
        assert await rows(migrated_url) == [("a", "changed", 1, "new")]


class TestSqliteFile:
    """What concerns the file alone."""

    @pytest.fixture
    def dialect(self) -> str:
        return "sqlite"

    async def test_a_migration_that_orphans_rows_is_refused(
        self, migrated_url: str, tmp_path: Path
    ) -> None:
        await keep_a_row(migrated_url)
        with pytest.raises(StoreCorrupt, match="rows that are gone: 1, first in lanes"):
            await migrate(migrated_url, scripts=next_version(tmp_path, then=_ORPHAN))
        assert await rows(migrated_url) == [("a", "kept", 1)]
        assert not {
            name for name in files(migrated_url) if name.startswith("gatehouse.db.migrating")
        }

    async def test_a_gateway_that_runs_is_not_migrated_from_outside(
        self, migrated_url: str, tmp_path: Path
    ) -> None:
        scripts = next_version(tmp_path)
        script = (
            "import sys; from runtime.store.filelock import gateway_lock\n"
            "with gateway_lock(sys.argv[1]): print('held', flush=True); sys.stdin.read()"
        )
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            script,
            migrated_url,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        await process.stdout.readline()
        with pytest.raises(StoreUnavailable, match=f"a gateway uses it .process {process.pid}"):
            await migrate(migrated_url, scripts=scripts)
        process.stdin.close()
        await process.wait()
        with gateway_lock(migrated_url):
            assert (await migrate(migrated_url, scripts=scripts)).applied == ("9999",)

    async def test_a_file_that_something_else_has_open_is_not_replaced(
        self, migrated_url: str, tmp_path: Path
    ) -> None:
        scripts = next_version(tmp_path)
        path = sqlite_path(migrated_url)
        assert path is not None
        await keep_a_row(migrated_url)
        with closing(sqlite3.connect(path)) as other:
            other.execute("PRAGMA journal_mode=WAL")
            other.execute("BEGIN")
            other.execute("SELECT * FROM settings").fetchall()
            with pytest.raises(StoreUnavailable, match=r"locked|has it open"):
                await migrate(migrated_url, scripts=scripts)
        assert (await migrate(migrated_url, scripts=scripts)).applied == ("9999",)

    async def test_a_stranger_s_file_is_left_alone(self, database_url: str) -> None:
        path = sqlite_path(database_url)
        assert path is not None
        with closing(sqlite3.connect(path)) as stranger:
            stranger.execute("CREATE TABLE recipes (id)")
        with pytest.raises(StoreUnavailable, match="not Gatehouse's"):
            await migrate(database_url)

    async def test_looking_creates_nothing(self, database_url: str) -> None:
        assert (await schema(database_url)).revision is None
        assert files(database_url) == set()


async def test_migrating_leaves_the_logging_of_the_process_alone(
    database_url: str, tmp_path: Path
) -> None:
    script = (
        "import logging, asyncio, sys, pathlib\n"
        "from runtime.store.migrate import migrate\n"
        "mine = logging.getLogger('mine'); mine.setLevel('DEBUG')\n"
        "asyncio.run(migrate(sys.argv[1], scripts=pathlib.Path(sys.argv[2])))\n"
        "assert not logging.getLogger().handlers and not mine.disabled\n"
        "assert logging.getLogger('alembic').level == logging.NOTSET"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        script,
        database_url,
        every_step(tmp_path),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await process.communicate()
    assert (process.returncode, output, errors) == (0, b"", b"")


async def test_the_template_of_the_suite_is_current(store: Database) -> None:
    names = text("SELECT version_num FROM alembic_version")
    assert await store.read(lambda conn: conn.execute(names).scalar_one()) == HEAD
    found = await store.read(lambda conn: conn.execute(select(settings)).all())
    left = [("schema_compatible_from", KNOWN.compatible_from)]
    assert [(row.name, row.value) for row in found] == left
