"""Putting a backup back: whole or not at all, with what was there kept."""

import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import select, text

from gateway import backup
from gateway.config import Config
from runtime.domain.errors import Conflict, StoreUnavailable, Unavailable
from runtime.domain.events import EventKind
from runtime.domain.runs import Holder
from runtime.sessions.tables import audit, events, inputs, outbox
from runtime.store import Connection, Database, open_database
from runtime.store.filelock import gateway_lock
from runtime.store.migrate import MIGRATIONS
from runtime.store.revisions import Revisions
from tests.contract.store_support import StillClock
from tests.unit.backup.support import NOW, base, next_version, place, raw, reply, say


@pytest.fixture
async def archive(config: Config, database: Database, tmp_path: Path) -> Path:
    """One message, one reply that waits, one that is being sent, one that was sent."""

    def unit(conn: Connection) -> None:
        session = say(conn, 1)
        reply(conn, 1, session, None)
        reply(conn, 2, session, Holder("worker", 1))
        reply(conn, 3, session, None)
        conn.execute(text("UPDATE outbox SET state = 'sent' WHERE id = 'out_3'"))

    await database.write(unit, name="talk")
    script = config.workspace / "skills" / "hello.sh"
    script.parent.mkdir()
    script.write_text("echo hello")
    script.chmod(0o755)
    (config.workspace / "memory" / "latest.md").symlink_to("MEMORY.md")
    made = await backup.create(config, base(config), now_ms=NOW, path=tmp_path)
    await database.write(lambda conn: say(conn, 2), name="later")
    (config.workspace / "AGENTS.md").write_text("changed since")
    (config.workspace / "new.md").write_text("made since")
    await database.close()
    return made.file


@pytest.mark.requirement("OPS-6")
async def test_everything_is_as_it_was_and_what_was_there_is_kept(
    config: Config, archive: Path
) -> None:
    done = await backup.restore(config, base(config), archive, force=True, resend=False)
    root = config.workspace
    assert (root / "AGENTS.md").read_text() == "how to work"
    assert not (root / "new.md").exists()
    assert (root / "memory" / "latest.md").readlink() == Path("MEMORY.md")
    assert stat.S_IMODE((root / "skills" / "hello.sh").stat().st_mode) == 0o755
    assert _texts(config.home / "gatehouse.db") == ["message 1"]
    assert done.workspace_kept == config.home / "workspace.before-restore-1"
    assert (done.workspace_kept / "new.md").read_text() == "made since"
    kept = config.home / "gatehouse.db.before-restore-1"
    assert done.database.kept == str(kept)
    assert _texts(kept) == ["message 1", "message 2"]
    assert stat.S_IMODE((config.home / "gatehouse.db").stat().st_mode) == 0o600
    again = await backup.restore(config, base(config), archive, force=True, resend=False)
    assert again.workspace_kept == config.home / "workspace.before-restore-2"
    left = sorted(one.name for one in config.home.iterdir())
    assert left == [
        "gatehouse.db",
        "gatehouse.db.before-restore-1",
        "gatehouse.db.before-restore-2",
        "gatehouse.db.lock",
        "workspace",
        "workspace.before-restore-1",
        "workspace.before-restore-2",
    ]


@pytest.mark.requirement("OPS-6")
async def test_what_was_written_and_never_folded_in_is_kept_too(
    config: Config, archive: Path
) -> None:
    """A gateway that was killed leaves its last messages in the write-ahead log alone."""
    path = config.home / "gatehouse.db"
    killed = sqlite3.connect(path, isolation_level=None)
    killed.execute("PRAGMA journal_mode=WAL")
    killed.execute("INSERT INTO settings VALUES ('last', 'words', 1)")
    log = path.with_name(path.name + "-wal")
    saved = {file: raw(file) for file in (path, log)}
    killed.close()
    for file, content in saved.items():
        file.write_bytes(content)
    await backup.restore(config, base(config), archive, force=True, resend=False)
    assert not log.exists()
    with closing(sqlite3.connect(f"{path}.before-restore-1")) as conn:
        assert conn.execute("SELECT value FROM settings WHERE name = 'last'").fetchone()
    with closing(sqlite3.connect(path)) as conn:
        assert not conn.execute("SELECT value FROM settings WHERE name = 'last'").fetchone()


@pytest.mark.requirement("OPS-6")
async def test_a_damaged_database_is_replaced_and_kept_with_its_log(
    config: Config, archive: Path
) -> None:
    path = config.home / "gatehouse.db"
    path.write_bytes(b"no database at all, but long enough" * 100)
    path.with_name(path.name + "-wal").write_bytes(b"its log")
    await backup.restore(config, base(config), archive, force=True, resend=False)
    assert _texts(path) == ["message 1"]
    assert raw(config.home / "gatehouse.db.before-restore-1").startswith(b"no database")
    assert raw(config.home / "gatehouse.db.before-restore-1-wal") == b"its log"


@pytest.mark.requirement("OPS-6", "MSG-11")
async def test_what_waited_to_be_sent_is_held_back_and_said(config: Config, archive: Path) -> None:
    done = await backup.restore(config, base(config), archive, force=True, resend=False)
    assert (done.database.settled.held, done.database.settled.unfinished) == (2, 1)
    states, told, log = await _outcome(config)
    assert states == {
        "out_1": ("unknown", "restored from a backup"),
        "out_2": ("unknown", "restored from a backup"),
        "out_3": ("sent", None),
    }
    assert told == 2
    assert log == ["backup.restored"]


