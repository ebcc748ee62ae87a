"""Timers that APScheduler keeps."""

import asyncio

import pytest

from adapters.system.clock import SystemClock
from adapters.system.timers import SchedulerTimers
from runtime.process.wakeup import Wake
from tests.conftest import FailAfter

YEAR_S = 366 * 24 * 3600.0


@pytest.mark.requirement("SCH-4")
async def test_a_timer_rings_on_the_loop_and_once(fail_after: FailAfter) -> None:
    timers, rung = SchedulerTimers(SystemClock()), asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    def ring() -> None:
        loops.append(asyncio.get_running_loop())
        rung.set()

    async with fail_after(30):
        timer = timers.call_later(-5.0, ring)
        await rung.wait()
    assert loops == [asyncio.get_running_loop()]
    timer.cancel()


@pytest.mark.requirement("SCH-4")
async def test_a_timer_that_was_cancelled_never_rings(fail_after: FailAfter) -> None:
    timers, later = SchedulerTimers(SystemClock()), asyncio.Event()
    rung: list[str] = []
    async with fail_after(30):
        timers.call_later(0.0, lambda: rung.append("cancelled")).cancel()
        timers.call_later(YEAR_S, lambda: rung.append("in a year"))
        timers.call_later(0.0, later.set)
        await later.wait()
    assert rung == []


@pytest.mark.requirement("SCH-4")
async def test_a_wait_ends_at_its_time_or_when_something_is_signalled(
    fail_after: FailAfter,
) -> None:
    wake = Wake(SchedulerTimers(SystemClock()))
    async with fail_after(30):
        assert not await wake.wait(0.0)
        wake.set()
        assert await wake.wait(YEAR_S)
