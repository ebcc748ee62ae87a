"""The connection's life: trying again, asking a silent server, giving up what cannot be known."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import pytest

from runtime.bus import replicated
from runtime.bus.replicated import HEARTBEAT_S, ReplicatedBus
from runtime.bus.signal_format import Decoder, Encoder, to_json
from runtime.domain.errors import Unavailable
from runtime.ports.bus import RUNS, Signal
from runtime.process import supervisor
from tests.conftest import FailAfter
from tests.fakes.clock import FakeClock, settle


class FakeLink:
    """Keeps what is sent."""

    max_bytes = 7_999

    def __init__(self, received: Callable[[str], None], lost: Callable[[], None]) -> None:
        self.received = received
        self.lost = False
        self.closed = False
        self.dead = False
        self.confused = False
        self.hangs = False
        self.trips: list[list[str]] = []
        self._lost = lost

    async def send(self, payloads: Sequence[str]) -> None:
        self.trips.append(list(payloads))
        if self.hangs:
            await asyncio.Event().wait()
        if self.dead:
            raise Unavailable("no answer")
        if self.confused:
            raise RuntimeError("cannot switch to state 15; another operation (2) is in progress")

    async def close(self) -> None:
        self.closed = True

    def lose(self) -> None:
        self.lost = True
        self._lost()


class FakeLinker:
    """Opens links, unless it is out of order."""

    server = "fake:1"

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.attempts = 0
        self.links: list[FakeLink] = []

    async def open(self, received: Callable[[str], None], lost: Callable[[], None]) -> FakeLink:
        self.attempts += 1
        if self.error is not None:
            raise self.error
        self.links.append(FakeLink(received, lost))
        return self.links[-1]


class World:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.linker = FakeLinker()
        self.bus = ReplicatedBus(self.linker, self.clock)

    @property
    def link(self) -> FakeLink:
        return self.linker.links[-1]

    @asynccontextmanager
    async def started(self) -> AsyncIterator["World"]:
        await self.bus.start()
        try:
            yield self
        finally:
            await self.bus.close()


def sent(links: Sequence[FakeLink]) -> tuple[list[object], int]:
    """The numbers of the signals that another replica got, and how often it saw a gap."""
    decoder = Decoder("me")
    found = [decoder.feed(payload) for link in links for trip in link.trips for payload in trip]
    signals = [one.signal for one in found if one.signal is not None]
    return [one.data["number"] for one in signals], sum(one.gap for one in found)


async def test_signals_that_wait_go_in_one_round_trip() -> None:
    async with World().started() as world:
        for number in range(50):
            world.bus.publish(RUNS, {"number": number})
        await settle()
        assert [len(trip) for trip in world.link.trips] == [50]
        assert sent(world.linker.links) == (list(range(50)), 0)


async def test_attempts_grow_rarer_and_begin_again_after_a_success() -> None:
    world = World()
    world.linker.error = Unavailable("nobody there")
    async with world.started():
        at = []
        for _ in range(240):
            before = world.linker.attempts
            await world.clock.advance(0.25)
            if world.linker.attempts > before:
                at.append(world.clock.monotonic())
        assert at == [0.25, 0.75, 1.75, 3.75, 7.75, 15.75, 30.75, 45.75]
        world.linker.error = None
        await world.clock.advance(15)
        assert world.bus.connected
        world.link.lose()
        await settle()
        assert not world.bus.connected
        await world.clock.advance(0.25)
        assert world.bus.connected
        assert world.linker.links[0].closed


@pytest.mark.requirement("MSG-21")
async def test_a_driver_that_fails_in_a_way_of_its_own_makes_no_replica_deaf() -> None:
    async with World().started() as world:
        world.link.confused = True
        world.bus.publish(RUNS, {"number": 1})
        await settle()
        assert not world.bus.connected
        await world.clock.advance(supervisor.FIRST_DELAY_S + replicated.FIRST_DELAY_S)
        assert world.bus.connected
        world.bus.publish(RUNS, {"number": 2})
        await settle()
        assert sent([world.link])[0] == [2]


async def test_a_silent_server_is_asked_and_left_if_it_does_not_answer() -> None:
    async with World().started() as world:
        first = world.link
        await world.clock.advance(HEARTBEAT_S)
        assert first.trips == [[]]
        first.dead = True
        await world.clock.advance(HEARTBEAT_S)
        assert first.trips == [[], []]
        assert first.closed
        await world.clock.advance(0.25)
        assert world.link is not first
        assert world.bus.connected


async def test_a_busy_server_is_not_asked() -> None:
    async with World().started() as world:
        for number in range(4):
            await world.clock.advance(HEARTBEAT_S * 0.6)
            world.bus.publish(RUNS, {"number": number})
            await settle()
        assert all(world.link.trips)


@pytest.mark.requirement("MSG-21")
async def test_what_was_on_its_way_is_not_sent_twice_but_seen_as_lost() -> None:
    async with World().started() as world:
        world.bus.publish(RUNS, {"number": 0})
        await settle()
        world.link.dead = True
        world.bus.publish(RUNS, {"number": 1})
        await settle()
        # Nobody knows whether it arrived; here it did not.
        world.link.trips.pop()
        world.bus.publish(RUNS, {"number": 2})
        await world.clock.advance(0.25)
        assert sent(world.linker.links) == ([0, 2], 1)


@pytest.mark.requirement("MSG-21")
async def test_a_hole_in_what_another_sends_is_told_to_every_reader(fail_after: FailAfter) -> None:
    other = Encoder()
    bodies = [to_json(Signal(topic=RUNS, data={"number": number})) for number in range(3)]
    first, _, third = (other.encode(body, 7_999)[0] for body in bodies)
    async with (
        fail_after(),
        World().started() as world,
        world.bus.subscribe(RUNS) as runs,
        world.bus.subscribe("events", "live") as page,
    ):
        for payload in (first, "not a payload", third):
            world.link.received(payload)
        found = [await anext(runs) for _ in range(3)]
        assert [(one.data.get("number"), one.gap) for one in found] == [
            (0, False),
            (None, True),
            (2, False),
        ]
        assert await anext(page) == Signal(topic="events", data={}, gap=True)


@pytest.mark.requirement("MSG-21")
async def test_a_reader_is_told_once_of_losses_it_has_not_read(fail_after: FailAfter) -> None:
    async with fail_after(), World().started() as world, world.bus.subscribe(RUNS) as runs:
        for _ in range(3):
            world.link.lose()
            await world.clock.advance(0.25)
        world.bus.publish(RUNS, {"number": 1})
        assert (await anext(runs)).gap
        assert (await anext(runs)).data == {"number": 1}


async def test_closing_does_not_wait_for_a_server_that_hangs(
    monkeypatch: pytest.MonkeyPatch, fail_after: FailAfter
) -> None:
    monkeypatch.setattr(replicated, "CLOSE_S", 0.01)
    async with fail_after():
        async with World().started() as world:
            world.link.hangs = True
            world.bus.publish(RUNS, {"number": 1})
            await settle()
        assert world.link.closed
        assert not world.bus.connected


async def test_a_mistake_in_the_configuration_is_told_at_the_start(fail_after: FailAfter) -> None:
    world = World()
    world.linker.error = ModuleNotFoundError("No module named 'asyncpg'")
    async with fail_after():
        with pytest.raises(ModuleNotFoundError):
            await world.bus.start()
