"""Slack's limits: its 429 answers, kept until their time is over, and what is better not reached.

Slack counts by method (SLK-8), and posts by channel as well; so a limit on editing in one channel
stops neither posts nor other channels. It waits for nobody: who calls too early is told how long.
"""

from collections import deque

from adapters.slack.failures import RateLimited
from adapters.slack.recent import Recent
from runtime.ports.clock import Clock

UNNAMED_S = 1.0
"""How long to leave it where Slack named no time."""


class Limits:
    """The limits that hold now, of one application."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until: Recent[tuple[str, str], float] = Recent()

    def check(self, method: str, channel: str) -> None:
        """Raises `RateLimited` while Slack would refuse."""
        until = self._until.get((method, channel))
        if until is None:
            return
        left = until - self._clock.monotonic()
        if left > 0:
            raise RateLimited(left)
        self._until.drop((method, channel))

    def note(self, method: str, channel: str, after_s: float | None) -> None:
        """Slack refused just now."""
        left = UNNAMED_S if after_s is None else after_s
        self._until.put((method, channel), self._clock.monotonic() + left)


class Budget:
    """So many uses of something in so many seconds, kept to before Slack has to say so."""

    def __init__(self, clock: Clock, uses: int, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._used: deque[float] = deque(maxlen=uses)

    def free(self) -> bool:
        """Whether one more is left."""
        full = len(self._used) == self._used.maxlen
        return not full or self._clock.monotonic() - self._used[0] >= self._seconds

    def take(self) -> None:
        """Use one."""
        self._used.append(self._clock.monotonic())
