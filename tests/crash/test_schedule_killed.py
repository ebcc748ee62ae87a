"""A schedule that asks the model, over a `kill -9` in each state of a fire: it runs once, is
settled once and answers once, and its conversation is told once.

The schedule is made between two lives of a gateway: the first one answers the message that makes
the conversation, the second one is killed.
"""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pytest
from sqlalchemy import Connection, delete, insert, select

from runtime.bus.memory import MemoryBus
from runtime.domain.runs import RunState
from runtime.features.schedules.control import ScheduleControl
from runtime.features.schedules.dispatch import MOST_WAITING
from runtime.features.schedules.model import ScheduleCreateRequest
from runtime.features.schedules.tables import schedule_fires, schedules
from runtime.sessions.tables import accounts, runs
from runtime.sessions.unit import Units
from runtime.store import Database, open_database
from tests.contract.store_support import postgres_server, schema_templates
from tests.crash.clock import FastClock
from tests.crash.growing import whole
from tests.crash.places import on_postgres, on_sqlite
from tests.crash.platform import CHAT, Platform
from tests.crash.play import Conversation, conversation
from tests.crash.process import ANY_PHASE, Order
from tests.stateful.invariants import UNSETTLED
from tests.stateful.snapshot import Snapshot
from tests.support.kinds import KINDS

__all__ = ["schema_templates"]
pytestmark = pytest.mark.requirement("SCH-4")

POINTS: Final = tuple(
    f"{unit}:{side}"
    for unit in ("schedule-dispatch", "claim", "step", "finish", "receipt", "schedule-settle")
    for side in ("begin", "commit")
)
"""From a time that is due to one that is settled: dispatched, at work, and over but not settled."""
RETRY_POINTS: Final = ("schedule-retry:begin", "schedule-retry:commit")
ASKS: Final = "note numbers"
SOON_MS: Final = 20_000


@dataclass(frozen=True)
class Seen:
    """What came of it, as everybody sees it."""

    deaths: int
    fires: Sequence[str]
    executions: int
    status: str
    runs: int
    answers: int
    lines: int


ONCE: Final = Seen(1, ("settled",), 1, "completed", 1, 1, 1)


async def made(database: Database, order: Order) -> str:
    """A schedule that is due soon, in the conversation that is there."""
    account = await database.read(lambda conn: conn.execute(select(accounts)).one())
    session_id = await database.read(lambda conn: conn.execute(select(runs.c.session_id)).scalar())
    control = ScheduleControl(Units(database, MemoryBus(), KINDS), "owner")
    due_ms = FastClock(order.epoch_ms, order.rate).now_ms() + SOON_MS
    asked: Mapping[str, object] = {
        "name": "numbers",
        "target_session_id": session_id,
        "owner_person_id": account.person_id,
        "place": {"channel": "test", "account": "A1", "chat": CHAT},
        "request": {"content": ASKS},
        "cadence": {"type": "once", "fire_at_ms": due_ms},
    }
    view, _ = await control.create(ScheduleCreateRequest.model_validate(asked))
    return view.schedule_id


def settled(rows: Snapshot) -> bool:
    """Whether a fire was settled, and nothing is on its way any more."""
    over = any(row["kind"] == "schedule.settled" for row in rows.events)
    return over and not any(row["state"] in UNSETTLED for row in rows.outbox)


def at_rest(rows: Snapshot) -> bool:
    """Whether the first message is answered."""
    ended = [row for row in rows.runs if row["state"] == RunState.COMPLETED]
    return len(ended) == 1 and not any(row["state"] in UNSETTLED for row in rows.outbox)


def full(conn: Connection) -> None:
    """So many runs wait in the lane of the schedule that it takes no further one."""
    lane = conn.execute(select(schedules.c.lane_id)).scalar_one()
    row = dict(conn.execute(select(runs).limit(1)).one()._mapping)
    for number in range(MOST_WAITING):
        waits = {"id": f"run_full{number}", "session_id": lane, "seq": -number - 1}
        conn.execute(insert(runs).values({**row, **waits, "state": "queued", "ended_ms": None}))


