"""The figures of schedules in docs/performance.md: ``make bench`` prints a line for each."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path

import pytest
from sqlalchemy import func, insert, select

from adapters.system.clock import SystemClock
from runtime.domain.messages import InboundMessage
from runtime.domain.people import Sender
from runtime.features.schedules.rows import Schedule
from runtime.features.schedules.schedule_keeper import ScheduleKeeper
from runtime.features.schedules.tables import schedule_fires, schedules
from runtime.sessions.tables import accounts, sessions
from runtime.store import Connection
from runtime.store.database import now_ms
from runtime.store.migrate import migrate
from tests.contract.store_support import BOTH, postgres_server
from tests.fakes.model import ScriptedModel, ScriptedModels
from tests.scenario.engine import OWNER, World, setup_at, world
from tests.support.templates import create_database, release_database

MANY, CHATS, MINUTE_MS, IDLE_S = 10_000, 100, 60_000, 20
START_MS = 15_000
"""Until the first is due: the time to keep them all."""


@asynccontextmanager
async def running(dialect: str, path: Path) -> AsyncIterator[World]:
    """An engine on a database of its own, by the machine's clock."""
    url, name, server = f"sqlite:///{path}/gatehouse.db", "", None
    if dialect == "postgresql":
        server = postgres_server()
        name = await create_database(server)
        url = server.url(name)
    await migrate(url)
    try:
        async with world(setup_at(path, url, ScriptedModels(ScriptedModel([])))) as made:
            yield made
    finally:
        if server is not None:
            await release_database(server, name)


async def chats(at: World) -> None:
    """The conversations of one person in so many chats."""
    for number in range(CHATS):
        await at.engine.intake.accept(
            InboundMessage(
                channel="test",
                account="A1",
                chat_id=f"C-{number}",
                chat_kind="direct",
                message_id=f"m{number}",
                sender=Sender(id=OWNER, name="owner"),
                text="/queue",
                received_at_ms=at.engine.parts.clock.now_ms(),
            )
        )


def fill(conn: Connection) -> None:
    """As many reminders, spread over the minute that begins soon, each in one of the chats."""
    person = conn.execute(select(accounts.c.person_id)).scalars().first()
    found = list(conn.execute(select(sessions.c.id)).scalars())
    now = now_ms(conn)
    rows = []
    for number in range(MANY):
        due = now + START_MS + number * MINUTE_MS // MANY
        schedule = Schedule(
            id=f"sch_{number:026d}",
            owner_person_id=str(person),
            owner_user_id=OWNER,
            session_id=found[number % len(found)],
            channel="test",
            account="A1",
            chat=f"C-{number % len(found)}",
            chat_kind="direct",
            thread=None,
            timezone="UTC",
            cadence=f'{{"type":"once","fire_at_ms":{due}}}',
            anchor_ms=now,
            deliver_text="tea",
            next_fire_ms=due,
            created_ms=now,
            updated_ms=now,
        )
        rows.append(asdict(schedule))
    conn.execute(insert(schedules), rows)


@pytest.mark.parametrize("dialect", BOTH)
async def test_10000_that_are_due_over_a_minute(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    dialect: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rounds, clock = [0], SystemClock()
    real = ScheduleKeeper._round

    async def counted(self: ScheduleKeeper, checks: asyncio.TaskGroup) -> int | None:
        rounds[0] += 1
        return await real(self, checks)

    monkeypatch.setattr(ScheduleKeeper, "_round", counted)
    async with running(dialect, tmp_path) as at:
        await chats(at)
        before, begun = rounds[0], clock.monotonic()
        await clock.sleep(IDLE_S)
        idle = (rounds[0] - before) / (clock.monotonic() - begun)
        await at.database.write(fill, name="fill")

        def fired(conn: Connection) -> int:
            query = select(func.count()).select_from(schedule_fires)
            return conn.execute(query).scalar_one()

        async with asyncio.timeout(300):
            while await at.database.read(fired) < MANY:
                await clock.sleep(1)

        def lags(conn: Connection) -> list[int]:
            query = select(schedule_fires.c.fired_ms - schedule_fires.c.slot_ms)
            return sorted(conn.execute(query).scalars())

        found = await at.database.read(lags)
    with capsys.disabled():
        p50, p99 = found[len(found) // 2], found[len(found) * 99 // 100]
        print(
            f"\n  {len(found)} reminders over a minute on {dialect}: lag p50 {p50} ms, "
            f"p99 {p99} ms, max {found[-1]} ms; idle: {idle:.2f} wake-ups a second"
        )
