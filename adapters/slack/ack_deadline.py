"""How long something may take that Slack's acknowledgement waits for, by the Clock port.

Slack waits three seconds and then delivers again or shows a warning. What is only good to have, a
name or a prompt, is given up before that.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from adapters.slack.failures import SlackFailure
from runtime.ports.clock import Clock

GOOD_TO_HAVE_S: Final = 1.5


@asynccontextmanager
async def within(clock: Clock, seconds: float = GOOD_TO_HAVE_S) -> AsyncIterator[None]:
    """Raises `TimeoutError` when the block takes longer."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(None) as limit:
        timer = clock.call_later(seconds, lambda: limit.reschedule(loop.time()))
        try:
            yield
        finally:
            timer.cancel()


@asynccontextmanager
async def best_effort(
    clock: Clock, report: Callable[..., object], event: str, **facts: str
) -> AsyncIterator[None]:
    """What takes too long or is refused is only reported; `report` is a method of the log."""
    try:
        async with within(clock):
            yield
    except (SlackFailure, TimeoutError) as failure:
        report(event, reason=str(failure), **facts)
