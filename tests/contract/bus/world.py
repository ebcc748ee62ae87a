"""Replicas of one deployment on one bus, as the tests of the bus see them."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from runtime.bus.memory import MemoryBus
from runtime.bus.nats import NatsBus
from runtime.bus.postgres import PostgresBus
from runtime.bus.replicated import LONGEST_DELAY_S, ReplicatedBus
from runtime.bus.signal_queue import MAX_WAITING
from runtime.domain.value import JsonObject
from runtime.ports.bus import LIVE, Signal
from tests.contract.bus.cable import Cable
from tests.fakes.clock import FakeClock, settle

WAITING = 100
"""How many signals may wait in a replica whose queue is `short`."""


@dataclass(eq=False)
class Replica:
    """A bus and its way to the server."""

    bus: MemoryBus | ReplicatedBus
    clock: FakeClock
    cable: Cable | None = None

    def cut(self) -> None:
        assert self.cable is not None
        self.cable.cut()

    def mend(self) -> None:
        assert self.cable is not None
        self.cable.mend()

    async def noticed(self) -> None:
        """Return when the bus knows that its connection is gone."""
        while self.bus.connected:
            await settle()

    async def reconnected(self) -> None:
        """Return when it has a new one; the waits in between are not waited for."""
        while not self.bus.connected:
            await self.clock.advance(LONGEST_DELAY_S)


@dataclass(eq=False)
class World:
    """Makes replicas of a kind of bus."""

    kind: str
    url: str
    deployment: str = "gatehouse"
    clock: FakeClock = field(default_factory=FakeClock)
    replicas: list[Replica] = field(default_factory=list)

    async def replica(
        self, *, whole: bool = True, short: bool = False, deployment: str = ""
    ) -> Replica:
        """A started replica; without a `whole` cable it has not reached the server."""
        if self.kind == "memory":
            replica = Replica(MemoryBus(), self.clock)
        else:
            cable = Cable(self.url)
            await cable.start()
            if not whole:
                cable.cut()
            bus = self._bus(
                cable.url, deployment or self.deployment, WAITING if short else MAX_WAITING
            )
            replica = Replica(bus, self.clock, cable)
        self.replicas.append(replica)
        await replica.bus.start()
        return replica

    def _bus(self, url: str, deployment: str, waiting: int) -> ReplicatedBus:
        if self.kind == "postgresql":
            return PostgresBus(url, self.clock, channel=deployment, waiting=waiting)
        return NatsBus(url, self.clock, prefix=deployment, waiting=waiting)

    async def close(self) -> None:
        for replica in self.replicas:
            await replica.bus.close()
            if replica.cable is not None:
                await replica.cable.close()


def at_once(signals: AsyncIterator[Signal]) -> Signal | None:
    """The next signal if it is there already, without a turn of the loop."""
    step = anext(signals).__await__()
    try:
        next(step)
    except StopIteration as found:
        return Signal.model_validate(found.value)
    step.close()
    return None


async def take(signals: AsyncIterator[Signal], count: int) -> list[Signal]:
    """The next `count` signals."""
    return [await anext(signals) for _ in range(count)]


def delta(offset: int, text: str, *, run: str = "run_1", step: int = 1) -> JsonObject:
    """A text delta as the running step publishes it."""
    return {
        "type": "delta",
        "session_id": f"ses_of_{run}",
        "run_id": run,
        "step": step,
        "offset": offset,
        "text": text,
    }


async def read_text(signals: AsyncIterator[Signal], characters: int) -> tuple[str, int]:
    """The text of deltas that follow on each other, until it is long enough; and their number."""
    text, count = "", 0
    while len(text) < characters:
        signal = await anext(signals)
        assert signal.topic == LIVE
        assert not signal.gap
        assert signal.data["offset"] == len(text)
        text += str(signal.data["text"])
        count += 1
    return text, count
