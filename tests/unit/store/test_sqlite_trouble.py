"""What goes wrong with a file, and that the writer lives on."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest
from sqlalchemy import (
    Column,
    Connection,
    ForeignKey,
    LargeBinary,
    MetaData,
    Table,
    Text,
    event,
    insert,
    select,
    text,
)
from sqlalchemy.exc import IntegrityError, SQLAlchemyError
from structlog.testing import capture_logs

from runtime.store import CommitUnknown, StoreCorrupt, StoreFull, StoreUnavailable
from runtime.store.database import WAITING_LIMIT
from runtime.store.sqlite import SqliteDatabase
from tests.conftest import FailAfter
from tests.contract.store_support import Points, StillClock

metadata = MetaData()
files = Table(
    "files",
    metadata,
    Column("id", Text, primary_key=True),
    Column("data", LargeBinary),
    Column("parent", ForeignKey("files.id", deferrable=True, initially="DEFERRED")),
)
MEGABYTE = b"x" * 1_000_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "gatehouse.db"


@pytest.fixture
def points() -> Points:
    return Points()


@pytest.fixture
async def database(path: Path, points: Points) -> AsyncIterator[SqliteDatabase]:
    opened = SqliteDatabase(path, clock=StillClock(), points=points, busy_timeout_ms=1)
    await opened.start()
    await opened.write(metadata.create_all, name="schema")
    points.passed.clear()
    yield opened
    await opened.close()


def add(name: str, data: bytes = b"", parent: str | None = None) -> Callable[[Connection], str]:
    def unit(conn: Connection) -> str:
        conn.execute(insert(files).values(id=name, data=data, parent=parent))
        return name

    return unit


def names(conn: Connection) -> list[str]:
    return list(conn.execute(select(files.c.id).order_by(files.c.id)).scalars())


async def as_one_group(
    database: SqliteDatabase, units: dict[str, Callable[[Connection], object]]
) -> list[object]:
    """The outcome of each unit, errors too, when all of them wait at once."""
    entered, opened = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def hold(conn: Connection) -> None:
        loop.call_soon_threadsafe(entered.set)
        assert opened.wait(30)

    holding = asyncio.create_task(database.write(hold, name="hold"))
    await entered.wait()
    tasks = [asyncio.create_task(database.write(unit, name=name)) for name, unit in units.items()]
    await asyncio.wait(tasks, timeout=0)
    opened.set()
    await holding
    return list(await asyncio.gather(*tasks, return_exceptions=True))


def leave_room(pages: int) -> Callable[[Connection], None]:
    def unit(conn: Connection) -> None:
        used = conn.execute(text("PRAGMA page_count")).scalar_one()
        conn.execute(text(f"PRAGMA max_page_count={used + pages}"))

    return unit


def nested(unit: Callable[[Connection], object]) -> Callable[[Connection], object]:
    def inner(conn: Connection) -> object:
        with conn.begin_nested():
            return unit(conn)

    return inner


def swallowing(unit: Callable[[Connection], object]) -> Callable[[Connection], object]:
    def inner(conn: Connection) -> None:
        with suppress(SQLAlchemyError):
            unit(conn)
        add("after the loss")(conn)

    return inner


@pytest.mark.parametrize("wrap", [lambda unit: unit, nested], ids=["plain", "nested"])
async def test_a_full_disk_fails_the_unit_that_filled_it_and_no_other(
    database: SqliteDatabase,
    points: Points,
    fail_after: FailAfter,
    wrap: Callable[[Callable[[Connection], object]], Callable[[Connection], object]],
) -> None:
    async with fail_after():
        await database.write(leave_room(8), name="quota")
        points.passed.clear()
        big = wrap(add("big", MEGABYTE))
        before, full, after = await as_one_group(
            database, {"before": add("before"), "big": big, "after": add("later")}
        )
        assert (before, after) == ("before", "later")
        assert isinstance(full, StoreFull)
        assert "full" in str(full)
        # SQLite ended the transaction, so the unit before it ran twice, and was committed once.
        assert points.passed.count("before:begin") == 2
        assert points.passed.count("before:commit") == 1
        assert "big:commit" not in points.passed
        await database.write(leave_room(10_000), name="quota")
        assert await database.write(add("big", MEGABYTE), name="big") == "big"
    assert await database.read(names) == ["before", "big", "later"]


async def test_a_unit_that_hides_the_lost_transaction_fails_all_the_same(
    database: SqliteDatabase, fail_after: FailAfter
) -> None:
    async with fail_after():
        await database.write(leave_room(8), name="quota")
        before, hidden = await as_one_group(
            database, {"before": add("before"), "big": swallowing(add("big", MEGABYTE))}
        )
    assert before == "before"
    assert isinstance(hidden, StoreUnavailable)
    assert await database.read(names) == ["before"]


async def test_when_commit_fails_each_unit_is_tried_alone(
    database: SqliteDatabase, points: Points, fail_after: FailAfter
) -> None:
    async with fail_after():
        before, orphan, after = await as_one_group(
            database,
            {"before": add("before"), "orphan": add("orphan", parent="none"), "z": add("later")},
        )
    assert (before, after) == ("before", "later")
    assert isinstance(orphan, IntegrityError)
    assert await database.read(names) == ["before", "later"]
    assert points.passed.count("before:begin") == 2
    assert [name for name in points.passed if name.endswith(":commit")] == [
        "hold:commit",
        "before:commit",
        "z:commit",
    ]


async def test_a_file_that_another_process_locks_is_unavailable_until_it_lets_go(
    database: SqliteDatabase, path: Path, fail_after: FailAfter
) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        async with fail_after():
            with pytest.raises(StoreUnavailable, match="locked by another process"):
                await database.write(add("a"), name="u")
            assert await database.read(names) == []
        other.execute("ROLLBACK")
    assert await database.write(add("a"), name="u") == "a"


async def test_the_writer_outlives_a_defect_and_leaves_nobody_waiting(
    path: Path, database: SqliteDatabase, fail_after: FailAfter
) -> None:
    """The connection is given up because the file is locked, and its closing fails."""

    class Unforeseen(Exception):
        """An error that no part of the product knows."""

    def refuses(*_: object) -> None:
        raise Unforeseen("a defect of the pool")

    async with fail_after():
        pool = await database.write(lambda conn: conn.engine.pool, name="pool")
        event.listen(pool, "invalidate", refuses)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with capture_logs() as lines, pytest.raises(CommitUnknown):
                await database.write(add("first"), name="first")
        event.remove(pool, "invalidate", refuses)
        assert await database.write(add("second"), name="second") == "second"
        assert await database.read(names) == ["second"]
    (line,) = [one for one in lines if one["event"] == "store_writer_failed"]
    assert line["units"] == ["first"]


async def test_an_interrupted_statement_fails_its_unit_alone(
    database: SqliteDatabase, fail_after: FailAfter
) -> None:
    def endless(conn: Connection) -> None:
        raw = conn.connection.dbapi_connection
        assert isinstance(raw, sqlite3.Connection)
        add("interrupted")(conn)
        raw.set_progress_handler(lambda: 1, 1000)
        try:
            conn.execute(
                text(
                    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) "
                    "INSERT INTO files (id) SELECT x FROM n"
                )
            )
        finally:
            raw.set_progress_handler(None, 0)

    async with fail_after():
        before, broken, after = await as_one_group(
            database, {"before": add("before"), "broken": endless, "after": add("later")}
        )
    assert (before, after) == ("before", "later")
    assert isinstance(broken, StoreUnavailable)
    assert await database.read(names) == ["before", "later"]


@pytest.fixture
def letter(path: Path) -> Path:
    path.write_bytes(b"this is a letter to my aunt, and no database\n" * 100)
    return path


async def test_a_file_that_is_no_database_says_what_to_do(letter: Path) -> None:
    database = SqliteDatabase(letter, clock=StillClock())
    with pytest.raises(StoreCorrupt, match="gatehouse backup restore"):
        await database.start()
    await database.close()


def damage(path: Path) -> None:
    """Overwrite every page but the first."""
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))


async def test_a_damaged_page_is_reported_where_it_is_met(
    database: SqliteDatabase, path: Path
) -> None:
    for number in range(50):
        await database.write(add(f"{number:02}", b"y" * 3_000), name="u")
    await database.close()
    damage(path)
    await database.start()
    with pytest.raises(StoreCorrupt, match="damaged"):
        await database.read(lambda conn: conn.execute(select(files)).all())
    with pytest.raises(StoreCorrupt, match="damaged"):
        await database.write(lambda conn: conn.execute(select(files)).all(), name="u")


async def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "missing" / "gatehouse.db", clock=StillClock())
    with pytest.raises(StoreUnavailable, match=r"missing.*folder must exist"):
        await database.start()


def beside(path: Path) -> list[Path]:
    return list(path.parent.iterdir())


async def test_a_new_file_is_its_owner_s_alone(database: SqliteDatabase, path: Path) -> None:
    await database.write(add("a"), name="u")
    assert {file.name: file.stat().st_mode & 0o077 for file in beside(path)} == {
        "gatehouse.db": 0,
        "gatehouse.db-shm": 0,
        "gatehouse.db-wal": 0,
    }


async def test_what_is_committed_is_durable_and_foreign_keys_hold(
    database: SqliteDatabase,
) -> None:
    def settings(conn: Connection) -> list[object]:
        return [
            conn.execute(text(f"PRAGMA {name}")).scalar_one()
            for name in ("journal_mode", "synchronous", "foreign_keys")
        ]

    assert await database.write(settings, name="u") == ["wal", 2, 1]


async def test_a_reader_keeps_its_snapshot_while_others_write(
    database: SqliteDatabase, path: Path
) -> None:
    def twice(conn: Connection) -> tuple[list[str], list[str]]:
        before = names(conn)
        with closing(sqlite3.connect(path)) as other, other:
            other.execute("INSERT INTO files (id) VALUES ('late')")
        return before, names(conn)

    assert await database.read(twice) == ([], [])
    assert await database.read(names) == ["late"]


async def test_a_full_queue_says_so(database: SqliteDatabase, fail_after: FailAfter) -> None:
    entered, opened = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def hold(conn: Connection) -> None:
        loop.call_soon_threadsafe(entered.set)
        assert opened.wait(30)

    async with fail_after():
        holding = asyncio.create_task(database.write(hold, name="hold"))
        await entered.wait()
        waiting = [
            asyncio.create_task(database.write(lambda conn: None, name="u"))
            for _ in range(WAITING_LIMIT)
        ]
        await asyncio.wait(waiting, timeout=0)
        with pytest.raises(StoreUnavailable, match=f"full: {WAITING_LIMIT} writes wait"):
            await database.write(add("late"), name="u")
        urgent = asyncio.create_task(database.write(add("lease"), name="u", urgent=True))
        await asyncio.wait({urgent}, timeout=0)
        opened.set()
        await asyncio.gather(holding, urgent, *waiting)
    assert await database.read(names) == ["lease"]


async def test_close_waits_for_a_read_whose_caller_has_gone(
    database: SqliteDatabase, fail_after: FailAfter
) -> None:
    loop, entered, opened = asyncio.get_running_loop(), asyncio.Event(), threading.Event()
    read: list[list[str]] = []

    def reading(conn: Connection) -> None:
        loop.call_soon_threadsafe(entered.set)
        assert opened.wait(30)
        read.append(names(conn))

    async with fail_after():
        caller = asyncio.create_task(database.read(reading))
        await entered.wait()
        caller.cancel()
        await asyncio.wait({caller})
        assert caller.cancelled()
        closing = asyncio.create_task(database.close())
        await asyncio.wait({closing}, timeout=0)
        assert not closing.done()
        opened.set()
        await closing
    assert read == [[]]
