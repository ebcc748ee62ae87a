"""A growing text whose lease is lost while the platform has it in hand (REN-4, MSG-11)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from runtime.delivery.rate_limiter import Buckets
from runtime.delivery.throttled_edits import GrowingText, Showing
from runtime.domain.errors import DeliveryError, DeliveryRejected, DeliveryRetry, DeliveryUnknown
from runtime.domain.runs import Holder
from runtime.process.wakeup import Wake
from runtime.sessions.outbox import OutboxRow, Stream
from runtime.sessions.tables import outbox as outbox_rows
from tests.fakes.chat import FAST, FakeChat, FakeStreams
from tests.fakes.model import Gate
from tests.scenario.posting import WORKER, Post, post
from tests.support import audit_log

HALF = "The first half of what is to be said, "
KNOWN = Stream("test-1")


class Frozen:
    """One text under way to its platform, by a worker that may have lost the lease."""

    def __init__(self, at: Post, row: OutboxRow) -> None:
        self.at, self.row, self.held = at, row, True
        self.chat = FakeChat(capabilities=FAST)
        self.streams = FakeStreams(self.chat)
        self.chat.streams = self.streams
        self.gate = Gate()
        self.text = GrowingText(
            "run_1", row.message.target, 0.0, Wake(at.clock), row=row, stream=row.stream
        )
        self.text.take(0, 0, HALF, 0.0)
        buckets = Buckets(at.clock, chat=(1.0, 5), group=(1.0, 5), account=(10.0, 20))
        holder = Holder(WORKER, row.fence or 0)
        self.showing = Showing(self.chat, at.services, buckets, holder, lambda: self.held)
        self.task = asyncio.create_task(self.showing.show(self.text), name="show")

    async def counted(self) -> list[dict[str, object]]:
        """What the audit log has of requests that no fence reached."""
        found = await self.at.database.read(audit_log.entries)
        return [one.data for one in found if one.action == "delivery.unfenced"]


async def claimed(one: Frozen) -> None:
    """The row is this worker's in the database, and its post is not known."""
    mine = {"state": "streaming", "worker": WORKER, "fence": 0}
    change = outbox_rows.update().values(mine)
    await one.at.database.write(lambda conn: conn.execute(change).rowcount, name="claim")


@asynccontextmanager
async def growing(path: Path, stream: Stream) -> AsyncIterator[Frozen]:
    """A text whose post is `stream`; its next request waits at the gate."""
    async with post(path) as at:
        row = await at.row(await at.put("a reply"))
        one = Frozen(at, replace(row, stream=stream))
        one.chat.post(row.message)
        one.streams.hold = {"grow": one.gate.wait, "open": one.gate.wait}
        try:
            yield one
        finally:
            one.task.cancel()
            await asyncio.wait([one.task])


@pytest.mark.requirement("REN-4", "MSG-11")
async def test_a_half_text_that_went_out_under_a_lost_lease_is_counted(tmp_path: Path) -> None:
    async with growing(tmp_path, KNOWN) as one:
        await one.at.until(one.gate.reached.is_set)
        one.held = False
        one.gate.open.set()
        await one.task
        assert one.chat.texts() == [HALF]
        (counted,) = await one.counted()
        assert (counted["outbox_id"], counted["posted"]) == (one.row.message.outbox_id, [])
        assert one.text.given_up


@pytest.mark.requirement("REN-4", "MSG-11")
@pytest.mark.parametrize("operation", ["grow", "open"])
async def test_a_request_that_the_lost_lease_cancels_is_counted(
    tmp_path: Path, operation: str
) -> None:
    async with growing(tmp_path, KNOWN) as one:
        if operation == "open":
            one.text.row, one.text.stream = replace(one.row, stream=None), Stream()
        await one.at.until(one.gate.reached.is_set)
        assert [name for name, _ in one.streams.calls] == [operation]
        one.held = False
        one.task.cancel()
        await asyncio.wait([one.task])
        assert one.task.cancelled()
        (counted,) = await one.counted()
        assert counted["posted"] == []


@pytest.mark.requirement("REN-4", "MSG-11")
async def test_a_request_of_unknown_end_is_counted_where_the_lease_is_lost(tmp_path: Path) -> None:
    async with growing(tmp_path, KNOWN) as one:
        one.streams.failures["grow"] = [DeliveryUnknown("time-out")]
        await one.at.until(one.gate.reached.is_set)
        one.held = False
        one.gate.open.set()
        await one.task
        assert len(await one.counted()) == 1


@pytest.mark.requirement("REN-4", "MSG-11")
@pytest.mark.parametrize("refused", [DeliveryRejected("gone"), DeliveryRetry("429")])
async def test_what_the_platform_refused_is_not_counted(
    tmp_path: Path, refused: DeliveryRejected | DeliveryRetry
) -> None:
    async with growing(tmp_path, KNOWN) as one:
        one.streams.failures["grow"] = [refused]
        await one.at.until(one.gate.reached.is_set)
        one.held = False
        one.gate.open.set()
        await one.at.until(one.task.done)
        assert await one.counted() == []


@pytest.mark.requirement("REN-4")
async def test_under_a_lease_that_is_held_nothing_is_counted(tmp_path: Path) -> None:
    async with growing(tmp_path, KNOWN) as one:
        await one.at.until(one.gate.reached.is_set)
        one.gate.open.set()
        await one.at.until(lambda: one.text.shown == HALF)
        one.text.over = True
        one.text.wake.set()
        await one.task
        assert await one.counted() == []


@pytest.mark.requirement("REN-4")
@pytest.mark.parametrize("failure", [None, DeliveryRetry("later"), DeliveryUnknown("time-out")])
async def test_what_a_post_shows_is_known_once_the_platform_has_answered(
    tmp_path: Path, failure: DeliveryError | None
) -> None:
    async with growing(tmp_path, KNOWN) as one:
        one.text.standing = "what stood there before"
        one.streams.failures["grow"] = [] if failure is None else [failure]
        await one.at.until(one.gate.reached.is_set)
        assert one.text.standing is None
        one.text.over = True
        one.gate.open.set()
        await one.task
        assert one.text.standing == (HALF if failure is None else None)


@pytest.mark.requirement("REN-4", "MSG-11")
async def test_a_lease_that_is_lost_while_the_post_is_looked_up_sends_nothing(
    tmp_path: Path,
) -> None:
    async with growing(tmp_path, Stream()) as one:
        one.gate.open.set()
        looked = Gate()
        one.streams.hold["find"] = looked.wait
        await claimed(one)
        await one.at.until(looked.reached.is_set)
        one.held = False
        looked.open.set()
        await one.task
        assert [name for name, _ in one.streams.calls] == ["find"]
        assert one.chat.texts() == ["a reply"]
        assert await one.counted() == []


@pytest.mark.requirement("REN-4", "MSG-11")
async def test_what_a_post_shows_that_was_not_found_is_not_known(tmp_path: Path) -> None:
    async with growing(tmp_path, Stream()) as one:
        one.streams.finds = False
        await claimed(one)
        await one.at.until(lambda: one.text.given_up)
        one.text.over = True
        await one.task
        assert [name for name, _ in one.streams.calls] == ["find"]
        assert one.text.standing is None
