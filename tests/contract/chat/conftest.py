"""The platform that a check of the conformance suite runs on."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.contract.chat.drivers import DRIVERS
from tests.contract.chat.platform import Platform


@pytest_asyncio.fixture
async def platform(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Platform]:
    async with DRIVERS[request.param].make(tmp_path) as made:
        yield made
