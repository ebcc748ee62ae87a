"""The real clock: the only module that asks the operating system for the time."""

import asyncio
import time
from collections.abc import Callable

from runtime.ports.clock import Timer


class SystemClock:
    """Implements the port `clock` on the running event loop."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Seconds of the system's monotonic clock."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds`."""
        await asyncio.sleep(max(seconds, 0.0))

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """Call back on the running loop."""
        return asyncio.get_running_loop().call_later(max(seconds, 0.0), callback)
