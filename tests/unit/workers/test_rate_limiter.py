"""Token buckets: bursts, rates, the silence that a platform asked for (MSG-10)."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.delivery.rate_limiter import KEEPS_S, Buckets, TokenBucket
from tests.fakes.clock import FakeClock, settle


def bucket(rate: float = 1.0, burst: int = 3) -> TokenBucket:
    return TokenBucket.full(FakeClock(), rate=rate, burst=burst)


@pytest.mark.requirement("MSG-10")
def test_a_burst_is_free_and_then_the_rate_holds() -> None:
    full = bucket(rate=2.0, burst=3)
    assert [full.take(0.0) for _ in range(5)] == [0.0, 0.0, 0.0, 0.5, 1.0]


@pytest.mark.requirement("MSG-10")
def test_tokens_come_back_with_time_up_to_the_burst() -> None:
    full = bucket(rate=1.0, burst=2)
    assert [full.take(0.0), full.take(0.0), full.take(0.0)] == [0.0, 0.0, 1.0]
    assert full.take(2.0) == 0.0
    assert [full.take(1000.0) for _ in range(3)] == [0.0, 0.0, 1.0]


@pytest.mark.requirement("MSG-10")
def test_a_blocked_bucket_is_silent_for_as_long_as_was_asked() -> None:
    full = bucket(rate=1.0, burst=5)
    full.block(0.0, 30.0)
    assert full.take(0.0) >= 30.0
    later = bucket(rate=1.0, burst=5)
    later.block(0.0, 30.0)
    assert later.take(29.0) >= 1.0
    assert later.take(60.0) == 0.0


def test_a_bucket_may_be_forgotten_only_when_it_is_full() -> None:
    full = bucket(rate=1.0, burst=2)
    assert full.is_full(0.0)
    full.take(0.0)
    assert not full.is_full(0.5)
    assert full.is_full(1.0)


@pytest.mark.requirement("MSG-10")
@given(
    st.lists(st.floats(min_value=0, max_value=5), min_size=1, max_size=40),
    st.floats(min_value=0.1, max_value=50),
    st.integers(min_value=1, max_value=10),
)
def test_no_span_holds_more_than_its_burst_and_its_rate(
    gaps: list[float], rate: float, burst: int
) -> None:
    full, now, sent = bucket(rate, burst), 0.0, []
    for gap in gaps:
        now += gap
        sent.append(now + full.take(now))
    for first in range(len(sent)):
        for last in range(first, len(sent)):
            span = max(sent[last] - sent[first], 0.0)
            assert last - first + 1 <= burst + rate * span + 1 + 1e-6


@pytest.mark.requirement("MSG-10")
async def test_a_message_waits_for_its_chat_and_for_its_account() -> None:
    clock = FakeClock()
    buckets = Buckets(clock, chat=(1.0, 1), account=(10.0, 2))
    sent: list[tuple[str, float]] = []

    async def send(chat: str) -> None:
        await buckets.take(chat)
        sent.append((chat, clock.monotonic()))

    async with asyncio.TaskGroup() as group:
        for chat in ("a", "a", "b", "c"):
            group.create_task(send(chat), name=chat)
        await settle()
        assert sent == [("a", 0.0), ("b", 0.0)], "what waits for its chat holds no token of others"
        await clock.advance(5.0)
    times = dict(sent[2:])
    assert times["a"] == pytest.approx(1.0)
    assert times["c"] == pytest.approx(0.1)


@pytest.mark.requirement("MSG-10")
async def test_a_blocked_chat_leaves_the_others_free() -> None:
    clock = FakeClock()
    buckets = Buckets(clock, chat=(1.0, 1), account=(100.0, 100))
    buckets.block("a", 60.0)
    await buckets.take("b")
    assert clock.monotonic() == 0.0
    waiting = asyncio.create_task(buckets.take("a"), name="a")
    await clock.advance(59.9)
    assert not waiting.done()
    await clock.advance(2.0)
    assert waiting.done()


@pytest.mark.requirement("MSG-10")
async def test_a_signal_never_takes_the_last_token_from_a_message() -> None:
    clock = FakeClock()
    buckets = Buckets(clock, chat=(1.0, 5), account=(1.0, 3))
    assert [buckets.spare() for _ in range(4)] == [True, True, False, False]
    await buckets.take("a")
    assert clock.monotonic() == 0.0
    await clock.advance(2.0)
    assert buckets.spare()


@pytest.mark.requirement("MSG-10")
async def test_an_edit_takes_no_token_that_a_message_waits_for_or_would_need() -> None:
    clock = FakeClock()
    buckets = Buckets(clock, chat=(1.0, 3), account=(100.0, 100))
    assert [buckets.spare_for("a") for _ in range(3)] == [True, True, False]
    await buckets.take("a")
    assert clock.monotonic() == 0.0, "the last token was left for the message"
    waiting = asyncio.create_task(buckets.take("a"), name="a")
    await clock.advance(0.5)
    assert not buckets.spare_for("a"), "a message waits"
    await clock.advance(0.6)
    assert waiting.done()


@pytest.mark.requirement("MSG-10")
async def test_groups_are_held_to_their_own_rate() -> None:
    clock = FakeClock()
    buckets = Buckets(clock, chat=(10.0, 1), group=(0.5, 1), account=(100.0, 100))
    for chat, group in (("d", False), ("g", True)):
        await buckets.take(chat, group=group)
    waiting = asyncio.create_task(buckets.take("g", group=True), name="g")
    await clock.advance(1.9)
    assert not waiting.done()
    await clock.advance(0.2)
    assert waiting.done()


@pytest.mark.requirement("MSG-10")
async def test_a_refused_message_keeps_its_place_and_not_for_ever() -> None:
    clock = FakeClock()
    buckets = Buckets(clock, chat=(100.0, 100), account=(1.0, 1))
    order: list[str] = []

    async def send(chat: str, message: str) -> None:
        await buckets.take(chat, message=message)
        order.append(message)

    await buckets.take("old", message="refused")
    await clock.advance(1.0)
    await buckets.take("z", message="last")
    async with asyncio.TaskGroup() as group:
        group.create_task(send("new", "new"), name="new")
        await settle()
        group.create_task(send("old", "refused"), name="refused")
        await clock.advance(3.0)
    assert order == ["refused", "new"], "it asked before the other did"


@pytest.mark.requirement("MSG-10")
async def test_a_chat_that_is_refused_for_ever_holds_nobody_up_for_longer_than_its_place() -> None:
    clock = FakeClock()
    buckets = Buckets(clock, chat=(100.0, 100), account=(1.0, 1))
    await buckets.take("old", message="refused")

    async def again_and_again() -> None:
        while True:
            await buckets.take("old", message="refused")

    await clock.advance(60.0)
    greedy = asyncio.create_task(again_and_again(), name="refused")
    fresh = asyncio.create_task(buckets.take("fresh", message="fresh"), name="fresh")
    await clock.advance(KEEPS_S + 3.0)
    assert fresh.done()
    greedy.cancel()
    await asyncio.wait([greedy])


@pytest.mark.requirement("MSG-10")
async def test_whoever_gives_up_waiting_holds_nobody_up() -> None:
    clock = FakeClock()
    buckets = Buckets(clock, chat=(100.0, 100), account=(1.0, 1))
    await buckets.take("a")
    first = asyncio.create_task(buckets.take("b"), name="b")
    second = asyncio.create_task(buckets.take("c"), name="c")
    await settle()
    first.cancel()
    await clock.advance(1.1)
    assert second.done()
    assert first.cancelled()
