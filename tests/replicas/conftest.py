"""A deployment for each test; it needs PostgreSQL, and a skip says how to get it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.contract.store_support import postgres_server
from tests.replicas.town import Deployment, deployment_at


@pytest.fixture
async def deployment(tmp_path: Path) -> AsyncIterator[Deployment]:
    async with deployment_at(tmp_path, postgres_server()) as made:
        yield made
