"""Answering the questions of a command's filter, in its supervisor.

Landlock does not see who changes a mode or an owner, and knows nothing of limits and priorities of
other processes. The filter turns such a call into a question (`seccomp_requests`). The supervisor
looks at what is meant and then does it itself, or lets the call go on where its arguments cannot
change any more. Standard library only, as in `launch_spec`.
"""

import errno
import os
import platform
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

from adapters.sandbox import attributes, process_calls, seccomp_requests, system_calls

_FORKS = frozenset({"clone", "fork", "vfork"})


class Forks:
    """Allows forks while fewer than `most` tasks are there; `pids` lists the processes.

    RLIMIT_NPROC does not bind root, and in most containers no cgroup can be written. There each
    fork is a question to the supervisor. What it allowed since it last counted is an upper bound of
    what was added; only where that reaches the limit are the tasks counted. Forks that were allowed
    and have not happened yet escape one count and not the next, so at the worst there are twice as
    many.
    """

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


@dataclass(frozen=True, slots=True)
class Broker:
    """Answers the questions of one filter; `rules` say where its command may write, and `forks`
    how many tasks it may have, where that is asked."""

    listener: int
    rules: dict[str, attributes.Rights]
    forks: Forks | None = None

    def answer_one(self) -> None:
        """Take one question and answer it; a caller that died meanwhile is passed over."""
        seccomp_requests.answer_one(self.listener, self._answer)

    def _answer(self, question: seccomp_requests.Question) -> int | None:
        name = _names().get(question.number, "")
        if name in _FORKS and self.forks is not None:
            self.forks.allow()
            return None
        asked = (question.pid, name, question.arguments)
        change = attributes.CHANGES.get(name)
        if change is not None:
            return change(attributes.Call(*asked, question.still_asked, self.rules))
        judge = process_calls.JUDGES.get(name)
        if judge is None:
            raise OSError(errno.ENOSYS, "not a call that is asked about")
        return judge(process_calls.Call(*asked, question.still_asked))


@cache
def _names() -> dict[int, str]:
    numbers = system_calls.number_of(system_calls.JUDGED, platform.machine())
    return {number: name for name, number in numbers.items()}
