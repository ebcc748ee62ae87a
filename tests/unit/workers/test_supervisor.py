"""A long-lived task that ends is logged, shown, and started again; only its owner ends it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from structlog.testing import capture_logs

from runtime.domain.errors import Unavailable
from runtime.process.supervisor import (
    FIRST_DELAY_S,
    LONGEST_DELAY_S,
    SETTLED_S,
    STABLE_S,
    Supervisor,
    TaskHealth,
)
from tests.fakes.clock import FakeClock, settle


class Unforeseen(Exception):
    """An error that no part of the product knows."""


class Loop:
    """A task that runs until it is told how to end; `begun` counts how often it was started."""

    def __init__(self) -> None:
        self.begun = 0
        self.end: asyncio.Future[None]

    async def __call__(self) -> None:
        self.begun += 1
        self.end = asyncio.get_running_loop().create_future()
        await self.end


class World:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.supervisor = Supervisor(self.clock)
        self.loop = Loop()

    @property
    def health(self) -> TaskHealth:
        (found,) = self.supervisor.health
        return found

    async def fails(self) -> None:
        """The loop ends by an error that nobody expected."""
        self.loop.end.set_exception(Unforeseen("a defect"))
        await settle()

    async def restarted_after(self) -> float:
        """Fail, and say after how many seconds it runs again."""
        await self.fails()
        began, at = self.loop.begun, self.clock.monotonic()
        while self.loop.begun == began:
            await self.clock.advance(FIRST_DELAY_S)
        return self.clock.monotonic() - at

    @asynccontextmanager
    async def running(self, *, needed: bool = True) -> AsyncIterator[asyncio.Task[None]]:
        async with asyncio.TaskGroup() as group:
            task = self.supervisor.start(group, "loop", self.loop, needed=needed)
            await settle()
            yield task
            task.cancel()


@pytest.mark.requirement("OPS-8", "SEC-3")
async def test_a_task_that_fails_is_logged_and_shown_and_started_again() -> None:
    world = World()
    with capture_logs() as lines:
        async with world.running():
            assert world.health == TaskHealth("loop", needed=True)
            assert world.supervisor.trouble == ""
            await world.fails()
            down = TaskHealth("loop", True, up=False, failures=1, reason="Unforeseen: a defect")
            assert world.health == down
            assert world.supervisor.trouble == "loop: Unforeseen: a defect"
            await world.clock.advance(FIRST_DELAY_S)
            assert world.loop.begun == 2
            assert not world.health.up, "it may fail again at once"
            await world.clock.advance(SETTLED_S)
            assert world.health.up
            assert world.supervisor.trouble == ""
    failed = next(line for line in lines if line["event"] == "task_failed")
    assert (failed["task"], failed["log_level"]) == ("loop", "error")
    assert isinstance(failed["exc_info"], Unforeseen), "with its traceback"
    assert [line["task"] for line in lines if line["event"] == "task_recovered"] == ["loop"]


async def test_trouble_that_was_foreseen_needs_no_traceback() -> None:
    world = World()
    with capture_logs() as lines:
        async with world.running():
            world.loop.end.set_exception(Unavailable("the server is away"))
            await settle()
    failed = next(line for line in lines if line["event"] == "task_failed")
    assert failed["exc_info"] is None
    assert failed["reason"] == "Unavailable: the server is away"


@pytest.mark.requirement("OPS-8")
@pytest.mark.parametrize("way", ["returns", "is cancelled by another"])
async def test_an_end_without_an_error_is_a_fault_too(way: str) -> None:
    world = World()
    async with world.running() as task:
        if way == "returns":
            world.loop.end.set_result(None)
        else:
            world.loop.end.cancel()
        await settle()
        assert not task.done()
        assert not world.health.up
        assert world.health.reason
        await world.clock.advance(FIRST_DELAY_S)
        assert world.loop.begun == 2


async def test_a_task_that_fails_again_and_again_is_started_less_and_less_often() -> None:
    world = World()
    async with world.running():
        waits = [await world.restarted_after() for _ in range(9)]
        assert waits[:4] == [FIRST_DELAY_S * 2**number for number in range(4)]
        assert max(waits) == waits[-1] == LONGEST_DELAY_S
        await world.clock.advance(STABLE_S)
        assert await world.restarted_after() == FIRST_DELAY_S, "it had worked for long"


@pytest.mark.requirement("OPS-10")
@pytest.mark.parametrize("moment", ["at work", "waiting to be started again", "failing"])
async def test_its_owner_ends_it_at_any_moment(moment: str) -> None:
    world = World()
    async with world.running() as task:
        if moment == "waiting to be started again":
            await world.fails()
        elif moment == "failing":
            world.loop.end.set_result(None)
    assert task.cancelled()
    assert world.supervisor.health == []
    assert world.clock.sleeping == 0
    assert world.loop.begun == 1


async def test_a_task_that_can_be_done_without_is_no_trouble_of_the_process() -> None:
    world = World()
    async with world.running(needed=False):
        await world.fails()
        assert world.supervisor.trouble == ""
        assert world.supervisor.reason("loop") == "Unforeseen: a defect"


async def test_the_first_cause_is_named_where_several_tasks_ended_together() -> None:
    world = World()
    async with world.running():
        inner = ExceptionGroup("unhandled errors", [Unforeseen("two\nlines " + "x" * 500)])
        world.loop.end.set_exception(ExceptionGroup("more", [inner]))
        await settle()
        assert world.health.reason.startswith("Unforeseen: two lines x")
        assert len(world.health.reason) <= 300


async def test_a_name_belongs_to_one_task() -> None:
    world = World()
    async with world.running():
        with pytest.raises(ValueError, match="loop"):
            await world.supervisor.keep("loop", Loop())
        assert world.health.up
