"""What ends a test that would wait for ever.

Most tests wait for an event. When it never comes nothing else ends them: the whole run stands still
until it is stopped from outside, and then nobody learns which test it was. This is no means to wait
for something, and it measures nothing: a test that needs a minute is far below the limit.
"""

from __future__ import annotations

import asyncio
import io
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import pytest

from tests.support.profiles import is_long

LIMIT_S = 900.0
"""Seconds of the real clock for one test with its fixtures, on a machine that is slow and loaded.
pytest's own ``faulthandler_timeout`` starts a thread for each test, which takes it 3 ms."""
LONG_LIMIT_S = 12 * 3600.0
"""The same in the long profile, in which one test may play for hours."""
AGAIN_S = 20.0
"""Seconds until the next try: an event loop keeps what is raised in a callback to itself, and
clearing up can hang as well."""


def limit_s() -> float:
    """The limit of this run."""
    return LONG_LIMIT_S if is_long() else LIMIT_S


@contextmanager
def limited(seconds: float = LIMIT_S) -> Iterator[None]:
    """Fail what takes longer than `seconds`, and say where each task of the event loop stands.

    Works in the main thread only, as signals do.
    """

    def fail(_signal: int, _frame: FrameType | None) -> None:
        pytest.fail(f"not finished after {seconds:g} s{_where_tasks_stand()}")

    handler = signal.signal(signal.SIGALRM, fail)
    delay, interval = signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, delay, interval)


def _where_tasks_stand() -> str:
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return ""
    text = io.StringIO()
    for task in asyncio.all_tasks(loop):
        text.write("\n")
        task.print_stack(file=text)
    return text.getvalue()
