"""The pytest fixture; name this module in ``pytest_plugins`` to use it.

pytest_plugins = ["tests.wire.slack.fixtures"]
"""

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.wire.slack.server import SlackServer


@pytest_asyncio.fixture
async def slack() -> AsyncIterator[SlackServer]:
    """A running workspace; the test fails at its end if the client broke a rule."""
    async with SlackServer().running() as server:
        yield server
