"""What was used last, at most so much of it and for so long: an adapter's only kind of memory.

Everything in it can be asked for again or done without; it is never the truth about anything.
"""

from collections import OrderedDict
from typing import Generic, TypeVar

from runtime.ports.clock import Clock

MAX_ENTRIES = 10_000

K = TypeVar("K")
V = TypeVar("V")


class Recent(Generic[K, V]):
    """The entries that were used last, at most `size` of them."""

    def __init__(self, size: int = MAX_ENTRIES) -> None:
        self._size = size
        self._entries: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K) -> V | None:
        if key in self._entries:
            self._entries.move_to_end(key)
        return self._entries.get(key)

    def put(self, key: K, value: V) -> None:
        self._entries[key] = value
        self._entries.move_to_end(key)
        if len(self._entries) > self._size:
            self._entries.popitem(last=False)

    def drop(self, key: K) -> None:
        self._entries.pop(key, None)


class Expiring(Generic[K, V]):
    """The same, each entry for `seconds` after it was put: people are renamed."""

    def __init__(self, clock: Clock, seconds: float, size: int = MAX_ENTRIES) -> None:
        self._clock = clock
        self._seconds = seconds
        self._entries: Recent[K, tuple[float, V]] = Recent(size)

    def get(self, key: K) -> V | None:
        found = self._entries.get(key)
        if found is None:
            return None
        until, value = found
        if self._clock.monotonic() >= until:
            self._entries.drop(key)
            return None
        return value

    def put(self, key: K, value: V) -> None:
        self._entries.put(key, (self._clock.monotonic() + self._seconds, value))

    def drop(self, key: K) -> None:
        self._entries.drop(key)
