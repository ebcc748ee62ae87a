"""The worlds of the matrix: two databases, two kinds of platform, with children or without; and a
case in each."""

import os
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from runtime.store.migrate import migrate
from tests.contract.store_support import POSTGRES_VARIABLE, PostgresServer
from tests.crash.places import on_postgres, on_sqlite
from tests.crash.play import Case, Make, discover, faults, recoveries
from tests.crash.process import Order
from tests.crash.teams import of_team
from tests.support.templates import drop_templates

SIDE_BY_SIDE: Final = {"sqlite": 6, "postgresql": 8}
"""Cases at once: on PostgreSQL they mostly wait for a lease to run out."""


@dataclass(frozen=True)
class World:
    """`lookup`: the platform can be asked whether it has a message, as Slack can; else it cannot,
    as Telegram cannot. `team`: children work."""

    dialect: str
    lookup: bool
    team: bool = False

    @property
    def name(self) -> str:
        """As a heading."""
        database = "SQLite" if self.dialect == "sqlite" else "PostgreSQL"
        kind = "children" if self.team else "can be asked" if self.lookup else "cannot be asked"
        return f"{database}, {kind}"


WORLDS: Final = tuple(World(one, can) for one in ("sqlite", "postgresql") for can in (True, False))
"""Those of the random kills too."""
TEAMS: Final = tuple(World(one, True, team=True) for one in ("sqlite", "postgresql"))


@dataclass(frozen=True)
class Pace:
    """`rate`: how many times as fast as the machine's the gateway's clock runs; `lease_s` by it."""

    rate: int
    lease_s: float


def server() -> PostgresServer | None:
    """The PostgreSQL of the environment."""
    url = os.environ.get(POSTGRES_VARIABLE)
    return PostgresServer(url) if url else None


@asynccontextmanager
async def orders(world: World, pace: Pace) -> AsyncIterator[Make]:
    """Orders in a world, each on a fresh database; all of it is gone afterwards."""

    def made_for(make: Make) -> Make:
        async def made(name: str) -> Order:
            return replace(await make(name), rate=pace.rate, lease_s=pace.lease_s)

        return of_team(made) if world.team else made

    with tempfile.TemporaryDirectory(prefix="gatehouse-faults-") as path:
        parent = Path(path)
        if world.dialect == "sqlite":
            template = parent / "template.db"
            await migrate(f"sqlite:///{template}")
            yield made_for(on_sqlite(template, parent, lookup=world.lookup))
            return
        postgres = server()
        assert postgres is not None, POSTGRES_VARIABLE
        try:
            async with on_postgres(postgres, parent, lookup=world.lookup) as make:
                yield made_for(make)
        finally:
            await drop_templates()


async def play(world: World, pace: Pace) -> Sequence[Case]:
    """Every point of a world died at once, and what only a recovering gateway passes, twice."""
    at_once = SIDE_BY_SIDE[world.dialect]
    async with orders(world, pace) as make:
        points = await discover(await make("recorded"))
        cases = await faults(make, points, side_by_side=at_once)
        return [*cases, *await recoveries(make, cases, points, side_by_side=at_once)]
