"""What event loops have given to threads and is not done, so that a test's time waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, Final
from weakref import WeakKeyDictionary, WeakSet

PATIENCE_S: Final = 1.0
"""Seconds of the real clock for a call, before it counts as one that the test itself holds up."""

_Loop = asyncio.AbstractEventLoop
_AT_WORK: WeakKeyDictionary[_Loop, set[asyncio.Future[Any]]] = WeakKeyDictionary()
_HELD: WeakSet[asyncio.Future[Any]] = WeakSet()


def at_work(loop: _Loop) -> bool:
    """Whether a thread works for this loop. One that a test holds up does not count."""
    return any(call not in _HELD for call in _AT_WORK.get(loop, ()))


async def finish_calls(loop: _Loop) -> None:
    """Wait until the threads that work for this loop have done so.

    On a busy machine a thread may get no processor while the loop turns a thousand times, so
    turning the loop is no way to wait for it.
    """
    calls = [call for call in _AT_WORK.get(loop, ()) if call not in _HELD]
    if calls:
        _, held = await asyncio.wait(calls, timeout=PATIENCE_S)
        _HELD.update(held)


def count_calls() -> None:
    """Count from now on. For the test run, once: every `asyncio.to_thread` comes through here."""
    begin = asyncio.base_events.BaseEventLoop.run_in_executor

    def run_in_executor(
        loop: asyncio.base_events.BaseEventLoop,
        executor: Executor | None,
        function: Callable[..., Any],
        *arguments: Any,
    ) -> asyncio.Future[Any]:
        future = begin(loop, executor, function, *arguments)
        calls = _AT_WORK.setdefault(loop, set())
        calls.add(future)
        future.add_done_callback(calls.discard)
        return future

    setattr(asyncio.base_events.BaseEventLoop, "run_in_executor", run_in_executor)  # noqa: B010 - mypy