def empty(conn: Connection) -> None:
    """They wait no more."""
    conn.execute(delete(runs).where(runs.c.id.like("run_full%")))


async def retried(talk: Conversation, database: Database) -> None:
    """Until a gateway that was started again tries again."""
    while True:
        talk.platform.changed.clear()
        fire = await database.read(lambda conn: conn.execute(select(schedule_fires)).first())
        if talk.gateway.kills and fire is not None and fire.attempt > 1:
            assert fire.status == "retrying"
            return
        await talk.platform.changed.wait()


async def played(order: Order, point: str, *, crowded: bool = False) -> Seen:
    platform = Platform()
    async with conversation(replace(order, patience_s=0.0), platform) as talk:
        platform.says("m1", "note milk")
        await talk.until(at_rest)
    database = open_database(order.url, clock=FastClock(order.epoch_ms, order.rate), pool_size=2)
    await database.start()
    try:
        await made(database, order)
        if crowded:
            await database.write(full, name="full")
        platform = Platform()
        dying = replace(order, kill=(ANY_PHASE, point), patience_s=0.0)
        async with conversation(dying, platform) as talk:
            if crowded:
                async with asyncio.timeout(300):
                    await retried(talk, database)
                await database.write(empty, name="empty")
            rows = await talk.until(settled)
            await talk.died(1)
            rows = await talk.until(settled)
            return await database.read(lambda conn: _seen(conn, talk, rows))
    finally:
        await database.close()


def _seen(conn: Connection, talk: Conversation, rows: Snapshot) -> Seen:
    schedule = conn.execute(select(schedules)).one()
    fires = conn.execute(select(schedule_fires.c.status)).scalars()
    asked = [row for row in rows.runs if row["session_id"] == schedule.lane_id]
    lines = [
        row
        for row in rows.messages
        if row["session_id"] == schedule.session_id and "ran at its time" in _payload(row)
    ]
    answers = [
        post
        for post in talk.platform.posts
        if post.text.startswith(f"{ASKS}: ") and whole(post.text)
    ]
    return Seen(
        deaths=talk.gateway.kills,
        fires=tuple(fires),
        executions=schedule.execution_count,
        status=schedule.status,
        runs=len(asked),
        answers=len(answers),
        lines=len(lines),
    )


def _payload(row: Mapping[str, Any]) -> str:
    return json.dumps(row["payload"])


@pytest.mark.parametrize("point", POINTS)
def test_it_runs_and_is_settled_once(
    point: str, schema_templates: Callable[[str], str], tmp_path: Path
) -> None:
    make = on_sqlite(Path(schema_templates("sqlite")), tmp_path, lookup=True)

    async def play() -> Seen:
        return await played(await make("killed"), point)

    assert asyncio.run(play()) == ONCE


@pytest.mark.parametrize("point", POINTS)
async def test_it_runs_and_is_settled_once_on_postgres(point: str, tmp_path: Path) -> None:
    async with on_postgres(postgres_server(), tmp_path) as make:
        assert await played(await make("killed"), point) == ONCE


@pytest.mark.requirement("SCH-5")
@pytest.mark.parametrize("point", RETRY_POINTS)
def test_a_dispatch_that_is_tried_again_is_tried_on_and_runs_once(
    point: str, schema_templates: Callable[[str], str], tmp_path: Path
) -> None:
    make = on_sqlite(Path(schema_templates("sqlite")), tmp_path, lookup=True)

    async def play() -> Seen:
        return await played(await make("killed"), point, crowded=True)

    assert asyncio.run(play()) == ONCE


@pytest.mark.requirement("SCH-5")
@pytest.mark.parametrize("point", RETRY_POINTS)
async def test_a_dispatch_that_is_tried_again_runs_once_on_postgres(
    point: str, tmp_path: Path
) -> None:
    async with on_postgres(postgres_server(), tmp_path) as make:
        assert await played(await make("killed"), point, crowded=True) == ONCE
