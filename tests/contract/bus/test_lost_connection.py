"""What happens when the server, or the way to it, goes: nobody waits, and everybody is told."""

import pytest

from runtime.ports.bus import CANCEL, EVENTS, LIVE, RUNS
from tests.conftest import FailAfter
from tests.contract.bus.world import WAITING, World, take
from tests.contract.store_support import postgres_server

TERMINATE = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE datname = current_database() AND application_name = 'gatehouse bus'"
)


@pytest.mark.requirement("MSG-21")
async def test_after_a_cut_the_readers_are_told_and_signals_flow_again(
    shared_bus: World, fail_after: FailAfter
) -> None:
    here, there = await shared_bus.replica(), await shared_bus.replica()
    witness = await shared_bus.replica()
    async with (
        fail_after(),
        here.bus.subscribe(EVENTS, LIVE) as page,
        here.bus.subscribe(RUNS, CANCEL) as worker,
        there.bus.subscribe(RUNS) as signals,
        witness.bus.subscribe(EVENTS) as seen,
    ):
        here.cut()
        await here.noticed()
        there.bus.publish(EVENTS, {"number": 1})
        assert (await anext(seen)).data == {"number": 1}
        here.mend()
        await here.reconnected()
        for reader, topic in ((page, EVENTS), (worker, RUNS)):
            told = await anext(reader)
            assert (told.topic, told.data, told.gap) == (topic, {}, True)
        there.bus.publish(EVENTS, {"number": 2})
        assert [(one.data, one.gap) for one in await take(page, 1)] == [({"number": 2}, False)]
        here.bus.publish(RUNS, {"number": 3})
        assert (await anext(signals)).data == {"number": 3}


@pytest.mark.requirement("MSG-21")
async def test_a_listener_that_the_database_ends_comes_back(
    own_database: World, fail_after: FailAfter
) -> None:
    here, there = await own_database.replica(), await own_database.replica()
    async with fail_after(), there.bus.subscribe(RUNS) as signals:
        database = own_database.url.rpartition("/")[2]
        await postgres_server().run(TERMINATE, database=database)
        await here.noticed()
        await there.noticed()
        await here.reconnected()
        await there.reconnected()
        assert (await anext(signals)).gap
        here.bus.publish(RUNS, {"number": 1})
        assert (await anext(signals)).data == {"number": 1}


@pytest.mark.requirement("MSG-21")
async def test_publishing_without_a_server_waits_for_nobody_and_is_bounded(
    shared_bus: World, fail_after: FailAfter
) -> None:
    here, there = await shared_bus.replica(short=True), await shared_bus.replica()
    many = 10 * WAITING
    async with (
        fail_after(),
        here.bus.subscribe(RUNS) as ours,
        there.bus.subscribe(RUNS, LIVE) as theirs,
        there.bus.subscribe(EVENTS) as page,
    ):
        here.bus.publish(RUNS, {"number": -1})
        assert (await anext(theirs)).data == {"number": -1}
        here.cut()
        await here.noticed()
        for number in range(many):
            here.bus.publish(RUNS, {"number": number})
        assert [one.data["number"] for one in await take(ours, many + 1)] == list(range(-1, many))
        here.mend()
        await here.reconnected()
        # The newest that fit were kept; whoever missed the others is told, on every topic.
        told, *found = await take(theirs, WAITING + 1)
        assert (told.data, told.gap) == ({}, True)
        assert [one.data["number"] for one in found] == list(range(many - WAITING, many))
        assert (await anext(page)).gap


async def test_a_gateway_starts_without_the_server_and_finds_it_later(
    shared_bus: World, fail_after: FailAfter
) -> None:
    async with fail_after():
        here, there = await shared_bus.replica(whole=False), await shared_bus.replica()
        assert not here.bus.connected
        async with here.bus.subscribe(RUNS) as signals:
            here.bus.publish(RUNS, {"number": 1})
            assert (await anext(signals)).data == {"number": 1}
            here.mend()
            await here.reconnected()
            assert (await anext(signals)).gap
            there.bus.publish(RUNS, {"number": 2})
            assert (await anext(signals)).data == {"number": 2}


async def test_a_gateway_without_the_server_closes_at_once(
    shared_bus: World, fail_after: FailAfter
) -> None:
    async with fail_after():
        here = await shared_bus.replica()
        here.cut()
        await here.noticed()
        here.bus.publish(RUNS, {})
        await here.bus.close()
    assert not here.bus.connected
