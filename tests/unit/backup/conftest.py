"""A migrated database and a workspace with a few files."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.config import Config
from runtime.store import Database, open_database
from tests.contract.store_support import StillClock
from tests.support.templates import make_database
from tests.unit.backup.support import NOW, place


@pytest.fixture
async def config(tmp_path: Path) -> Config:
    found = place(tmp_path)
    await make_database(found.database_url)
    (found.workspace / "memory").mkdir(parents=True)
    (found.workspace / "AGENTS.md").write_text("how to work")
    (found.workspace / "memory" / "MEMORY.md").write_text("the sky is blue")
    return found


@pytest.fixture
async def database(config: Config) -> AsyncIterator[Database]:
    opened = open_database(config.database_url, clock=StillClock(NOW))
    await opened.start()
    yield opened
    await opened.close()