@pytest.mark.requirement("OPS-6")
async def test_resend_leaves_what_waited_as_after_a_restart(config: Config, archive: Path) -> None:
    done = await backup.restore(config, base(config), archive, force=True, resend=True)
    assert done.database.settled.held == 0
    states, told, _ = await _outcome(config)
    assert {name: state for name, (state, _) in states.items()} == {
        "out_1": "pending",
        "out_2": "sending",
        "out_3": "sent",
    }
    assert told == 0


@pytest.mark.requirement("OPS-6")
async def test_without_force_nothing_is_replaced(config: Config, archive: Path) -> None:
    with pytest.raises(Conflict, match="--force"):
        await backup.restore(config, base(config), archive, force=False, resend=False)
    _unchanged(config)


@pytest.mark.requirement("OPS-6")
async def test_on_a_new_machine_no_force_is_needed(archive: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = place(tmp_path / "other")
    done = await backup.restore(other, base(other), archive, force=False, resend=False)
    assert (done.database.kept, done.workspace_kept) == (None, None)
    assert _texts(other.home / "gatehouse.db") == ["message 1"]
    assert (other.workspace / "memory" / "MEMORY.md").read_text() == "the sky is blue"
    assert stat.S_IMODE(other.workspace.stat().st_mode) == 0o700


@pytest.mark.requirement("OPS-6")
async def test_beside_a_gateway_it_refuses_even_with_force(config: Config, archive: Path) -> None:
    with (
        gateway_lock(config.database_url),
        pytest.raises(StoreUnavailable, match="used by another gateway") as caught,
    ):
        await backup.restore(config, base(config), archive, force=True, resend=False)
    assert str(caught.value).endswith("Stop the gateway first, then run this again.")
    _unchanged(config)


@pytest.mark.requirement("OPS-6")
async def test_when_the_database_cannot_be_replaced_the_workspace_comes_back(
    config: Config, archive: Path
) -> None:
    """Somebody has the earlier database open, and reads."""
    with closing(sqlite3.connect(config.home / "gatehouse.db", isolation_level=None)) as reader:
        reader.execute("PRAGMA journal_mode=WAL")
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM inputs").fetchone()
        with pytest.raises(Unavailable, match=r"locked|another process"):
            await backup.restore(config, base(config), archive, force=True, resend=False)
    _unchanged(config)


@pytest.mark.requirement("OPS-6")
async def test_a_backup_of_another_kind_of_database_is_refused(
    archive: Path, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    url = "postgresql://nobody@127.0.0.1:9/none"
    other = place(tmp_path / "other", GATEHOUSE_DATABASE__URL=url)
    with pytest.raises(Conflict, match="of sqlite"):
        await backup.restore(other, base(other), archive, force=True, resend=False)
    assert not other.workspace.exists()


@pytest.mark.requirement("OPS-6")
async def test_an_older_schema_is_migrated_and_a_newer_one_refused(
    config: Config, archive: Path, tmp_path: Path
) -> None:
    later = base(config, scripts=next_version(tmp_path))
    done = await backup.restore(config, later, archive, force=True, resend=False)
    assert (done.database.before, done.database.after) == (Revisions(MIGRATIONS).head, "9999")
    assert _texts(config.home / "gatehouse.db") == ["message 1"]
    newer = await backup.create(config, later, now_ms=NOW + 1_000, path=tmp_path)
    with pytest.raises(Conflict, match="newer version"):
        await backup.restore(config, base(config), newer.file, force=True, resend=False)
    with pytest.raises(Conflict, match="newer version"):
        await backup.create(config, base(config), now_ms=NOW + 2_000, path=tmp_path)
    assert not (tmp_path / "gatehouse-20270115-080002.tar.gz").exists()


def _unchanged(config: Config) -> None:
    assert _texts(config.home / "gatehouse.db") == ["message 1", "message 2"]
    assert (config.workspace / "AGENTS.md").read_text() == "changed since"
    names = {one.name for one in config.home.iterdir()}
    assert not {name for name in names if "before-restore" in name or "gatehouse-backup" in name}


def _texts(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as conn:
        rows = conn.execute("SELECT json_extract(message, '$.text') FROM inputs ORDER BY seq")
        return [row[0] for row in rows]


async def _outcome(
    config: Config,
) -> tuple[dict[str, tuple[str, str | None]], int, list[str]]:
    database = open_database(config.database_url, clock=StillClock(NOW))
    await database.start()

    def look(conn: Connection) -> tuple[dict[str, tuple[str, str | None]], int, list[str]]:
        assert conn.execute(select(inputs.c.id)).all()
        rows = conn.execute(select(outbox.c.id, outbox.c.state, outbox.c.error))
        told = conn.execute(
            select(events.c.kind).where(events.c.kind == EventKind.DELIVERY_UNKNOWN.value)
        ).all()
        return (
            {row.id: (row.state, row.error) for row in rows},
            len(told),
            [row.action for row in conn.execute(select(audit.c.action))],
        )

    try:
        return await database.read(look)
    finally:
        await database.close()
