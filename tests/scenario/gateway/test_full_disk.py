"""A disk that fills while nobody writes: the gateway says so, and says when it is over."""

from pathlib import Path

import pytest

from tests.conftest import FailAfter
from tests.scenario.gateway.disks import disk
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
