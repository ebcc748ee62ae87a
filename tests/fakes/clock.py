"""A clock that moves only on command."""

import asyncio
import heapq
import itertools
from collections.abc import Awaitable, Callable, Sized
from dataclasses import dataclass, field

from tests.fakes.threads import at_work, count_calls, finish_calls

count_calls()
START_MS = 1_800_000_000_000
SETTLE_ROUNDS = 20
IDLE_ROUNDS = 3
DRAIN_ROUNDS = 200


@dataclass(order=True)
class FakeTimer:
    """A pending call of the fake clock."""

    at: float
    order: int
    callback: Callable[[], None] = field(compare=False)
    cancelled: bool = field(default=False, compare=False)

    def cancel(self) -> None:
        """Do not call."""
        self.cancelled = True


class FakeClock:
    """Implements the port `clock`; `advance` fires timers in order and lets their tasks run.

    Where `drain` is set it is awaited before time moves, and says whether there was anything to
    wait for, behind which it has let the tasks run: what was written must be written first, or
    virtual leases would run out while a real disk is at work.
    """

    def __init__(self, start_ms: int = START_MS) -> None:
        self.drain: Callable[[], Awaitable[bool]] | None = None
        self._start_ms = start_ms
        self._elapsed = 0.0
        self._timers: list[FakeTimer] = []
        self._order = itertools.count()

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        return self._start_ms + int(self._elapsed * 1000)

    def monotonic(self) -> float:
        """Seconds since the fake was made."""
        return self._elapsed

    def offset_ms(self) -> int:
        """How far a server's clock is to be ahead: it goes with this one (`ShiftedClock`)."""
        return int(self._elapsed * 1000)

    @property
    def sleeping(self) -> int:
        """How many timers are pending."""
        return sum(not timer.cancelled for timer in self._timers)

    def call_later(self, seconds: float, callback: Callable[[], None]) -> FakeTimer:
        """Call when `advance` has passed `seconds`."""
        timer = FakeTimer(self._elapsed + max(seconds, 0.0), next(self._order), callback)
        heapq.heappush(self._timers, timer)
        return timer

    async def sleep(self, seconds: float) -> None:
        """Return when `advance` has passed `seconds`."""
        woken = asyncio.Event()
        timer = self.call_later(seconds, woken.set)
        try:
            await woken.wait()
        finally:
            timer.cancel()

    async def advance(self, seconds: float) -> None:
        """Move time, firing what is due in order."""
        target = self._elapsed + seconds
        await self._quiet()
        while self._timers and self._timers[0].at <= target:
            timer = heapq.heappop(self._timers)
            if timer.cancelled:
                continue
            self._elapsed = max(self._elapsed, timer.at)
            timer.callback()
            await self._quiet()
        self._elapsed = target
        await self._quiet()

    async def _quiet(self) -> None:
        """Let tasks run, and their writes finish, until neither makes work for the other."""
        await settle()
        if self.drain is None:
            return
        loop = asyncio.get_running_loop()
        for _ in range(DRAIN_ROUNDS):
            if await self.drain():
                continue
            if not at_work(loop):
                return
            await finish_calls(loop)
            await settle()


async def settle(rounds: int = SETTLE_ROUNDS) -> None:
    """Let tasks that are ready run; waits for nothing that needs a thread or a socket.

    It ends early once nothing is ready in `IDLE_ROUNDS` rounds, each of which looks at the sockets,
    and no thread works: every timer of a test settles some times, and most find nothing to do."""
    woken = asyncio.Event()
    loop = asyncio.get_running_loop()
    ready: Sized = getattr(loop, "_ready", (None,))
    idle = 0
    for _ in range(rounds):
        loop.call_soon(woken.set)
        await woken.wait()
        woken.clear()
        idle = 0 if ready or at_work(loop) else idle + 1
        if idle == IDLE_ROUNDS:
            return
