"""Timers at a time of day, by APScheduler: those that wake what is scheduled."""

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from runtime.ports.clock import Clock, Timer

if TYPE_CHECKING:
    from apscheduler.job import Job
    from apscheduler.schedulers.asyncio import AsyncIOScheduler


class SchedulerTimers:
    """Implements the port `Timers` on the running event loop.

    A timer is a job in memory that runs once. What is scheduled is in the database, and whoever set
    the timer reads it there once the timer rings.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._scheduler: AsyncIOScheduler | None = None

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """Call back on the running loop."""

        # A coroutine function, because APScheduler would call a plain one in a thread.
        async def call() -> None:
            callback()

        at = datetime.fromtimestamp(self._clock.now_ms() / 1000 + max(seconds, 0.0), UTC)
        # Without a grace time: a timer that rings late is still wanted.
        job = self._started().add_job(call, "date", run_date=at, misfire_grace_time=None)
        return _JobTimer(job)

    def _started(self) -> "AsyncIOScheduler":
        if self._scheduler is None:
            # Lazy: a gateway without schedules does not need it.
            from apscheduler.schedulers.asyncio import AsyncIOScheduler

            self._scheduler = AsyncIOScheduler(timezone=UTC)
            self._scheduler.start()
        return self._scheduler


class _JobTimer:
    def __init__(self, job: "Job") -> None:
        self._job = job

    def cancel(self) -> None:
        # Lazy as above.
        from apscheduler.jobstores.base import JobLookupError

        # It is gone once it rang.
        with suppress(JobLookupError):
            self._job.remove()
