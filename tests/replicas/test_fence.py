"""What a replica may still do that was frozen, or whose clock is wrong: nothing that counts.

The replicas are engines in processes of their own that stop themselves at an exact point.
"""

import asyncio
import multiprocessing
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Connection, select

from adapters.system.clock import SystemClock
from runtime.sessions import lanes
from runtime.sessions.tables import audit
from runtime.store import Database, open_database
from runtime.store.tables import leases
from tests.contract.store_support import postgres_server
from tests.crash.judging import MESSAGES
from tests.crash.places import on_postgres
from tests.crash.platform import Kept, Platform, Post
from tests.crash.play import Conversation, Gateway, folder
from tests.crash.process import Kill, Order
from tests.stateful import invariants
from tests.stateful.snapshot import Snapshot

CLOCK = SystemClock()
SKEW_MS = 60_000
LEASE_S = 160.0
"""By the replicas' clock, which runs twenty times as fast: a machine that is full to the brim stops
a process for seconds, and the first replica must hold everything until it is frozen."""
PAUSE_S = LEASE_S * 2 / 3
LEASES = 5
"""Of the process, its roles, the timers, the listener and the deliverer."""
LIMIT_S = 240
"""Against hanging alone."""


class Pair:
    """Two replicas on one database, of which the first holds every lease; and their platform."""

    def __init__(self, orders: tuple[Order, Order], platform: Platform, database: Database) -> None:
        self.orders = orders
        self.platform = platform
        self.database = database
        self.first, self.second = (Gateway(one) for one in orders)
        self.talk = Conversation(platform, self.first, database)
        self.joined = False

    async def said(self, text: str) -> None:
        """Until the first replica has logged this."""
        log = self.orders[0].folder / "log"
        while text not in log.read_text(errors="replace"):
            await CLOCK.sleep(0.05)

    async def heard(self, point: Kill, times: int = 1) -> None:
        """Until a replica has passed a point so many times."""
        while self.platform.points.count(point) < times:
            await CLOCK.sleep(0.02)

    async def join(self, after: Kill) -> None:
        """The second replica, once the first holds every lease and has passed a point."""
        await self.heard((0, "lease:commit"), LEASES)
        await self.heard(after)
        self.joined = True
        await self.second.keep()

    async def unfenced(self) -> int:
        """Sends that were counted as handed over under a lease that was lost."""
        query = select(audit.c.position).where(audit.c.action == "delivery.unfenced")
        return len(await self.database.read(lambda conn: conn.execute(query).all()))

    def cards(self) -> list[Post]:
        """The cards that people see."""
        return [post for post in self.platform.posts if post.text.startswith("card")]


@asynccontextmanager
async def pair(
    path: Path,
    first: Callable[[Order], Order],
    *,
    skew_ms: int = 0,
    after: Kill = (0, "lease:commit"),
) -> AsyncIterator[Pair]:
    """`first` says what the first replica is to do; the second works as it should, and comes when
    the first has passed the point `after`: until then everything is the first one's. No text grows,
    so that every send is of its own."""
    platform = Platform()
    async with on_postgres(postgres_server(), path) as make, platform.serving():
        order = replace(await make("first"), port=platform.port, lease_s=LEASE_S, patience_s=0)
        other = replace(order, folder=folder(path, "second"), skew_ms=skew_ms)
        database = open_database(order.url, clock=CLOCK, pool_size=2)
        await database.start()
        two = Pair((first(order), other), platform, database)
        async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as group:
            keeping = two.talk.keeping = group.create_task(two.first.keep(), name="first")
            await two.heard((0, "lease:commit"), LEASES)
            while not platform.listeners:
                await CLOCK.sleep(0.02)
            beside = group.create_task(two.join(after), name="second")
            try:
                yield two
            finally:
                await two.first.end(keeping)
                if two.joined:
                    await two.second.end(beside)
                beside.cancel()
                await database.close()


def stopping_at(point: Kill) -> Callable[[Order], Order]:
    """A replica that freezes itself at a point."""
    return lambda order: replace(order, kill=point, freeze=True)


async def card(two: Pair, *, said: bool = False) -> Snapshot:
    """A person asks for something that needs an approval, and sees the card; the rows."""
    if not said:
        await two.talk.first_message()
        two.platform.says("m2", MESSAGES[1])
    return await two.talk.until(
        lambda rows: [row["state"] for row in rows.outbox if row["kind"] == "card"] == ["sent"]
    )


@pytest.mark.requirement("SCALE-2", "MSG-11")
async def test_a_replica_frozen_in_front_of_a_send_does_not_send_when_it_wakes_up(
    tmp_path: Path,
) -> None:
    async with pair(tmp_path, stopping_at((2, "outbox-claim:commit"))) as two:
        await card(two)
        assert len(two.cards()) == 1
        two.first.thaw()
        await two.said("lease_lost")
        assert len(two.cards()) == 1
        assert await two.unfenced() == 0


@pytest.mark.requirement("SCALE-2", "MSG-10", "MSG-11")
async def test_a_message_that_waited_for_its_chat_over_a_freeze_is_not_sent_late(
    tmp_path: Path,
) -> None:
    """The wait and the lease are over at the same moment, and the wait is heard of first."""

    def slow(order: Order) -> Order:
        return replace(order, pause_s=PAUSE_S)

    async with pair(tmp_path, slow) as two:
        await two.talk.first_message()
        two.platform.says("m2", MESSAGES[1])
        await two.heard((2, "outbox-claim:commit"))
        two.first.freeze()
        await card(two, said=True)
        two.first.thaw()
        await two.said("delivery_lost")
        await two.said("lease_lost")
        assert len(two.cards()) == 1
        assert await two.unfenced() == 0


