"""Backups: the database and the workspace in one file, its check, and the way back (OPS-6).

`create` runs beside a gateway and changes nothing of it. `restore` refuses to run beside one.
Nothing is ever overwritten: a backup appears under its name when it is complete and on the disk,
and what a restore replaces is kept as `NAME.before-restore-<n>`.
The settings, `secrets.toml` and token files are never in a backup.
"""

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gateway.backup_archive import DATABASE, WORKSPACE, ArchiveWriter, extract
from gateway.backup_workspace import Identity, Skipped, WorkspaceFile, identities, walk
from gateway.config import SECRETS, Config, gateway_version
from gateway.workspaces import make_home
from runtime.domain.backups import (
    BackupLink,
    DatabaseCopy,
    Manifest,
    RestoredDatabase,
)
from runtime.domain.errors import Conflict, InvalidInput, Unavailable
from runtime.workspace.open_folders import settle

if TYPE_CHECKING:
    from gateway.wiring import DatabaseBackup

FOLDER: Final = "backups"
_STAGING: Final = ".gatehouse-backup-"
_BESIDE: Final = ("", "-wal", "-shm", "-journal", ".lock", ".migrate.lock", ".migrating")
_SPOOL_BYTES: Final = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Created:
    """A backup that is complete; `size` in bytes."""

    file: Path
    size: int
    manifest: Manifest


@dataclass(frozen=True, slots=True)
class Restored:
    """What a restore put in place; `workspace_kept` is where the earlier files are, if any were."""

    manifest: Manifest
    database: RestoredDatabase
    workspace_kept: Path | None


async def create(
    config: Config, database: "DatabaseBackup", *, now_ms: int, path: Path | None = None
) -> Created:
    """Make a backup in the folder, or as the new file, that `path` names.

    Raises Conflict for a place that is taken or in the workspace, Unavailable where something
    cannot be read or written (a full disk, for example); nothing is left behind then.
    """
    if database.file is not None and not database.file.is_file():
        # Before anything is made for it.
        raise Unavailable(
            f"There is no database at {database.file}.", hint="`gatehouse serve` makes one."
        )
    target = _target(config, path, now_ms)
    with _disk_errors(target.parent), _staging(target.parent) as staging:
        copy = await database.snapshot(staging)
        return await asyncio.to_thread(_pack, config, database.file, copy, target, now_ms)


async def verify(database: "DatabaseBackup", archive: Path) -> Manifest:
    """Check a backup in a temporary folder. Raises InvalidInput, Conflict or Unavailable."""
    with _disk_errors(Path("the temporary folder")):
        beside = Path(tempfile.gettempdir())
    with _disk_errors(beside), _staging(beside) as staging:
        manifest, copy = await asyncio.to_thread(_unpack, archive, staging, staging / "workspace")
        await database.check(copy, manifest)
        return manifest


async def restore(
    config: Config, database: "DatabaseBackup", archive: Path, *, force: bool, resend: bool
) -> Restored:
    """Put a backup in place of the database and the workspace, each by one step.

    Raises as `verify`, and Conflict where something would be replaced without `force`; nothing
    was changed then.
    """
    beside = config.home if database.file is None else database.file.parent
    with database.alone(), _disk_errors(beside):
        await _check_free(config, database, force=force)
        async with _staged(config.workspace, beside) as (files, staging):
            manifest, copy = await asyncio.to_thread(_unpack, archive, staging, files)
            if manifest.database != database.kind:
                raise Conflict(
                    f"The backup is of {manifest.database}, the configured database is "
                    f"{database.kind}."
                )
            await database.check(copy, manifest)
            await asyncio.to_thread(_finish_files, files, manifest)
            kept = await asyncio.to_thread(_swap, config.workspace, files)
            try:
                restored = await database.restore(copy, manifest, resend=resend)
            except BaseException:
                _swap_back(config.workspace, files, kept)
                raise
    return Restored(manifest, restored, kept)


def _target(config: Config, path: Path | None, now_ms: int) -> Path:
    name = datetime.fromtimestamp(now_ms / 1000, UTC).strftime("gatehouse-%Y%m%d-%H%M%S.tar.gz")
    if path is None:
        folder = config.home / FOLDER
        with _disk_errors(folder):
            make_home(config)
            folder.mkdir(mode=0o700, exist_ok=True)
        target = folder / name
    else:
        target = path / name if path.is_dir() else path
    target = target.parent.resolve() / target.name
    if not target.parent.is_dir():
        raise Unavailable(f"There is no folder {target.parent}.", hint="Make it first.")
    if os.path.lexists(target):
        raise Conflict(f"{target} exists already, and a backup overwrites nothing.")
    if path is not None and target.is_relative_to(config.workspace.resolve()):
        raise Conflict(
            f"{target} is in the workspace, where the agent could read everybody's messages in "
            "it. Name a folder outside."
        )
    return target


