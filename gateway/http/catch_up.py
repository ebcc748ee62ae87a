"""Turns of the event streams that read the database for themselves, as they are behind (API-4).

Each of them may have everything to read that ever happened, and a token may open many. So few read
at once, a page at a time, and the others wait in line: what is live, and every other request, stays
quick beside them.
"""

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from runtime.ports.clock import Timers
from runtime.process.wakeup import TICK_S, Wake

MOST: Final = 2
"""Pages that are read at once: half of the threads that read SQLite."""


@dataclass(eq=False, slots=True)
class _Waiting:
    """A stream in the line. While it `writes`, nobody knows how long that takes."""

    wake: Wake
    writes: bool = False


class Turns:
    """So many at once, in the order in which they asked."""

    def __init__(self, timers: Timers, *, most: int = MOST) -> None:
        self._timers = timers
        self._free = most
        self._line: deque[_Waiting] = deque()

    @asynccontextmanager
    async def turn(self, beat: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
        """A turn, for one page; not to be held while a reader takes it. `beat` is called each
        second of the wait, and no turn is held up by what it writes."""
        if self._free:
            self._free -= 1
        else:
            await self._wait(beat)
        try:
            yield
        finally:
            self._free += 1
            self._pass_on()

    async def _wait(self, beat: Callable[[], Awaitable[None]]) -> None:
        place = _Waiting(Wake(self._timers))
        self._line.append(place)
        try:
            while place in self._line:
                if not await place.wake.wait(TICK_S) and place in self._line:
                    place.writes = True
                    await beat()
                    place.writes = False
                    self._pass_on()
        except BaseException:
            if place in self._line:
                self._line.remove(place)
            else:
                # It was given a turn in the same moment.
                self._free += 1
                self._pass_on()
            raise

    def _pass_on(self) -> None:
        """Give what is free to the first in the line that can take it."""
        ready = (place for place in tuple(self._line) if not place.writes)
        while self._free and (place := next(ready, None)) is not None:
            self._free -= 1
            self._line.remove(place)
            place.wake.set()
