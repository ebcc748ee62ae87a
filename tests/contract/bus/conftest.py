"""One suite over every bus. PostgreSQL and NATS are reached through a cable for each replica.

GATEHOUSE_TEST_POSTGRES_URL=postgresql://postgres@127.0.0.1:5432/postgres
GATEHOUSE_TEST_NATS_URL=nats://127.0.0.1:4222
"""

import asyncio
import gc
import os
import uuid
from collections.abc import AsyncIterator

import pytest

from tests.contract.bus.world import World
from tests.contract.store_support import POSTGRES_VARIABLE, postgres_server
from tests.support.templates import postgres_database

NATS_VARIABLE = "GATEHOUSE_TEST_NATS_URL"
NO_NATS = (
    f"{NATS_VARIABLE} is not set: install NATS (Debian: apt install nats-server) and name it, "
    "for example nats://127.0.0.1:4222"
)


@pytest.fixture(params=["memory", "postgresql", "nats"])
async def any_bus(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    async for world in _world(str(request.param)):
        yield world


@pytest.fixture(params=["postgresql", "nats"])
async def shared_bus(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    async for world in _world(str(request.param)):
        yield world


@pytest.fixture
async def own_database() -> AsyncIterator[World]:
    """PostgreSQL with a database where nobody else listens."""
    server = postgres_server()
    async with postgres_database(server, migrated=False) as name:
        async for world in _watched(World("postgresql", server.url(name))):
            yield world


def nats_url() -> str:
    """Where the NATS server listens; a test that needs it is skipped where there is none."""
    if not (url := os.environ.get(NATS_VARIABLE)):
        pytest.skip(NO_NATS)
    return url


async def _world(kind: str) -> AsyncIterator[World]:
    deployment = f"test-{uuid.uuid4().hex}"
    async for world in _watched(World(kind, _server(kind), deployment=deployment)):
        yield world


def _server(kind: str) -> str:
    if kind == "postgresql":
        postgres_server()
        return os.environ[POSTGRES_VARIABLE]
    if kind == "nats":
        return nats_url()
    return ""


async def _watched(world: World) -> AsyncIterator[World]:
    """The world, and a look at what it leaves behind."""
    tasks = asyncio.all_tasks()
    try:
        yield world
    finally:
        await world.close()
    left = asyncio.all_tasks() - tasks - {asyncio.current_task()}
    if left:
        # A client's own tasks may need a turn of the loop to see that they were cancelled.
        await asyncio.wait(left, timeout=5)
    assert not [task for task in left if not task.done()]
    # A connection that was not closed warns when it is collected, and warnings are errors.
    gc.collect()
