"""The bus of a single process: bounded queues, the oldest signal gives way, a gap is said.

Also the last part of the way for the buses that reach other replicas: they deliver here what
comes in. It knows no connection and keeps nothing for a reader that is not there.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from runtime.domain.value import JsonObject
from runtime.ports.bus import Signal


class _Subscription:
    """One reader's queue."""

    def __init__(self, topics: tuple[str, ...], limit: int) -> None:
        self.topics = topics
        self._waiting: deque[Signal] = deque(maxlen=limit)
        self._lost = False
        self._arrived = asyncio.Event()

    def put(self, signal: Signal) -> None:
        self._lost |= len(self._waiting) == self._waiting.maxlen
        self._waiting.append(signal)
        self._arrived.set()

    def lose(self) -> None:
        """Say that signals were lost, at once and once for all that were."""
        if self.topics and not (self._waiting and self._waiting[-1].gap):
            self.put(Signal(topic=self.topics[0], data={}, gap=True))

    def __aiter__(self) -> AsyncIterator[Signal]:
        return self

    async def __anext__(self) -> Signal:
        while not self._waiting:
            self._arrived.clear()
            await self._arrived.wait()
        signal = self._waiting.popleft()
        if self._lost:
            self._lost = False
            return signal.model_copy(update={"gap": True})
        return signal


class MemoryBus:
    """Publishing never blocks and never fails; a slow reader loses its oldest signals."""

    connected = True

    def __init__(self) -> None:
        self._subscriptions: dict[str, set[_Subscription]] = {}

    async def start(self) -> None:
        """Nothing to connect."""

    async def close(self) -> None:
        """Readers end with their tasks."""

    def publish(self, topic: str, data: JsonObject) -> None:
        """Hand a signal to every reader of the topic, in the order of publishing."""
        if self._subscriptions.get(topic):
            self.deliver(Signal(topic=topic, data=data))

    def deliver(self, signal: Signal) -> None:
        """The same for a signal that is made already."""
        for subscription in tuple(self._subscriptions.get(signal.topic, ())):
            subscription.put(signal)

    def lose(self) -> None:
        """Tell every reader that signals were lost on their way here.

        Each gets one signal without data, on the first of its topics, with ``gap``.
        """
        for subscription in set[_Subscription]().union(*self._subscriptions.values()):
            subscription.lose()

    @asynccontextmanager
    async def subscribe(
        self, *topics: str, limit: int = 1024
    ) -> AsyncIterator[AsyncIterator[Signal]]:
        """Signals published while the context is entered."""
        subscription = _Subscription(topics, limit)
        for topic in topics:
            self._subscriptions.setdefault(topic, set()).add(subscription)
        try:
            yield subscription
        finally:
            for topic in topics:
                self._subscriptions[topic].discard(subscription)
