"""A condition that synchronous code can pulse: tests and long polls wait on it, nothing sleeps."""

import asyncio
from collections.abc import Callable


class Signal:
    """Wakes every waiter on `pulse`; a waiter looks at its condition first, so no pulse is lost."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def pulse(self) -> None:
        """Something changed: every waiter looks again."""
        event, self._event = self._event, asyncio.Event()
        event.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Return as soon as `condition()` is true."""
        while not condition():
            await self._event.wait()
