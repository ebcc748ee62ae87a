"""A reminder over a `kill -9` at each side of the unit that fires it: it comes, and comes once."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.contract.store_support import postgres_server, schema_templates
from tests.crash.places import on_postgres, on_sqlite
from tests.crash.platform import Platform
from tests.crash.play import conversation
from tests.crash.process import ANY_PHASE, Order
from tests.stateful.snapshot import Snapshot

__all__ = ["schema_templates"]

POINTS = (
    "accept:begin",
    "accept:commit",
    "schedule-fire:begin",
    "schedule-fire:commit",
)
ASKED, COMES = "/remind in 2 seconds: tea", "Reminder: tea"


class Seen(NamedTuple):
    """How often the gateway died, and how many reminders and other posts people saw."""

    deaths: int
    reminders: int
    others: int


ONCE = Seen(deaths=1, reminders=1, others=1)
"""The other one is the answer to the word."""


def came(rows: Snapshot) -> bool:
    """Whether one is out, and nothing is on its way any more."""
    words = [json.loads(row["message"])["parts"][0]["markdown"] for row in rows.outbox]
    return any(comes(one) for one in words) and all(row["state"] == "sent" for row in rows.outbox)


def comes(text: str) -> bool:
    """Whether a text is the reminder. On a busy machine a restart lasts a minute of the fast clock,
    and then the reminder says too when it was due."""
    return text == COMES or text.startswith(f"{COMES}\n\nIt was due on ")


async def reminded(order: Order) -> Seen:
    platform = Platform()
    async with conversation(order, platform) as talk:
        platform.says("m1", ASKED)
        await talk.until(came)
        await talk.died(1)
        await talk.until(came)
        texts = [post.text for post in platform.posts]
        reminders = sum(comes(text) for text in texts)
        return Seen(talk.gateway.kills, reminders, len(texts) - reminders)


def dying(order: Order, point: str) -> Order:
    """The order to die the first time that it gets there."""
    return replace(order, kill=(ANY_PHASE, point), patience_s=0.0)


@pytest.mark.requirement("SCH-4")
@pytest.mark.parametrize("point", POINTS)
def test_it_comes_once(point: str, schema_templates: Callable[[str], str], tmp_path: Path) -> None:
    make = on_sqlite(Path(schema_templates("sqlite")), tmp_path, lookup=True)

    async def play() -> Seen:
        return await reminded(dying(await make("killed"), point))

    assert asyncio.run(play()) == ONCE


@pytest.mark.requirement("SCH-4")
def test_one_that_is_late_by_the_time_of_a_restart_is_known_as_the_same(
    schema_templates: Callable[[str], str], tmp_path: Path
) -> None:
    """A minute of this clock passes in a tenth of a second, so the restart always is as long."""
    make = on_sqlite(Path(schema_templates("sqlite")), tmp_path, lookup=True)

    async def play() -> Seen:
        order = replace(await make("late"), rate=600, lease_s=1800.0)
        return await reminded(dying(order, "schedule-fire:begin"))

    assert asyncio.run(play()) == ONCE


@pytest.mark.requirement("SCH-4")
@pytest.mark.parametrize("point", POINTS)
async def test_it_comes_once_on_postgres(point: str, tmp_path: Path) -> None:
    async with on_postgres(postgres_server(), tmp_path) as make:
        assert await reminded(dying(await make("killed"), point)) == ONCE
