"""Copying a SQLite file while its gateway writes, judging such a copy, and putting one back.

The copy is made by SQLite's online backup in one step, so it is one snapshot; in WAL mode writers
do not wait for it. The source is opened read-only. Putting back replaces the file by one rename,
after the copy is complete: migrated, settled and on the disk.
"""

import asyncio
import os
import shutil
import sqlite3
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Final

import aiosqlite
from sqlalchemy import Connection

from runtime.domain.backups import DatabaseCopy, Manifest
from runtime.domain.errors import StoreCorrupt, StoreUnavailable
from runtime.store.backup.copy_facts import compare, counts, revision
from runtime.store.integrity import examine_file
from runtime.store.sqlite import BUSY_TIMEOUT_MS, create_file, driver_errors, writing_engine

_SIDES: Final = ("-wal", "-shm", "-journal")


async def snapshot(path: Path, target: Path) -> DatabaseCopy:
    """Copy the database into the new file `target`. Raises the store's errors."""
    await asyncio.to_thread(_prepare, path, target)
    with driver_errors(target):
        await _copy(path, target)
        return await asyncio.to_thread(_described, target, path)


def _prepare(path: Path, target: Path) -> None:
    if not path.exists():
        raise StoreUnavailable(
            f"There is no database at {path}.", hint="`gatehouse serve` makes one."
        )
    create_file(target)


def _described(target: Path, path: Path) -> DatabaseCopy:
    """A copy of `path` with what it holds, once it is known to be whole."""
    # Whoever keeps the newest backups alone would lose the last good one for it.
    examine_file(target, shown=path)
    with closing(writing_engine(target).connect()) as conn:
        found, rows = _facts(conn)
    return DatabaseCopy(target, "sqlite", found, rows)


def check(copy: Path, manifest: Manifest) -> None:
    """Raises StoreCorrupt for a damaged copy, or one that is not what its manifest says."""
    with driver_errors(copy), closing(writing_engine(copy).connect()) as conn:
        # The file may be anybody's: its schema calls no functions with effects.
        conn.exec_driver_sql("PRAGMA trusted_schema=OFF")
        said = conn.exec_driver_sql("PRAGMA integrity_check(1)").scalar_one()
        if said != "ok":
            raise StoreCorrupt(f"The database of the backup is damaged: {said}.")
        broken = conn.exec_driver_sql("PRAGMA foreign_key_check").all()
        if broken:
            raise StoreCorrupt(f"References to rows that the backup does not hold: {len(broken)}.")
        compare(manifest, *_facts(conn))


def occupied(path: Path) -> bool:
    """Whether there is something that a restore would replace."""
    return path.exists() and path.stat().st_size > 0


def put(path: Path, copy: Path) -> Path | None:
    """Give `copy` the name `path`; where the earlier file is kept, if there was one.

    Both are on one file system, and nobody has either open. There is a database at `path` at
    every moment, the earlier or the new one.
    """
    _fold(copy)
    kept = _keep(path) if occupied(path) else None
    for suffix in _SIDES:
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    with copy.open("rb") as file:
        os.fsync(file.fileno())
    copy.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return kept


async def _copy(path: Path, target: Path) -> None:
    async with aiosqlite.connect(target, isolation_level=None) as copy:
        with driver_errors(path):
            source = await aiosqlite.connect(f"{path.as_uri()}?mode=ro", uri=True)
        try:
            with driver_errors(path):
                await source.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
                # Says at once what is wrong with the source; the backup would try for ever.
                await source.execute_fetchall("SELECT count(*) FROM sqlite_master")
            await source.backup(copy)
        finally:
            await source.close()
        await copy.execute("PRAGMA journal_mode=DELETE")


def _facts(conn: Connection) -> tuple[str, dict[str, int]]:
    return revision(conn), counts(conn)


def _fold(path: Path) -> None:
    """Bring the write-ahead log into the file, so that the file alone is the database."""
    with driver_errors(path), closing(sqlite3.connect(path, isolation_level=None)) as conn:
        conn.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
        mode = conn.execute("PRAGMA journal_mode=DELETE").fetchone()[0]
    if mode != "delete":
        raise StoreUnavailable(f"{path} is used by another process.", hint="Stop it first.")


def _keep(path: Path) -> Path:
    """Keep the earlier database under another name; its own name stays until it is replaced.

    What is damaged cannot be folded, and SQLite throws away a log that it cannot read. So the log
    is copied first, and the copy is kept where folding failed.
    """
    names = (path.with_name(f"{path.name}.before-restore-{number}") for number in count(1))
    kept = next(name for name in names if not os.path.lexists(name))
    sides = [_copy_side(path, kept, suffix) for suffix in ("-wal", "-journal")]
    damaged = False
    try:
        _fold(path)
    except StoreCorrupt:
        damaged = True
    finally:
        if not damaged:
            for side in sides:
                side.unlink(missing_ok=True)
    try:
        kept.hardlink_to(path)
    except OSError:
        # Some file systems have no hard links.
        shutil.copy2(path, kept)
    return kept


def _copy_side(path: Path, kept: Path, suffix: str) -> Path:
    source, target = (one.with_name(one.name + suffix) for one in (path, kept))
    if source.exists():
        shutil.copy2(source, target)
    return target
