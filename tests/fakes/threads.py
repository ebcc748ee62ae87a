"""What event loops have given to threads and is not done, so that a test's time waits for it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any
from weakref import WeakKeyDictionary

_Loop = asyncio.AbstractEventLoop
_AT_WORK: WeakKeyDictionary[_Loop, Counter[str]] = WeakKeyDictionary()


def at_work(loop: _Loop) -> bool:
    """Whether a thread works for this loop."""
    return bool(_AT_WORK.get(loop, Counter())["calls"])


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
        calls = _AT_WORK.setdefault(loop, Counter())
        calls["calls"] += 1
        future.add_done_callback(lambda _: calls.subtract(("calls",)))
        return future

    setattr(asyncio.base_events.BaseEventLoop, "run_in_executor", run_in_executor)  # noqa: B010 - mypy
