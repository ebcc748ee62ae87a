"""Orders, each on a database of its own: a fresh SQLite file, or a fresh PostgreSQL database."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from adapters.system.clock import SystemClock
from tests.contract.store_support import PostgresServer
from tests.crash.play import Make, folder
from tests.crash.process import Order


def on_sqlite(template: Path, parent: Path, *, lookup: bool) -> Make:
    """Orders, each on a fresh SQLite file."""

    async def make(name: str) -> Order:
        path = folder(parent, name)
        shutil.copyfile(template, path / "gatehouse.db")
        url = f"sqlite:///{path / 'gatehouse.db'}"
        return Order(url, path, 0, SystemClock().now_ms(), lookup=lookup)

    return make


@asynccontextmanager
async def on_postgres(
    server: PostgresServer, template: str, parent: Path, *, lookup: bool = True
) -> AsyncIterator[Make]:
    """Orders, each on a database of its own that is dropped afterwards."""
    made: list[str] = []

    async def make(name: str) -> Order:
        database = await server.create(template=template)
        made.append(database)
        now = SystemClock().now_ms()
        return Order(server.url(database), folder(parent, name), 0, now, lookup=lookup)

    try:
        yield make
    finally:
        for database in made:
            await server.drop(database)
