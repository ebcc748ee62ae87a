"""Flood control: the limits of the Bot FAQ, or a seeded share of refusals, each with its 429.

The real numbers are not published beyond the FAQ; these are what it names. Who calls again before
`retry_after` has passed has not listened, which is a violation: the real server extends the wait.
"""

from collections import deque
from collections.abc import Callable
from random import Random

from tests.wire.telegram.arguments import Arguments, Violation
from tests.wire.telegram.errors import ApiError

# What counts as a message in the limits: everything that people see in the chat.
_WRITES = ("send", "edit", "copy", "forward")
_FREE = frozenset({"sendChatAction"})
GROUP_A_MINUTE = 20
ALL_A_SECOND = 30
# One message a second in a chat; short bursts pass for a while.
CHAT_BURST = 5


class Floods:
    """Decides about each call that writes into a chat. Off until one of its modes is chosen."""

    def __init__(self) -> None:
        self.refused = 0
        self._now: Callable[[], float] | None = None
        self._enforced = False
        self._share = 0.0
        self._random = Random(0)
        self._retry_after = 1
        self._until: dict[str, float] = {}
        self._writes: dict[str, deque[float]] = {}

    def enforce(self, now: Callable[[], float]) -> None:
        """The FAQ's limits hold from now on, by the seconds of `now`, which is the client's."""
        self._now, self._enforced = now, True

    def refuse(
        self, share: float, *, seed: int, retry_after: int, now: Callable[[], float]
    ) -> None:
        """That share of all writes is refused, the same ones for the same seed and order."""
        self._now, self._share = now, share
        self._random, self._retry_after = Random(seed), retry_after

    def check(self, arguments: Arguments) -> None:
        """Raises `ApiError` 429, and `Violation` for who did not wait."""
        method, chat = arguments.method, str(arguments.chat())
        if method == "sendMessageDraft":
            # Counted apart: a flood of previews does not keep messages back.
            chat = f"draft of {chat}"
        if self._now is None or method in _FREE or not method.startswith(_WRITES):
            return
        now = self._now()
        if now < self._until.get(chat, 0.0):
            raise Violation(
                f"{method} to {chat}: called {self._until[chat] - now:.1f} s before retry_after"
            )
        if self._enforced:
            self._count(chat, now)
        if self._share and self._random.random() < self._share:
            self._refuse(chat, now, float(self._retry_after))

    def _count(self, chat: str, now: float) -> None:
        limits = [("", ALL_A_SECOND, 1.0), (chat, CHAT_BURST, float(CHAT_BURST))]
        if chat.startswith("-"):
            limits.append((f"{chat} a minute", GROUP_A_MINUTE, 60.0))
        for name, most, within in limits:
            times = self._writes.setdefault(name, deque())
            while times and now - times[0] >= within:
                times.popleft()
            if len(times) >= most:
                self._refuse(chat, now, times[0] + within - now)
        for name, _, _ in limits:
            self._writes[name].append(now)

    def _refuse(self, chat: str, now: float, seconds: float) -> None:
        whole = max(1, int(seconds) + (seconds > int(seconds)))
        self.refused += 1
        self._until[chat] = now + whole
        raise ApiError(429, f"Too Many Requests: retry after {whole}", {"retry_after": whole})
