"""Waiting for work: until something is signalled, or until the slow tick comes round."""

import asyncio

from runtime.ports.clock import Timers

TICK_S = 1.0
"""How late a lost wake-up may be noticed (MSG-21)."""


class Wake:
    """A signal that is never lost between two waits; several signals wake once."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._event = asyncio.Event()

    def set(self) -> None:
        """There may be work."""
        self._event.set()

    async def wait(self, seconds: float | None = TICK_S) -> bool:
        """True when something was signalled, False when `seconds` passed; None: never that."""
        if seconds is None:
            await self._event.wait()
            self._event.clear()
            return True
        timed_out = False

        def expire() -> None:
            nonlocal timed_out
            timed_out = True
            self._event.set()

        timer = self._timers.call_later(seconds, expire)
        try:
            await self._event.wait()
        finally:
            timer.cancel()
            self._event.clear()
        return not timed_out
