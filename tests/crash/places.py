"""Orders, each on a database of its own: a fresh SQLite file, or a fresh PostgreSQL database."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from adapters.system.clock import SystemClock
from tests.contract.store_support import PostgresServer
from tests.crash.play import Make, folder
from tests.crash.process import Order
from tests.support.templates import create_database, release_database, template_of


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
    server: PostgresServer, parent: Path, *, lookup: bool = True
) -> AsyncIterator[Make]:
    """Orders, each on a database of its own that is gone afterwards."""
    made: list[str] = []
    # Orders are made side by side, and each would make the template.
    await template_of(server)

    async def make(name: str) -> Order:
        database = await create_database(server)
        made.append(database)
        now = SystemClock().now_ms()
        return Order(server.url(database), folder(parent, name), 0, now, lookup=lookup)

    try:
        yield make
    finally:
        for database in made:
            await release_database(server, database)
