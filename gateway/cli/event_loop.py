"""The event loop that a long run uses: uvloop where it is installed, else asyncio's own."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    """As `asyncio.run`. uvloop is in the extra ``speed``; docs/performance.md has its gain."""
    try:
        # Lazy: an extra, and its loop is for the one long run of a process.
        import uvloop
    except ImportError:
        return asyncio.run(work)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)
