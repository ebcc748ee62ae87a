"""The long-lived tasks of a process: each is started again when it ends, and says why it is down.

A bus that listens, a loop that claims runs and a poller have one good end: to be cancelled. Any
other end is a fault, whether the task raised, returned, or was cancelled by something it waited
for. The fault is logged and the task is started again, later each time. Until it has run for a
while it counts as down, and a process whose needed task is down is not ready.

The owner of a task is the `TaskGroup` that it was started in. Tasks that end by themselves (a turn,
a send, a request) are not for here: their owner answers for them.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import structlog

from runtime.domain.errors import Unavailable
from runtime.ports.clock import Clock

log = structlog.get_logger(__name__)

FIRST_DELAY_S: Final = 0.25
LONGEST_DELAY_S: Final = 15.0
SETTLED_S: Final = 2.0
"""How long a task must run after a fault to count as up again: most do their work once a second."""
STABLE_S: Final = 60.0
"""A task that ran for so long is started at once after its next fault, whatever came before."""
MOST_CHARACTERS: Final = 300
"""Of a reason: a server's words may be long."""

Body = Callable[[], Awaitable[None]]
"""What a task does, until it is cancelled. It may be called again at any time after it ended."""


@dataclass(frozen=True, slots=True)
class TaskHealth:
    """How a task stands. `failures` counts since it was first started; `reason` is that of the
    last failure, empty before there was one."""

    name: str
    needed: bool
    up: bool = True
    failures: int = 0
    reason: str = ""


@dataclass(slots=True)
class _Task:
    name: str
    needed: bool
    up: bool = True
    failures: int = 0
    in_a_row: int = 0
    reason: str = ""
    failed_at: float = 0.0


class Supervisor:
    """Runs the long-lived tasks of one process, and knows how each of them stands."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tasks: dict[str, _Task] = {}

    @property
    def health(self) -> Sequence[TaskHealth]:
        """Every task that was started and not cancelled, by name."""
        return [
            TaskHealth(task.name, task.needed, task.up, task.failures, task.reason)
            for _, task in sorted(self._tasks.items())
        ]

    @property
    def trouble(self) -> str:
        """Which needed tasks are down and why, in one line; empty while all of them run."""
        down = [task for task in self.health if task.needed and not task.up]
        return "; ".join(f"{task.name}: {task.reason}" for task in down)

    def reason(self, name: str) -> str:
        """Why one task is down; empty while it runs, or if there is none of that name."""
        task = self._tasks.get(name)
        return "" if task is None or task.up else task.reason

    def start(
        self, group: asyncio.TaskGroup, name: str, body: Body, *, needed: bool = True
    ) -> asyncio.Task[None]:
        """Run `body` in a task of `group`, as `keep` does."""
        return group.create_task(self.keep(name, body, needed=needed), name=name)

    async def keep(self, name: str, body: Body, *, needed: bool = True) -> None:
        """Run `body` until this task is cancelled, again after each other end.

        A process can do without a task that is not `needed`: it stays ready while that is down.
        Raises `ValueError` while another task of that name runs.
        """
        if name in self._tasks:
            raise ValueError(f"a task called {name} runs already")
        task = self._tasks[name] = _Task(name, needed)
        try:
            while True:
                await self._once(task, body)
        finally:
            del self._tasks[name]

    async def _once(self, task: _Task, body: Body) -> None:
        began = self._clock.monotonic()
        timer = None if task.up else self._clock.call_later(SETTLED_S, partial(self._rise, task))
        error: BaseException | None = None
        try:
            await body()
        except (Exception, asyncio.CancelledError) as raised:  # the root of every long-lived task
            if _is_cancelled():
                raise
            error = raised
        finally:
            if timer is not None:
                timer.cancel()
        if _is_cancelled():
            # It was cancelled in the moment in which it ended: the owner waits for that.
            raise asyncio.CancelledError
        if self._clock.monotonic() - began >= STABLE_S:
            task.in_a_row = 0
        await self._clock.sleep(self._fall(task, error))

    def _fall(self, task: _Task, error: BaseException | None) -> float:
        """Note a fault; the seconds until the next start."""
        delay = min(FIRST_DELAY_S * 2.0 ** min(task.in_a_row, 10), LONGEST_DELAY_S)
        if task.up:
            task.failed_at = self._clock.monotonic()
        task.up, task.reason = False, _reason(error)
        task.failures += 1
        task.in_a_row += 1
        expected = isinstance(error, Unavailable)
        log.error(
            "task_failed",
            task=task.name,
            reason=task.reason,
            failures=task.failures,
            again_in_s=delay,
            exc_info=None if expected else error,
        )
        return delay

    def _rise(self, task: _Task) -> None:
        task.up = True
        down_s = round(self._clock.monotonic() - task.failed_at, 1)
        log.info("task_recovered", task=task.name, after_s=down_s)


def _is_cancelled() -> bool:
    """Whether the owner of this task cancelled it, and not something that it waited for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _reason(error: BaseException | None) -> str:
    if error is None:
        return "it ended by itself"
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, asyncio.CancelledError):
        return "something that it waited for was cancelled"
    said = " ".join(str(error).split())
    name = type(error).__name__
    return f"{name}: {said}"[:MOST_CHARACTERS] if said else name
