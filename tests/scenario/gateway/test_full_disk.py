"""A disk that fills while nobody writes: the gateway says so, and says when it is over."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.conftest import FailAfter
from tests.scenario.gateway.disks import Disk, disk
from tests.scenario.gateway.test_storage import greeted
from tests.scenario.gateway.town import Town
from tests.scenario.process.test_store_away import until_ready


@pytest.mark.requirement("API-5", "SEC-3")
async def test_a_full_disk_is_not_ready_with_the_reason_and_recovers_once(
    town: Town, tmp_path: Path, fail_after: FailAfter
) -> None:
    with disk(tmp_path / "home", megabytes=16) as small:
        town.configure()
        async with fail_after(120), town.serving() as here:
            url = await here.program.url()
            await greeted(town, here)
            await until_ready(url, ready=True)
            small.fill()
            await until_ready(url, ready=False)
            status = await here.client.get("/v1/status")
            assert status["ready"] is False
            assert status["checks"]["writes"] is False
            assert "gatehouse.db is full" in status["reasons"]["writes"]
            said = str(status["reasons"])
            assert "hello" not in said
            assert town.slack.install.bot_token not in said
            small.free()
            await until_ready(url, ready=True)
            status = await here.client.get("/v1/status")
            assert (status["checks"]["writes"], status["reasons"]) == (True, {})
            await here.program.says("database_recovered")
            for line in ("database_not_writable", "database_recovered"):
                assert here.program.transcript.count(line) == 1, line


@pytest.mark.requirement("MSG-1", "SCALE-5")
async def test_a_gateway_starts_on_a_disk_that_its_own_log_has_filled(
    town: Town, tmp_path: Path, fail_after: FailAfter
) -> None:
    """As a version left it that let the log grow whatever the disk had."""
    with disk(tmp_path / "home", megabytes=12) as small:
        town.configure()
        async with fail_after(120):
            async with town.serving() as here:
                await greeted(town, here)
                await here.stops()
                assert await here.program.ended() == 0
            filled_by_its_log(small, small.path / "gatehouse.db", tmp_path / "aside")
            async with town.serving() as here:
                await until_ready(await here.program.url(), ready=True)
                await town.on_slack("hello again")
                await here.feed.settled(4)
            assert town.slack_texts() == ["I am here."] * 2


def filled_by_its_log(small: Disk, database: Path, aside: Path) -> None:
    """Let a log of few rows that were written again and again take all room, and leave it there."""
    log = database.with_name("gatehouse.db-wal")
    aside.mkdir()
    shutil.copyfile(database, aside / database.name)
    with closing(sqlite3.connect(aside / database.name, isolation_level=None)) as raw:
        raw.execute("PRAGMA synchronous=OFF")
        raw.execute("PRAGMA wal_autocheckpoint=0")
        while not (aside / log.name).exists() or (aside / log.name).stat().st_size < 9_000_000:
            raw.execute("UPDATE inputs SET message = message || ' '")
            raw.execute("UPDATE inputs SET message = trim(message)")
        for file in (database, log):
            shutil.copyfile(aside / file.name, file)
    small.fill()
