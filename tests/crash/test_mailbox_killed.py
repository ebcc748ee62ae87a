"""A message between agents over a `kill -9` at each side of each unit on its way is read once."""

import asyncio
from collections.abc import Callable, Sequence
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
    "mailbox-send:begin",
    "mailbox-send:commit",
    "tools-end:begin",
    "tools-end:commit",
    "mailbox-settle:begin",
    "mailbox-settle:commit",
)
ASKED, READ = "mail home", "mail home: read"
OVER = frozenset({"completed", "failed", "cancelled", "interrupted"})


class Seen(NamedTuple):
    """How often the gateway died, what was read, and how many messages there are."""

    deaths: int
    reads: int
    messages: Sequence[str]


ONCE = Seen(deaths=1, reads=1, messages=("taken",))


def mails(rows: Snapshot) -> tuple[str, ...]:
    """The states of the inputs that are messages between agents."""
    return tuple(row["state"] for row in rows.inputs if row["identity"].startswith("mail:"))


def came(rows: Snapshot) -> bool:
    """Whether the message was read, and nothing is at work any more."""
    settled = all(run["state"] in OVER for run in rows.runs)
    sent = all(row["state"] == "sent" for row in rows.outbox)
    dead_or_read = [event["kind"] for event in rows.events if event["kind"] == "mail.delivered"]
    return mails(rows) == ("taken",) and settled and sent and len(dead_or_read) == 1


async def posted(order: Order) -> Seen:
    platform = Platform()
    async with conversation(order, platform) as talk:
        platform.says("m1", ASKED)
        await talk.died(1)
        await talk.until(came)
        texts = [post.text for post in platform.posts]
        kept: list[tuple[str, ...]] = []

        def keep(rows: Snapshot) -> bool:
            kept.append(mails(rows))
            return True

        await talk.until(keep)
        return Seen(talk.gateway.kills, sum(READ in text for text in texts), kept[-1])


def dying(order: Order, point: str) -> Order:
    """The order to die the first time that it gets there."""
    return replace(order, kill=(ANY_PHASE, point), patience_s=0.0, mail=True)


@pytest.mark.requirement("MBX-2", "MBX-3")
@pytest.mark.parametrize("point", POINTS)
def test_it_is_read_once(
    point: str, schema_templates: Callable[[str], str], tmp_path: Path
) -> None:
    make = on_sqlite(Path(schema_templates("sqlite")), tmp_path, lookup=True)

    async def play() -> Seen:
        return await posted(dying(await make("killed"), point))

    assert asyncio.run(play()) == ONCE


@pytest.mark.requirement("MBX-2", "MBX-3")
@pytest.mark.parametrize("point", POINTS)
async def test_it_is_read_once_on_postgres(point: str, tmp_path: Path) -> None:
    async with on_postgres(postgres_server(), tmp_path) as make:
        assert await posted(dying(await make("killed"), point)) == ONCE
