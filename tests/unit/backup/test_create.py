"""Making a backup: one snapshot while others write, nothing of a secret, nothing half."""

import asyncio
import os
import resource
import sqlite3
import stat
import tarfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from gateway import backup
from gateway.config import Config
from runtime.domain.errors import Conflict, Unavailable
from runtime.store import Database
from tests.conftest import FailAfter
from tests.unit.backup.support import NAME, NOW, base, members, say

DATABASE = "database/gatehouse.sqlite3"


@pytest.mark.requirement("OPS-6")
async def test_a_backup_under_write_load_is_one_snapshot(
    config: Config, database: Database, tmp_path: Path, fail_after: FailAfter
) -> None:
    stop = asyncio.Event()
    enough = asyncio.Event()
    written = 0

    async def writer(first: int) -> None:
        nonlocal written
        number = first
        while not stop.is_set():
            await database.write(lambda conn, n=number: say(conn, n), name="accept")
            number += 4
            written += 1
            if written >= 200:
                enough.set()

    async with fail_after(60), asyncio.TaskGroup() as group:
        for first in range(4):
            group.create_task(writer(first), name=f"writer {first}")
        await enough.wait()
        before = written
        made = await backup.create(config, base(config), now_ms=NOW, path=tmp_path)
        after = written
        stop.set()
    assert after > before, "the writers waited for the backup"
    checked = await backup.verify(base(config), made.file)
    assert before <= checked.counts["inputs"] <= after + 4
    with closing(sqlite3.connect(_database_of(made.file, tmp_path))) as copy:
        (inputs,) = copy.execute("SELECT count(*) FROM inputs").fetchone()
        (runs,) = copy.execute("SELECT count(*) FROM runs").fetchone()
        (without,) = copy.execute(
            "SELECT count(*) FROM runs WHERE NOT EXISTS "
            "(SELECT 1 FROM inputs WHERE inputs.run_id = runs.id)"
        ).fetchone()
        ((highest,),) = copy.execute("SELECT input_seq FROM lanes").fetchall()
    assert inputs == runs == highest == made.manifest.counts["inputs"]
    assert made.manifest.counts == {
        "sessions": 1,
        "inputs": inputs,
        "runs": inputs,
        "messages": 0,
        "outbox": 0,
    }
    assert without == 0


@pytest.mark.requirement("OPS-6")
async def test_the_file_is_named_by_its_time_and_its_owners_only(
    config: Config, tmp_path: Path
) -> None:
    made = await backup.create(config, base(config), now_ms=NOW, path=tmp_path)
    assert made.file == tmp_path / NAME
    assert stat.S_IMODE(made.file.stat().st_mode) == 0o600
    assert made.size == made.file.stat().st_size
    assert list(members(made.file)) == [
        DATABASE,
        "workspace/AGENTS.md",
        "workspace/memory/MEMORY.md",
        "manifest.json",
    ]
    usual = await backup.create(config, base(config), now_ms=NOW)
    assert usual.file == config.home / "backups" / NAME
    with pytest.raises(Conflict, match="overwrites nothing"):
        await backup.create(config, base(config), now_ms=NOW)


@pytest.mark.requirement("OPS-6")
async def test_links_are_not_followed_and_caches_and_odd_files_stay_out(
    config: Config, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "diary.txt").write_text("not the workspace's")
    root = config.workspace
    (root / "away.txt").symlink_to(outside / "diary.txt")
    (root / "away").symlink_to(outside)
    (root / "memory" / "up").symlink_to("../..")
    (root / "memory" / "near").symlink_to("../AGENTS.md")
    (root / "whole").symlink_to(root / "memory")
    os.mkfifo(root / "pipe")
    (root / ".gatehouse" / "cache").mkdir(parents=True)
    (root / ".gatehouse" / "cache" / "index").write_text("can be made again")
    (root / ".gatehouse" / "outputs").mkdir()
    (root / ".gatehouse" / "outputs" / "long.txt").write_text("cannot")
    (root / ".gatehouse-0123456789abcdef.tmp").write_text("half")
    made = await backup.create(config, base(config), now_ms=NOW, path=tmp_path)
    kept = [one.path for one in made.manifest.files]
    assert kept == [
        DATABASE,
        "workspace/AGENTS.md",
        "workspace/.gatehouse/outputs/long.txt",
        "workspace/memory/MEMORY.md",
    ]
    assert b"not the workspace's" not in b"".join(members(made.file).values())
    links = {one.path: one.target for one in made.manifest.links}
    assert links == {"memory/near": "../AGENTS.md", "whole": "memory"}
    assert sorted(made.manifest.skipped) == [
        "away (a link that leaves the workspace)",
        "away.txt (a link that leaves the workspace)",
        "memory/up (a link that leaves the workspace)",
        "pipe (not a plain file)",
    ]


@pytest.mark.requirement("OPS-6")
async def test_no_secret_is_in_it_even_where_the_home_is_the_workspace(
    config: Config, tmp_path: Path
) -> None:
    token = "made-up-admin-token-0123456789"
    secrets = config.home / "secrets.toml"
    secrets.write_text(f'[http]\nadmin_token = "{token}"\n')
    secrets.chmod(0o600)
    workspace = config.settings.workspace.model_copy(update={"path": config.home})
    settings = config.settings.model_copy(update={"workspace": workspace})
    odd = type(config)(
        settings, config.origins, config.home, config.file, config.sources, config.variables
    )
    await backup.create(odd, base(odd), now_ms=NOW)
    made = await backup.create(odd, base(odd), now_ms=NOW + 1_000)
    found = members(made.file)
    assert "workspace/workspace/AGENTS.md" in found
    assert token.encode() not in b"".join(found.values())
    assert not [name for name in found if "gatehouse.db" in name or "backups" in name]


async def test_a_backup_is_not_put_where_the_agent_reads(config: Config) -> None:
    with pytest.raises(Conflict, match="workspace"):
        await backup.create(config, base(config), now_ms=NOW, path=config.workspace / "memory")
    assert sorted(one.name for one in (config.workspace / "memory").iterdir()) == ["MEMORY.md"]


@pytest.mark.requirement("OPS-6")
@pytest.mark.parametrize("limit", [20_000, 300_000])
async def test_a_disk_that_fills_up_is_said_and_leaves_nothing(
    config: Config, tmp_path: Path, limit: int
) -> None:
    """Once while the database is copied, once while the archive is written."""
    (config.workspace / "large.bin").write_bytes(os.urandom(2_000_000))
    target = tmp_path / "target"
    target.mkdir()
    with _files_of_at_most(limit), pytest.raises(Unavailable) as said:
        await backup.create(config, base(config), now_ms=NOW, path=target)
    assert str(said.value)
    assert list(target.iterdir()) == []
    made = await backup.create(config, base(config), now_ms=NOW, path=target)
    await backup.verify(base(config), made.file)


async def test_without_a_database_it_says_so(tmp_path: Path, config: Config) -> None:
    assert config.database_url.startswith("sqlite")
    (config.home / "gatehouse.db").unlink()
    with pytest.raises(Unavailable, match="no database"):
        await backup.create(config, base(config), now_ms=NOW, path=tmp_path)
    assert not (config.home / "gatehouse.db").exists()


def _database_of(archive: Path, folder: Path) -> Path:
    with tarfile.open(archive) as tar:
        content = tar.extractfile(DATABASE)
        assert content is not None
        file = folder / "copy.db"
        file.write_bytes(content.read())
        return file


@contextmanager
def _files_of_at_most(size: int) -> Iterator[None]:
    """The system refuses to let any file grow over `size` bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
