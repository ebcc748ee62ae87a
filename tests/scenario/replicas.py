"""Two engines on one PostgreSQL, under one clock that moves on command.

The server's own clock stands still in the test's database, so that the store's time is the fake's
alone, however slow the machine is. Each engine has a bus of its own: no signal of one ever reaches
the other, as if every message of a bus were lost.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import TypeVar

from sqlalchemy import Connection, select

from runtime.domain.errors import StoreUnavailable
from runtime.ports.model import Model
from runtime.sessions import tables
from runtime.store import Database, leases, open_database
from runtime.workspace.snapshot import Workspace
from tests.contract.store_support import PostgresServer
from tests.fakes.chat import FakeChat
from tests.fakes.clock import START_MS, FakeClock, settle
from tests.fakes.model import ScriptedModels
from tests.scenario.engine import Setup, World, engine_on, setup_at
from tests.support.templates import make_workspace, postgres_database

T = TypeVar("T")
STEP_S = 0.25
STAND_STILL = f"""
CREATE SCHEMA still;
CREATE FUNCTION still.clock_timestamp() RETURNS timestamptz LANGUAGE sql STABLE
    AS 'SELECT to_timestamp({START_MS} / 1000.0)'
"""
GO_ON = "DROP SCHEMA still CASCADE"


class SharedClock(FakeClock):
    """Moves the store's time with its own (`runtime.store.database.ShiftedClock`)."""

    def offset_ms(self) -> int:
        """How far it is from where the server's clock stands."""
        return self.now_ms() - START_MS


class Line(Database):
    """A replica's way to the database: it knows what is under way, and can be cut."""

    def __init__(self, database: Database) -> None:
        self.dialect = database.dialect
        self.idle = asyncio.Event()
        self.idle.set()
        self._database = database
        self._under_way = 0
        self._cut = False

    def cut(self) -> None:
        """Nothing passes any more."""
        self._cut = True

    def mend(self) -> None:
        """What comes from now on passes again."""
        self._cut = False

    async def start(self) -> None:
        await self._database.start()

    async def close(self) -> None:
        await self._database.close()

    async def write(self, work: Callable[[Connection], T], *, name: str, urgent: bool = False) -> T:
        with self._busy():
            return await self._database.write(work, name=name, urgent=urgent)

    async def read(self, work: Callable[[Connection], T]) -> T:
        with self._busy():
            return await self._database.read(work)

    @contextmanager
    def _busy(self) -> Iterator[None]:
        if self._cut:
            raise StoreUnavailable("The line is cut.")
        self._under_way += 1
        self.idle.clear()
        try:
            yield
        finally:
            self._under_way -= 1
            if not self._under_way:
                self.idle.set()


async def quiet(lines: Sequence[Line]) -> bool:
    """Until no line is in use and nobody has more to ask at this moment; whether one was."""
    waited = False
    while busy := [one for one in lines if not one.idle.is_set()]:
        waited = True
        await busy[0].idle.wait()
        await settle()
    return waited


@dataclass
class Replica:
    """One engine, and the people who talk to it."""

    world: World
    line: Line
    task: asyncio.Task[None]

    @property
    def worker(self) -> str:
        """Its name among the holders of leases."""
        return self.world.engine.worker

    @property
    def chat(self) -> FakeChat:
        """What people see that it posted."""
        return self.world.chat

    async def dies(self) -> None:
        """At once and without a goodbye: nothing that it would still write is written."""
        self.line.cut()
        self.task.cancel()
        await asyncio.wait([self.task])


@dataclass
class Beside:
    """A database and a clock for several replicas."""

    path: Path
    url: str
    clock: SharedClock = field(default_factory=SharedClock)
    lines: list[Line] = field(default_factory=list)

    @asynccontextmanager
    async def replica(
        self, name: str, model: Model, change: Callable[[Setup], Setup] = lambda setup: setup
    ) -> AsyncIterator[Replica]:
        """One more engine, once it may work; the first one gets every singleton."""
        base = setup_at(
            self.path / name, self.url, ScriptedModels(model), alone=False, clock=self.clock
        )
        setup, chat = change(base), FakeChat()
        make_workspace(setup.workspace)
        line = Line(open_database(setup.url, clock=self.clock))
        self.lines.append(line)
        self.clock.drain = partial(quiet, self.lines)
        await line.start()
        engine = engine_on(setup, line, Workspace(setup.workspace), chat)
        task = asyncio.create_task(engine.run(), name=f"engine {name}")
        numbers = count(1000 * len(self.lines))
        made = Replica(World(engine, chat, line, setup.workspace, numbers), line, task)
        try:
            while not engine.ready or engine.accounts[0].deliverer is None:
                await settle()
                await quiet(self.lines)
            yield made
        finally:
            await made.dies()
            await line.close()

    async def until(self, done: Callable[[], Awaitable[bool]], *, within: float) -> None:
        """Move time in small steps until it is done; fails after so many seconds."""
        end = self.clock.monotonic() + within
        while not await done():
            assert self.clock.monotonic() < end, f"not within {within:g} s"
            await self.clock.advance(STEP_S)


@dataclass(frozen=True)
class Hands:
    """Who holds each singleton, and who works on each run. Leases that ran out are in no hand."""

    leases: dict[str, str]
    runs: dict[str, str | None]

    def all_of(self, worker: str) -> bool:
        """Whether everything that there is belongs to one replica."""
        return set(self.leases.values()) | set(self.runs.values()) == {worker}


async def hands(replica: Replica) -> Hands:
    """The rows, as a replica reads them."""

    def look(conn: Connection) -> Hands:
        held = {
            one.name: one.holder
            for one in leases.listing(conn)
            if not one.name.startswith(leases.PROCESS)
        }
        runs = conn.execute(
            select(tables.runs.c.id, tables.runs.c.worker).where(tables.runs.c.state == "running")
        )
        return Hands(held, {row.id: row.worker for row in runs})

    return await replica.line.read(look)


@asynccontextmanager
async def beside(path: Path, server: PostgresServer) -> AsyncIterator[Beside]:
    """A migrated database where no time passes by itself; dropped afterwards."""
    async with postgres_database(server) as name:
        still = f"ALTER DATABASE {name} SET search_path = still, pg_catalog, public"
        await server.run(f"{STAND_STILL};{still}", database=name)
        try:
            yield Beside(path, server.url(name))
        finally:
            goes_on = f"ALTER DATABASE {name} RESET search_path"
            await server.run(f"{GO_ON};{goes_on}", database=name)
