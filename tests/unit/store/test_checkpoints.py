"""SQLite's log on a small disk: it never takes the room that it must be copied to."""

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from sqlalchemy import Connection, text

from runtime.store import StoreFull
from runtime.store.checkpoints import (
    LEAST_PAGES,
    MOST_PAGES,
    PAGE_BYTES,
    SHARE,
    make_room,
    pages_for,
)
from runtime.store.filelock import gateway_lock, holder_of, lock_file
from runtime.store.sqlite import SqliteDatabase
from tests.contract.store_support import StillClock
from tests.scenario.gateway.disks import Disk, disk

MEGABYTE = 1024**2
ROWS = 60


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Disk]:
    """A disk of four megabytes."""
    with disk(tmp_path / "small", megabytes=4) as mounted:
        yield mounted


def write(number: int) -> Callable[[Connection], None]:
    """A unit that writes one of a few rows anew: the file hardly grows, the log does."""
    query = text("INSERT OR REPLACE INTO rows VALUES (:id, randomblob(3000))")
    return lambda conn: conn.execute(query, {"id": number % ROWS}).close()


async def opened(path: Path) -> SqliteDatabase:
    database = SqliteDatabase(path, clock=StillClock(), busy_timeout_ms=1)
    await database.start()
    query = text("CREATE TABLE IF NOT EXISTS rows (id INTEGER PRIMARY KEY, data BLOB)")
    await database.write(lambda conn: conn.execute(query).close(), name="schema")
    return database


async def written(database: SqliteDatabase, times: int) -> None:
    for number in range(times):
        await database.write(write(number), name="row")


def log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def wedge(small: Disk, aside: Path) -> Path:
    """A database as a gateway left it that was killed with a log that had filled its disk."""
    aside.mkdir()
    made, path = aside / "gatehouse.db", small.path / "gatehouse.db"
    with closing(sqlite3.connect(made, isolation_level=None)) as raw:
        raw.execute("PRAGMA journal_mode=WAL")
        raw.execute("PRAGMA synchronous=OFF")
        raw.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, data BLOB)")
        for number in range(ROWS):
            raw.execute("INSERT INTO rows VALUES (?, randomblob(3000))", (number,))
        raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        raw.execute("PRAGMA wal_autocheckpoint=0")
        number = 0
        while log_of(made).stat().st_size < 3 * MEGABYTE:
            raw.execute("UPDATE rows SET data = randomblob(3000) WHERE id = ?", (number % ROWS,))
            number += 1
        for file in (made, log_of(made)):
            shutil.copyfile(file, small.path / file.name)
    small.fill()
    return path


@pytest.mark.requirement("SCALE-5")
@pytest.mark.parametrize(
    ("room", "pages"),
    [
        (10_000 * MEGABYTE, MOST_PAGES),
        (MOST_PAGES * PAGE_BYTES * SHARE, MOST_PAGES),
        (MOST_PAGES * PAGE_BYTES * SHARE - 1, MOST_PAGES // 2),
        (20 * MEGABYTE, 1_000),
        (0, LEAST_PAGES),
    ],
)
def test_the_log_gets_a_part_of_the_room(room: int, pages: int) -> None:
    assert pages_for(room) == pages


@pytest.mark.requirement("SCALE-5")
async def test_the_log_does_not_fill_a_small_disk(small: Disk) -> None:
    path = small.path / "gatehouse.db"
    database = await opened(path)
    largest = 0
    for number in range(1_000):
        await database.write(write(number), name="row")
        largest = max(largest, log_of(path).stat().st_size)
    await database.close()
    assert largest < 2 * MEGABYTE


@pytest.mark.requirement("SCALE-5")
async def test_a_log_that_fills_the_disk_is_copied_and_the_next_write_goes_on(
    small: Disk,
) -> None:
    """A reader holds the log up until the disk is full."""
    path = small.path / "gatehouse.db"
    database = await opened(path)
    await written(database, ROWS)
    await database.close()
    database = await opened(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM rows").fetchone()
        with pytest.raises(StoreFull):
            await written(database, 2_000)
        reader.rollback()
    with suppress(StoreFull):
        await database.write(write(0), name="row")
    await written(database, 100)
    assert log_of(path).stat().st_size < 2 * MEGABYTE
    await database.close()


@pytest.mark.requirement("SCALE-5")
async def test_a_start_gets_the_room_back_that_a_log_has_taken(small: Disk, tmp_path: Path) -> None:
    path = wedge(small, tmp_path / "aside")
    url = f"sqlite:///{path}"
    with gateway_lock(url):
        assert holder_of(lock_file(path)) == 0, "there is no room for the process's id"
        make_room(url)
        assert not log_of(path).exists()
        database = await opened(path)
        await database.write(write(1), name="row")
        await database.close()
    with gateway_lock(url):
        assert holder_of(lock_file(path)) is not None