def _pack(
    config: Config, database: Path | None, copy: DatabaseCopy, target: Path, now_ms: int
) -> Created:
    partial = copy.file.parent / "archive.partial"
    links: list[BackupLink] = []
    skipped: list[str] = []
    descriptor = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        with ArchiveWriter(file, made_s=now_ms // 1000) as archive:
            with copy.file.open("rb") as content:
                archive.add(f"{DATABASE}{copy.file.name}", content)
            for entry in walk(config.workspace, without=_own(config, database, target.parent)):
                if isinstance(entry, BackupLink):
                    links.append(entry)
                elif isinstance(entry, Skipped):
                    skipped.append(str(entry))
                else:
                    _add(archive, entry)
            manifest = Manifest(
                version=gateway_version(),
                created_ms=now_ms,
                database=copy.kind,
                revision=copy.revision,
                counts=copy.counts,
                files=tuple(archive.files),
                links=tuple(links),
                skipped=tuple(skipped),
            )
            archive.finish(manifest)
        file.flush()
        os.fsync(descriptor)
        size = file.tell()
    if os.path.lexists(target):
        raise Conflict(f"{target} was made by another program meanwhile.")
    partial.rename(target)
    settle(target.parent)
    return Created(target, size, manifest)


def _add(archive: ArchiveWriter, entry: WorkspaceFile) -> None:
    """Add a file as it is at one moment: it may grow or go while it is read."""
    try:
        source = entry.open()
    except FileNotFoundError:
        return
    with source, tempfile.SpooledTemporaryFile(_SPOOL_BYTES) as still:
        shutil.copyfileobj(source, still)
        mode = os.fstat(source.fileno()).st_mode & 0o777
        archive.add(f"{WORKSPACE}{entry.path}", still, mode=mode)


def _own(config: Config, database: Path | None, folder: Path) -> frozenset[Identity]:
    """What is never in a backup, should it stand in the workspace: secrets, and backups."""
    named = [config.home / SECRETS, config.home / FOLDER, *config.sources]
    if database is not None:
        named += [database.with_name(database.name + suffix) for suffix in _BESIDE]
    named += folder.glob(f"{_STAGING}*")
    return identities(iter(named))


def _unpack(archive: Path, staging: Path, files: Path) -> tuple[Manifest, Path]:
    databases: list[Path] = []

    def place(name: str) -> Path:
        if name.startswith(WORKSPACE):
            return files / name.removeprefix(WORKSPACE)
        databases.append(staging / "database.copy")
        return databases[-1]

    manifest = extract(archive, place)
    if len(databases) != 1:
        raise InvalidInput("backup", "must hold one database")
    return manifest, databases[0]


async def _check_free(config: Config, database: "DatabaseBackup", *, force: bool) -> None:
    if force:
        return
    workspace = config.workspace
    taken = [str(workspace)] if workspace.is_dir() and any(workspace.iterdir()) else []
    if await database.occupied():
        taken.insert(0, "the database" if database.file is None else str(database.file))
    if taken:
        raise Conflict(
            f"Data exists already: {' and '.join(taken)}. With --force it is replaced and kept "
            "under another name."
        )


def _finish_files(files: Path, manifest: Manifest) -> None:
    """Modes, links, and everything on the disk."""
    files.mkdir(mode=0o700, exist_ok=True)
    for one in manifest.files:
        if one.path.startswith(WORKSPACE):
            (files / one.path.removeprefix(WORKSPACE)).chmod(one.mode | 0o600)
    for link in manifest.links:
        place = files / link.path
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        place.symlink_to(link.target)
    os.sync()


def _swap(workspace: Path, files: Path) -> Path | None:
    """Give `files` the workspace's name; where the earlier folder is kept, if there was one."""
    kept = _free_name(workspace) if os.path.lexists(workspace) else None
    if kept is not None:
        shutil.copymode(workspace, files)
        try:
            workspace.rename(kept)
        except OSError as error:
            raise Unavailable(
                f"{workspace} cannot be moved aside: {error.strerror}.",
                hint="Where it is a mount of its own, mount the folder above it.",
            ) from error
    try:
        files.rename(workspace)
    except BaseException:
        if kept is not None:
            kept.rename(workspace)
        raise
    settle(workspace.parent)
    return kept


def _swap_back(workspace: Path, files: Path, kept: Path | None) -> None:
    workspace.rename(files)
    if kept is not None:
        kept.rename(workspace)


def _free_name(path: Path) -> Path:
    names = (path.with_name(f"{path.name}.before-restore-{number}") for number in count(1))
    return next(name for name in names if not os.path.lexists(name))


@contextmanager
def _staging(folder: Path) -> Iterator[Path]:
    """A private folder that is gone in the end."""
    staging = Path(tempfile.mkdtemp(prefix=_STAGING, dir=folder))
    try:
        yield staging
    finally:
        shutil.rmtree(staging, ignore_errors=True)


@asynccontextmanager
async def _staged(workspace: Path, beside: Path) -> AsyncIterator[tuple[Path, Path]]:
    """Private folders on the file systems of the workspace and of the database."""
    # A rename does not cross file systems, and these two may be on different ones.
    workspace.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _staging(workspace.parent) as first, _staging(beside) as second:
        yield first / "workspace", second


@contextmanager
def _disk_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Unavailable(
            f"{error.filename or folder}: {error.strerror or error}.",
            hint="Nothing was left behind; free some space or make the folder writable, and try "
            "again.",
        ) from error
