"""What every bus promises the parts of one process."""

import asyncio

import pytest

from runtime.ports.bus import CANCEL, EVENTS, RUNS
from tests.conftest import FailAfter
from tests.contract.bus.world import World, at_once, take


@pytest.mark.requirement("MSG-21")
async def test_a_signal_is_there_at_once(any_bus: World) -> None:
    bus = (await any_bus.replica()).bus
    async with bus.subscribe(RUNS) as signals:
        bus.publish(RUNS, {"session_id": "ses_1"})
        # A wake-up of one's own needs no server.
        signal = at_once(signals)
    assert signal is not None
    assert (signal.topic, signal.data, signal.gap) == (RUNS, {"session_id": "ses_1"}, False)


async def test_signals_keep_the_order_of_publishing(any_bus: World, fail_after: FailAfter) -> None:
    bus = (await any_bus.replica()).bus
    async with fail_after(), bus.subscribe(EVENTS, RUNS) as signals:
        for number in range(200):
            bus.publish(EVENTS if number % 2 else RUNS, {"number": number})
        found = await take(signals, 200)
    assert [signal.data["number"] for signal in found] == list(range(200))


async def test_a_reader_gets_its_topics_only(any_bus: World, fail_after: FailAfter) -> None:
    bus = (await any_bus.replica()).bus
    async with fail_after(), bus.subscribe(RUNS) as runs, bus.subscribe(CANCEL) as stops:
        bus.publish(CANCEL, {"run_id": "run_1"})
        bus.publish(RUNS, {})
        assert (await anext(runs)).topic == RUNS
        assert (await anext(stops)).data == {"run_id": "run_1"}


@pytest.mark.requirement("MSG-21")
async def test_a_slow_reader_loses_the_oldest_and_is_told(
    any_bus: World, fail_after: FailAfter
) -> None:
    bus = (await any_bus.replica()).bus
    async with fail_after(), bus.subscribe(EVENTS, limit=3) as slow, bus.subscribe(EVENTS) as quick:
        for number in range(5):
            bus.publish(EVENTS, {"number": number})
        seen = [(one.data["number"], one.gap) for one in await take(slow, 3)]
        whole = [(one.data["number"], one.gap) for one in await take(quick, 5)]
        bus.publish(EVENTS, {"number": 5})
        assert not (await anext(slow)).gap
    assert seen == [(2, True), (3, False), (4, False)]
    assert whole == [(number, False) for number in range(5)]


async def test_a_reader_that_left_hinders_nobody(any_bus: World, fail_after: FailAfter) -> None:
    bus = (await any_bus.replica()).bus
    async with fail_after(), bus.subscribe(RUNS) as stays:
        async with bus.subscribe(RUNS) as leaves:
            bus.publish(RUNS, {"number": 1})
            assert (await anext(leaves)).data == {"number": 1}
        bus.publish(RUNS, {"number": 2})
        assert [one.data for one in await take(stays, 2)] == [{"number": 1}, {"number": 2}]
        assert at_once(leaves) is None


async def test_a_reader_hears_nothing_from_before_it_came(
    any_bus: World, fail_after: FailAfter
) -> None:
    bus = (await any_bus.replica()).bus
    bus.publish(RUNS, {"number": 1})
    async with fail_after(), bus.subscribe(RUNS) as signals:
        bus.publish(RUNS, {"number": 2})
        assert (await anext(signals)).data == {"number": 2}


async def test_a_bus_says_that_it_is_connected(any_bus: World) -> None:
    assert (await any_bus.replica()).bus.connected


async def test_closing_ends_its_tasks_and_publishing_goes_on_harmlessly(
    any_bus: World, fail_after: FailAfter
) -> None:
    before = asyncio.all_tasks()
    replica = await any_bus.replica()
    names = {task.get_name() for task in asyncio.all_tasks() - before}
    assert "bus" in names or any_bus.kind == "memory"
    async with fail_after():
        await replica.bus.close()
        await replica.bus.close()
    after = {task.get_name() for task in asyncio.all_tasks()}
    assert not any(name.startswith("bus ") for name in after)
    replica.bus.publish(RUNS, {})
