"""A town for each test: Slack, Telegram, a model, and a machine with nothing on it yet."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from tests.scenario.gateway.town import Town, town_at
from tests.wire.aimock import aimock, aimock_server

__all__ = ["aimock", "aimock_server"]


@pytest_asyncio.fixture
async def town(tmp_path: Path) -> AsyncIterator[Town]:
    async with town_at(tmp_path) as made:
        yield made
