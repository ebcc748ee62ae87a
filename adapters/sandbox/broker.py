"""Answering the questions of a command's filter, in its supervisor.

Landlock does not see who changes a mode or an owner, and knows nothing of limits and priorities of
other processes. The filter turns such a call into a question (`questions`). The supervisor looks at
what is meant and then does it itself, or lets the call go on where its arguments cannot change any
more.
Standard library only, as in `spec`.
"""

import errno
import platform
from dataclasses import dataclass

from adapters.sandbox import attributes, process_calls, seccomp_requests, system_calls
from adapters.sandbox.task_limit import CALLS, Forks


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
        if name in CALLS and self.forks is not None:
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


_NAMES: dict[int, str] = {}


def _names() -> dict[int, str]:
    if not _NAMES:
        numbers = system_calls.number_of(system_calls.JUDGED, platform.machine())
        _NAMES.update({number: name for name, number in numbers.items()})
    return _NAMES