@pytest.mark.requirement("SCALE-2", "MSG-11")
async def test_a_post_that_arrived_before_the_freeze_is_found_and_is_one_post(
    tmp_path: Path,
) -> None:
    async with pair(tmp_path, lambda order: order) as two:

        def freeze(kept: Kept) -> bool:
            if kept[1] == "post:kept" and two.cards():
                two.first.freeze()
            return False

        two.platform.on_kept = freeze
        await card(two)
        two.first.thaw()
        await two.said("lease_lost")
        assert len(two.cards()) == 1
        assert await two.unfenced() == 0


@pytest.mark.requirement("SCALE-2", "MSG-11")
async def test_what_no_fence_can_hold_back_is_counted(tmp_path: Path) -> None:
    """It stops between its last look at its lease and the request: nothing inside can help that."""
    async with pair(tmp_path, stopping_at((2, "send:begin"))) as two:
        await card(two)
        two.first.thaw()
        await two.said("delivery_unfenced")
        while not await two.unfenced():
            await CLOCK.sleep(0.05)
        assert len(two.cards()) == 2
        assert await two.unfenced() == 1


@pytest.mark.requirement("SCALE-2", "MSG-7", "MSG-8")
async def test_a_replica_frozen_in_front_of_a_tool_leaves_it_and_writes_nothing_more(
    tmp_path: Path,
) -> None:
    frozen: Kill = (1, "tools-end:begin")
    async with pair(tmp_path, stopping_at(frozen), after=frozen) as two:
        await two.talk.first_message()
        two.first.thaw()
        await two.said("run_lost")
        assert two.orders[0].effects.read_text().split() == ["milk"]
        assert not two.orders[1].effects.exists(), "it began, so nobody runs it again"
        rows = await two.talk.approve(await two.talk.card())
        invariants.check(rows)


@pytest.mark.requirement("SCALE-2", "MSG-9")
async def test_replicas_whose_clocks_are_a_minute_wrong_lose_and_double_nothing(
    tmp_path: Path,
) -> None:
    """Leases are compared by the database's clock, so no replica is early or late by its own."""
    killed: Kill = (1, "claim:commit")

    def behind(order: Order) -> Order:
        return replace(order, skew_ms=-SKEW_MS, kill=killed)

    async with pair(tmp_path, behind, skew_ms=SKEW_MS, after=killed) as two:
        await two.talk.first_message()
        rows = await two.talk.approve(await two.talk.card())
        assert two.first.kills == 1
        texts = [post.text for post in two.platform.posts]
        assert [text.partition(": ")[0] for text in texts] == [MESSAGES[0], "card pay", MESSAGES[1]]
        assert {row["state"] for row in rows.outbox} == {"sent"}
        invariants.check(rows)


@pytest.mark.requirement("SCALE-2", "MSG-9")
async def test_a_replica_whose_clock_is_a_lease_ahead_takes_nothing_from_one_that_lives(
    tmp_path: Path,
) -> None:
    """By its own clock everything that the first holds ran out long ago."""
    ahead_ms = int(LEASE_S * 2000)

    def held(conn: Connection) -> dict[str, tuple[str, int]]:
        return {row.name: (row.holder, row.fence) for row in conn.execute(select(leases))}

    async with pair(tmp_path, lambda order: order, skew_ms=ahead_ms) as two:
        before = await two.database.read(held)
        while len({holder for holder, _ in (await two.database.read(held)).values()}) < 2:
            await CLOCK.sleep(0.05)
        await two.talk.first_message()
        rows = await two.talk.approve(await two.talk.card())
        after = await two.database.read(held)
        assert {name: after[name] for name in before} == before
        assert {row["attempt"] for row in rows.runs} == {0}
        invariants.check(rows)


def _stop_inside(url: str, session_id: str) -> None:
    """A process that freezes in the middle of a unit, with a lane in its hands."""

    def unit(conn: Connection) -> None:
        lanes.lock(conn, session_id)
        os.kill(os.getpid(), signal.SIGSTOP)

    async def run() -> None:
        database = open_database(url, clock=CLOCK)
        await database.start()
        await database.write(unit, name="frozen")

    asyncio.run(run())


@pytest.mark.requirement("SCALE-2", "SCALE-5")
async def test_a_replica_frozen_inside_a_unit_holds_its_lane_for_seconds_only(
    tmp_path: Path,
) -> None:
    async with pair(tmp_path, lambda order: order) as two:
        await two.talk.first_message()
        rows = await two.talk.until(lambda rows: bool(rows.lanes))
        session_id = rows.lanes[0]["session_id"]
        context = multiprocessing.get_context("forkserver")
        frozen = context.Process(target=_stop_inside, args=(two.orders[0].url, session_id))
        frozen.start()
        try:
            await until_locked(two.database, session_id)
            # In the same chat, so that it needs the very lane.
            two.platform.says("m2", MESSAGES[1])
            rows = await card(two, said=True)
            assert len(rows.lanes) == 1
            rows = await two.talk.approve(rows.open_calls[0]["id"])
            assert frozen.is_alive(), "it never gave the lane back by itself"
        finally:
            frozen.kill()
            await asyncio.to_thread(frozen.join)
        assert [row["state"] for row in rows.runs] == ["completed"] * len(MESSAGES)


async def until_locked(database: Database, session_id: str) -> None:
    """Until another unit holds the lane."""

    def free(conn: Connection) -> bool:
        statement = select(lanes.lanes.c.session_id).where(lanes.lanes.c.session_id == session_id)
        return bool(conn.execute(statement.with_for_update(skip_locked=True)).all())

    while await database.write(free, name="look"):
        await CLOCK.sleep(0.05)
