"""The bus of a single process: bounded queues, the oldest signal gives way, a gap is said."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from runtime.domain.value import JsonObject
from runtime.ports.bus import Signal


class _Subscription:
    """One reader's queue."""

    def __init__(self, topics: frozenset[str], limit: int) -> None:
        self.topics = topics
        self._limit = limit
        self._waiting: deque[Signal] = deque()
        self._lost = False
        self._arrived = asyncio.Event()

    def put(self, signal: Signal) -> None:
        if len(self._waiting) >= self._limit:
            self._waiting.popleft()
            self._lost = True
        self._waiting.append(signal)
        self._arrived.set()

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

    def __init__(self) -> None:
        self._subscriptions: dict[str, set[_Subscription]] = {}

    async def start(self) -> None:
        """Nothing to connect."""

    async def close(self) -> None:
        """Readers end with their tasks."""

    def publish(self, topic: str, data: JsonObject) -> None:
        """Hand a signal to every reader of the topic, in the order of publishing."""
        found = self._subscriptions.get(topic)
        if found:
            signal = Signal(topic=topic, data=data)
            for subscription in tuple(found):
                subscription.put(signal)

    @asynccontextmanager
    async def subscribe(
        self, *topics: str, limit: int = 1024
    ) -> AsyncIterator[AsyncIterator[Signal]]:
        """Signals published while the context is entered."""
        subscription = _Subscription(frozenset(topics), limit)
        for topic in topics:
            self._subscriptions.setdefault(topic, set()).add(subscription)
        try:
            yield subscription
        finally:
            for topic in topics:
                self._subscriptions[topic].discard(subscription)
