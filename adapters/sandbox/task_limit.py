"""How many tasks a command may have, where nothing in the kernel counts those of root.

RLIMIT_NPROC does not bind root, and in most containers no cgroup can be written. There each fork
is a question to the supervisor. What it allowed since it last counted is an upper bound of what
was added; only where that reaches the limit are the tasks counted. Forks that were allowed and
have not happened yet escape one count and not the next, so at the worst there are twice as many.
Standard library only, and little of it, as in `spec`.
"""

import errno
import os
from collections.abc import Callable
from contextlib import suppress

CALLS = frozenset({"clone", "fork", "vfork"})


class Forks:
    """Allows forks while fewer than `most` tasks are there; `pids` lists the processes."""

    def __init__(self, most: int, pids: Callable[[], list[int]]) -> None:
        self._most = most
        self._pids = pids
        self._bound = most

    def allow(self) -> None:
        """Count one more task. Raises `BlockingIOError` (EAGAIN) where there may be none."""
        self._bound += 1
        if self._bound > self._most:
            self._bound = _tasks(self._pids()) + 1
        if self._bound > self._most:
            raise BlockingIOError(errno.EAGAIN, "too many processes")


def _tasks(pids: list[int]) -> int:
    total = 0
    for pid in pids:
        with suppress(OSError):
            total += len(os.listdir(f"/proc/{pid}/task"))
    return total
