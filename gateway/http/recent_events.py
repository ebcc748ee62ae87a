"""The newest durable events, read once for all event streams of a process (API-4).

A thousand streams that each read the database for each event would keep everybody waiting, so
those that are up to date share one reading. Whoever comes back with an older position reads the
database for itself until it has caught up.

An event is kept for a few seconds: a stream that was just served may need it, and what is deleted
soon is in no memory any more.
"""

import asyncio
from bisect import bisect_right
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from gateway.http import stream
from gateway.http.stream import Filter
from runtime.domain.errors import Unavailable
from runtime.domain.events import Event
from runtime.ports.clock import Clock
from runtime.views.reader import Views

BATCH: Final = 200
KEPT_S: Final = 5.0
MOST: Final = 5_000
"""Events that are kept at most."""


@dataclass(frozen=True, slots=True)
class Told:
    """An event and what a stream writes of it. `read_s` is when it was read, by the clock."""

    event: Event
    data: bytes
    read_s: float


@dataclass(frozen=True, slots=True)
class News:
    """What a stream is to be told, and the position behind it all."""

    told: Sequence[Told]
    position: int


class RecentEvents:
    """What was committed lately, for the streams that are up to date."""

    def __init__(self, views: Views, clock: Clock) -> None:
        self._views = views
        self._clock = clock
        self._held: list[Told] = []
        self._start: int | None = None
        self._end = 0
        self._reading = asyncio.Lock()
        self._begun = self._done = 0
        self._read_s = float("-inf")

    async def after(self, position: int, wanted: Filter, *, max_age_s: float = 0.0) -> News | None:
        """What is wanted of the events past a position. None where that is too far back.

        All that was committed before the call is among them, or with `max_age_s`, before so many
        seconds. Where the database is away there is nothing new.
        """
        if self._clock.monotonic() - self._read_s >= max_age_s:
            await self._read()
        if self._start is None or position < self._start:
            return None
        first = bisect_right(self._held, position, key=_position)
        told = [one for one in self._held[first:] if wanted.wants_event(one.event)]
        return News(told, max(position, self._end))

    async def _read(self) -> None:
        """Read on. Whoever asks while another reads waits for a reading that begins after."""
        asked = self._begun
        async with self._reading:
            if self._done > asked:
                return
            self._begun += 1
            number, self._read_s = self._begun, self._clock.monotonic()
            # Where the database is away, a later tick reads again from the same place.
            with suppress(Unavailable):
                await self._take()
            self._done = number

    async def _take(self) -> None:
        if self._start is None:
            self._start = self._end = await self._views.last_position()
        more = True
        while more:
            found = await self._views.events_after(self._end, limit=BATCH)
            self._held += [Told(one, stream.durable(one), self._read_s) for one in found]
            if found:
                self._end = found[-1].position
            more = len(found) == BATCH
        self._forget()

    def _forget(self) -> None:
        before = self._read_s - KEPT_S
        old = bisect_right(self._held, before, key=_read_at)
        gone = max(old, len(self._held) - MOST)
        if gone > 0:
            self._start = self._held[gone - 1].event.position
            del self._held[:gone]


def _position(one: Told) -> int:
    return one.event.position


def _read_at(one: Told) -> float:
    return one.read_s
