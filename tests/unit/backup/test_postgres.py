"""PostgreSQL: dump and counts of one snapshot, and a restore that is undone when it fails."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway import backup
from gateway.config import Config
from runtime.domain.errors import StoreCorrupt, StoreUnavailable
from runtime.store import Connection, Database, open_database
from runtime.store.migrate import MIGRATIONS
from runtime.store.revisions import Revisions
from tests.conftest import FailAfter
from tests.contract.store_support import StillClock, postgres_server
from tests.support.templates import postgres_database
from tests.unit.backup.support import NOW, base, members, next_version, pack, place, reply, say


@pytest.fixture
async def there(tmp_path: Path) -> AsyncIterator[Config]:
    """A machine whose database is a server's."""
    server = postgres_server()
    async with postgres_database(server) as name:
        yield place(tmp_path, GATEHOUSE_DATABASE__URL=server.url(name))


@pytest.fixture
async def shared(there: Config) -> AsyncIterator[Database]:
    opened = open_database(there.database_url, clock=StillClock(NOW))
    await opened.start()
    yield opened
    await opened.close()


@pytest.mark.requirement("OPS-6")
async def test_a_dump_under_write_load_has_the_rows_that_its_manifest_counts(
    there: Config, shared: Database, tmp_path: Path, fail_after: FailAfter
) -> None:
    """The restore counts the rows, and fails when they are not those of the manifest."""
    stop, enough, written = asyncio.Event(), asyncio.Event(), 0

    async def writer() -> None:
        nonlocal written
        while not stop.is_set():
            await shared.write(lambda conn, n=written: say(conn, n), name="accept")
            written += 1
            if written == 50:
                enough.set()

    async with fail_after(60), asyncio.TaskGroup() as group:
        group.create_task(writer(), name="writer")
        await enough.wait()
        before = written
        made = await backup.create(there, base(there), now_ms=NOW, path=tmp_path)
        after = written
        stop.set()
    assert before <= made.manifest.counts["inputs"] == made.manifest.counts["runs"] <= after + 1
    assert after > before
    with pytest.raises(StoreUnavailable, match="Stop every replica"):
        await backup.restore(there, base(there), made.file, force=True, resend=False)
    await shared.close()
    done = await backup.restore(there, base(there), made.file, force=True, resend=False)
    assert done.database.kept == "schema before_restore_1"
    assert done.database.settled.unfinished == made.manifest.counts["runs"]
    assert await _count(there, "inputs") == made.manifest.counts["inputs"]
    assert await _count(there, "before_restore_1.inputs") == written


@pytest.mark.requirement("OPS-6")
async def test_a_restore_that_fails_puts_everything_back(
    there: Config, shared: Database, tmp_path: Path
) -> None:
    await shared.write(lambda conn: say(conn, 1), name="accept")
    (there.workspace).mkdir()
    (there.workspace / "AGENTS.md").write_text("then")
    made = await backup.create(there, base(there), now_ms=NOW, path=tmp_path)
    await shared.write(lambda conn: say(conn, 2), name="accept")
    (there.workspace / "AGENTS.md").write_text("now")
    await shared.close()
    found = members(made.file)
    manifest = json.loads(found["manifest.json"])
    manifest["counts"]["inputs"] = 7
    bad = pack(tmp_path / "bad.tar.gz", {**found, "manifest.json": json.dumps(manifest).encode()})
    with pytest.raises(StoreCorrupt, match="1 inputs, its manifest says 7"):
        await backup.restore(there, base(there), bad, force=True, resend=False)
    assert await _count(there, "inputs") == 2
    assert (there.workspace / "AGENTS.md").read_text() == "now"
    schemas = "information_schema.schemata WHERE schema_name LIKE 'before_restore%'"
    assert await _count(there, schemas) == 0


@pytest.mark.requirement("OPS-6", "MSG-11")
async def test_it_is_migrated_and_what_waited_is_held_back(
    there: Config, shared: Database, tmp_path: Path
) -> None:
    def unit(conn: Connection) -> None:
        reply(conn, 1, say(conn, 1), None)

    await shared.write(unit, name="talk")
    made = await backup.create(there, base(there), now_ms=NOW, path=tmp_path)
    await shared.close()
    later = base(there, scripts=next_version(tmp_path))
    for _ in range(2):
        # The second time what is replaced has the later version's tables already.
        done = await backup.restore(there, later, made.file, force=True, resend=False)
        assert (done.database.before, done.database.after) == (Revisions(MIGRATIONS).head, "9999")
        assert (done.database.settled.held, done.database.settled.unfinished) == (1, 1)
        assert await _count(there, "outbox WHERE state = 'unknown'") == 1


@pytest.mark.requirement("OPS-6")
async def test_a_damaged_dump_is_refused(there: Config, tmp_path: Path) -> None:
    made = await backup.create(there, base(there), now_ms=NOW, path=tmp_path)
    short = tmp_path / "short.pgdump"
    short.write_bytes(members(made.file)["database/gatehouse.pgdump"][:-500])
    with pytest.raises(StoreCorrupt, match="pg_restore"):
        await base(there).check(short, made.manifest)


async def _count(config: Config, table: str) -> int:
    database = open_database(config.database_url, clock=StillClock(NOW), pool_size=2)
    await database.start()
    try:
        return await database.read(
            lambda conn: int(conn.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one())
        )
    finally:
        await database.close()


async def test_the_table_of_a_feature_that_was_not_imported_is_ours_too(
    fail_after: FailAfter,
) -> None:
    script = (
        "import asyncio, sys; from runtime.store.metadata import metadata\n"
        "from runtime.store.backup.postgres_copy import occupied\n"
        "from runtime.store.dialect import database_url\n"
        "assert 'agents' not in metadata.tables\n"
        "assert asyncio.run(occupied(database_url(sys.argv[1])))"
    )
    server = postgres_server()
    async with fail_after(), postgres_database(server, migrated=False) as name:
        opened = open_database(server.url(name), clock=StillClock(NOW))
        await opened.start()
        made = "CREATE TABLE agents (session_id text)"
        await opened.write(lambda conn: conn.exec_driver_sql(made).close(), name="made")
        await opened.close()
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", script, server.url(name)
        )
        assert await process.wait() == 0
