"""Time. Nothing else in Gatehouse asks the operating system what time it is."""

from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    """A pending call; `cancel` after it fired does nothing."""

    def cancel(self) -> None: ...


class Timers(Protocol):
    """Calls that are made after a while."""

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """Call `callback` on the event loop after `seconds`."""
        ...


class Clock(Timers, Protocol):
    """Wall time for what is stored, monotonic time for what is measured, and timers."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        ...

    def monotonic(self) -> float:
        """Seconds of a clock that never goes back."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds`; cancellable."""
        ...
