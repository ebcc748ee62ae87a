"""What the buses of several replicas promise: all hear, once, in order, whatever the size."""

import pytest

from runtime.ports.bus import EVENTS, LIVE, OUTBOX, RUNS
from tests.conftest import FailAfter
from tests.contract.bus.world import World, delta, read_text, take

BURST = 10_000
SLICE = 1_000
LETTERS = 'Grüße, 你好, שלום 🌍 \\ " \n'


async def test_each_replica_hears_the_others_and_itself_once(
    shared_bus: World, fail_after: FailAfter
) -> None:
    here, there = (await shared_bus.replica()).bus, (await shared_bus.replica()).bus
    async with fail_after(), here.subscribe(RUNS) as ours, there.subscribe(RUNS) as theirs:
        here.publish(RUNS, {"from": "here"})
        assert (await anext(theirs)).data == {"from": "here"}
        there.publish(RUNS, {"from": "there"})
        # An echo of the first signal would have come in front of the answer to it.
        assert [one.data["from"] for one in await take(ours, 2)] == ["here", "there"]
        here.publish(RUNS, {"from": "here again"})
        assert [one.data["from"] for one in await take(theirs, 2)] == ["there", "here again"]


async def test_a_publisher_is_heard_in_its_order(shared_bus: World, fail_after: FailAfter) -> None:
    here, there = (await shared_bus.replica()).bus, (await shared_bus.replica()).bus
    async with fail_after(), there.subscribe(EVENTS, OUTBOX) as signals:
        for start in range(0, BURST, SLICE):
            for number in range(start, start + SLICE):
                here.publish(OUTBOX if number % 3 else EVENTS, {"number": number})
            found = await take(signals, SLICE)
            assert [one.data["number"] for one in found] == list(range(start, start + SLICE))
            assert not any(one.gap for one in found)


async def test_deployments_on_one_server_do_not_hear_each_other(
    shared_bus: World, fail_after: FailAfter
) -> None:
    ours = (await shared_bus.replica(deployment="ours")).bus
    other = (await shared_bus.replica(deployment="other")).bus
    theirs = (await shared_bus.replica(deployment="other")).bus
    async with fail_after(), theirs.subscribe(RUNS) as signals:
        ours.publish(RUNS, {"from": "ours"})
        await ours.close()
        other.publish(RUNS, {"from": "other"})
        assert (await anext(signals)).data == {"from": "other"}


@pytest.mark.requirement("MSG-21")
async def test_a_signal_longer_than_a_payload_arrives_whole(
    shared_bus: World, fail_after: FailAfter
) -> None:
    here, there = (await shared_bus.replica()).bus, (await shared_bus.replica()).bus
    parts = [LETTERS * 40 + str(number) for number in range(40)]
    async with fail_after(), there.subscribe(LIVE) as signals:
        here.publish(LIVE, {"type": "message", "parts": list(parts)})
        here.publish(LIVE, {"type": "activity"})
        first, second = await take(signals, 2)
    assert first.data == {"type": "message", "parts": parts}
    assert second.data == {"type": "activity"}
    assert not first.gap
    assert not second.gap


@pytest.mark.requirement("MSG-21")
async def test_a_long_text_arrives_in_pieces_at_their_offsets(
    shared_bus: World, fail_after: FailAfter
) -> None:
    here, there = (await shared_bus.replica()).bus, (await shared_bus.replica()).bus
    text = LETTERS * 2_000
    async with fail_after(), there.subscribe(LIVE) as signals:
        here.publish(LIVE, delta(0, text))
        found, count = await read_text(signals, len(text))
    assert found == text
    assert count > 1


async def test_text_that_waits_is_joined_for_the_others_only(
    shared_bus: World, fail_after: FailAfter
) -> None:
    here, there = (await shared_bus.replica()).bus, (await shared_bus.replica()).bus
    words = [f"word{number} " for number in range(500)]
    text = "".join(words)
    async with fail_after(), here.subscribe(LIVE) as ours, there.subscribe(LIVE) as theirs:
        offset = 0
        for word in words:
            here.publish(LIVE, delta(offset, word))
            offset += len(word)
        assert await read_text(ours, len(text)) == (text, 500)
        found, count = await read_text(theirs, len(text))
    assert found == text
    assert count < 50


async def test_closing_sends_what_waits(shared_bus: World, fail_after: FailAfter) -> None:
    here, there = (await shared_bus.replica()).bus, (await shared_bus.replica()).bus
    async with fail_after(), there.subscribe(RUNS) as signals:
        for number in range(1_000):
            here.publish(RUNS, {"number": number})
        await here.close()
        found = await take(signals, 1_000)
    assert [one.data["number"] for one in found] == list(range(1_000))
