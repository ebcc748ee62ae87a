"""Slack's limits: its 429 answers, kept until their time is over, what is better not reached, and
what it refuses altogether.

Slack counts by method (SLK-8), and posts by channel as well; so a limit on editing in one channel
stops neither posts nor other channels. It waits for nobody: who calls too early is told how long.
"""

from collections import deque

import structlog

from adapters.platforms.recent_values import Expiring, Recent
from adapters.slack.failures import RateLimited, Refused, SlackFailure, refuses_method
from runtime.domain.messages import ChatAddress
from runtime.ports.clock import Clock

log = structlog.get_logger(__name__)

REFUSED_S = 3600.0
_OF_CHAT = frozenset(
    {
        "channel_not_found",
        "channel_type_not_supported",
        "is_archived",
        "method_not_supported_for_channel_type",
        "not_in_channel",
        "restricted_action",
    }
)
_OF_THREAD = frozenset(
    {
        "invalid_recipient",
        "invalid_thread_ts",
        "missing_recipient_team_id",
        "missing_recipient_user_id",
        "thread_not_found",
        "user_not_found",
        "user_not_in_channel",
    }
)
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


class Refusals:
    """Where something that is only good to have is refused, so that nobody tries it each time.

    Believed for `REFUSED_S`: an installation is mended by hand.
    """

    def __init__(self, clock: Clock) -> None:
        self._places: Expiring[tuple[str, str], bool] = Expiring(clock, REFUSED_S)

    def hold(self, target: ChatAddress) -> bool:
        """Whether it was refused there not long ago."""
        chat, thread = target.chat_id, target.thread_id or ""
        return any(self._places.get(place) for place in (("", ""), (chat, ""), (chat, thread)))

    def believe(self, failure: SlackFailure, target: ChatAddress) -> bool:
        """Keep what a failure says of a chat, of a thread, or of all; False where it says nothing
        of the kind."""
        if not refuses_method(failure):
            return False
        code = failure.error if isinstance(failure, Refused) else ""
        chat = target.chat_id if code in _OF_CHAT | _OF_THREAD else ""
        thread = (target.thread_id or "") if code in _OF_THREAD else ""
        self._places.put((chat, thread), True)
        log.warning("slack.refused_for_now", reason=str(failure), chat=chat, thread=thread)
        return True


class UseLimit:
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
