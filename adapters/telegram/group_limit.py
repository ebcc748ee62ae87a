"""Telegram's limit for groups: 20 messages a minute (TEL-5; Bot FAQ, "My bot is hitting limits").

The engine's buckets keep an even pace; this holds the limit itself, which bursts and edits share.
It never waits: it says for how long, and the outbox waits. After a restart it starts empty, and
Telegram's own 429 helps.
"""

from collections import deque

from runtime.ports.clock import Clock

MOST = 20
WINDOW_S = 60.0
_MANY = 1_000


class GroupWindow:
    """The times of each group's last posts, within one minute."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._posts: dict[str, deque[float]] = {}

    def take(self, chat: str, *, spare: int = 0) -> float:
        """Count a post and answer 0, or count nothing and say how many seconds to wait.

        `spare` is how many posts must still be free behind this one.
        """
        now = self._clock.monotonic()
        if len(self._posts) > _MANY:
            self._posts = {k: v for k, v in self._posts.items() if now - v[-1] < WINDOW_S}
        posts = self._posts.setdefault(chat, deque(maxlen=MOST))
        while posts and now - posts[0] >= WINDOW_S:
            posts.popleft()
        over = len(posts) + spare - MOST
        if over >= 0:
            return WINDOW_S - (now - posts[over])
        posts.append(now)
        return 0.0
