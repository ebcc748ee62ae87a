"""The machine's clock, run faster, so that a restart does not wait for real backoffs."""

from collections.abc import Callable

from adapters.system.clock import SystemClock
from runtime.ports.clock import Timer

RATE = 20


class FastClock:
    """A pure function of real time since `epoch_ms`, so that every process agrees on it, but for
    those whose wall clock is wrong by `skew_ms`.

    PostgreSQL's time is shifted by as much (`runtime.store.database.ShiftedClock`).
    """

    def __init__(self, epoch_ms: int, rate: int = RATE, skew_ms: int = 0) -> None:
        self._real = SystemClock()
        self._epoch_ms = epoch_ms
        self._rate = rate
        self._skew_ms = skew_ms

    def now_ms(self) -> int:
        passed = (self._real.now_ms() - self._epoch_ms) * self._rate
        return self._epoch_ms + passed + self._skew_ms

    def offset_ms(self) -> int:
        return (self._real.now_ms() - self._epoch_ms) * (self._rate - 1)

    def monotonic(self) -> float:
        return self._real.monotonic() * self._rate

    async def sleep(self, seconds: float) -> None:
        await self._real.sleep(seconds / self._rate)

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        return self._real.call_later(seconds / self._rate, callback)
