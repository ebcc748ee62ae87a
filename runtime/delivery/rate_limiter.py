"""How often a platform may be called: token buckets per chat and per account (MSG-10), and the
pause between two edits of a chat (REN-4)."""

import asyncio
import heapq
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from runtime.ports.clock import Clock

ROUNDING = 1e-9
MOST_CHATS = 10_000
KEEPS_S = 10.0
"""How far back a refused message keeps its place among those that wait for the account."""


@dataclass(slots=True)
class TokenBucket:
    """`rate` tokens a second up to `burst`; `take` says how many seconds to wait first.

    A chat's bucket remembers which `message` asked last, and `since` when that one is asking.
    """

    rate: float
    burst: int
    tokens: float
    at: float
    silent_until: float = 0.0
    message: str = ""
    since: float = 0.0

    @classmethod
    def full(cls, clock: Clock, *, rate: float, burst: int) -> "TokenBucket":
        """A bucket that nobody has taken from."""
        return cls(rate, burst, float(burst), clock.monotonic())

    def take(self, now: float) -> float:
        """Take one token, into debt if need be; the seconds until it is covered."""
        self._fill(now)
        self.tokens -= 1
        owed = 0.0 if self.tokens >= 0 else -self.tokens / self.rate
        return max(owed, self.silent_until - now, 0.0)

    def block(self, now: float, seconds: float) -> None:
        """The platform asked for silence: nothing for `seconds`; its allowance grows meanwhile."""
        self.silent_until = max(self.silent_until, now + seconds)

    def take_spare(self, now: float, *, leave: int = 1) -> bool:
        """Take a token only if as many are left for messages; never while one waits."""
        self._fill(now)
        if self.tokens < 1 + leave or now < self.silent_until:
            return False
        self.tokens -= 1
        return True

    def take_whole(self, now: float) -> float:
        """Take a token if there is one; else the seconds until there is."""
        self._fill(now)
        if self.tokens < 1 - ROUNDING:
            return (1 - self.tokens) / self.rate
        self.tokens -= 1
        return 0.0

    def is_full(self, now: float) -> bool:
        """Whether forgetting this bucket would change nothing."""
        full = self.tokens + (now - self.at) * self.rate >= self.burst
        return full and now >= self.silent_until

    def _fill(self, now: float) -> None:
        self.tokens = min(float(self.burst), self.tokens + (now - self.at) * self.rate)
        self.at = now


Rate = tuple[float, int]
"""Messages a second, and how many may come at once."""


class Turns:
    """The tokens of an account, each to whoever has asked for the longest.

    A message that its platform refused keeps its place: it has waited out the refusal already, and
    would else wait once more for every chat that was not refused.
    """

    def __init__(self, clock: Clock, bucket: TokenBucket) -> None:
        self._clock = clock
        self._bucket = bucket
        self._order = itertools.count()
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []

    async def take(self, since: float) -> None:
        """Wait for a token as one who asks `since` that moment of the clock."""
        if not self._waiting and not self._bucket.take_whole(self._clock.monotonic()):
            return
        turn = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (since, next(self._order), turn))
        if len(self._waiting) == 1:
            self._serve()
        await turn

    def _serve(self) -> None:
        """Give out what there is, and come back for the rest."""
        while self._waiting:
            turn = self._waiting[0][2]
            if not turn.cancelled():
                wait = self._bucket.take_whole(self._clock.monotonic())
                if wait > 0:
                    self._clock.call_later(wait, self._serve)
                    return
                turn.set_result(None)
            heapq.heappop(self._waiting)


class EditPace:
    """Edits in a chat, with a pause of `every_s` seconds between the end of one and the next."""

    def __init__(self, clock: Clock, every_s: float) -> None:
        self._clock = clock
        self._every_s = every_s
        self._next: dict[str, float] = {}

    def wait_s(self, chat: str) -> float:
        """The seconds until an edit may be made; whoever waits for a turn is counted in."""
        return max(0.0, self._next.get(chat, 0.0) - self._clock.monotonic())

    def begin(self, chat: str) -> float:
        """Take the next turn; the seconds until it comes. Others come behind it."""
        wait = self.wait_s(chat)
        self._keep(chat, self._clock.monotonic() + wait + self._every_s)
        return wait

    def ended(self, chat: str) -> None:
        """The edit that was begun is made, or has failed."""
        self._keep(chat, self._clock.monotonic() + self._every_s)

    @asynccontextmanager
    async def turn(self, chat: str) -> AsyncIterator[None]:
        """Make one edit inside the block, when it is time."""
        wait = self.begin(chat)
        if wait > 0:
            await self._clock.sleep(wait)
        try:
            yield
        finally:
            self.ended(chat)

    def _keep(self, chat: str, until: float) -> None:
        if self._every_s <= 0:
            return
        if len(self._next) > MOST_CHATS:
            now = self._clock.monotonic()
            self._next = {key: at for key, at in self._next.items() if at > now}
        self._next[chat] = max(until, self._next.get(chat, 0.0))


class Buckets:
    """An account's bucket and those of its chats; idle chats are forgotten.

    `group` is for chats that are not direct, where the platform counts them otherwise. `edits` is
    the pace of edits, `edit_every_s` seconds apart.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        chat: Rate,
        account: Rate,
        group: Rate | None = None,
        edit_every_s: float = 0.0,
    ) -> None:
        self.edits = EditPace(clock, edit_every_s)
        self._clock = clock
        self._chat = chat
        self._group = group or chat
        self._account = TokenBucket.full(clock, rate=account[0], burst=account[1])
        self._turns = Turns(clock, self._account)
        self._chats: dict[str, TokenBucket] = {}

    async def take(self, chat: str, *, group: bool = False, message: str = "") -> None:
        """Wait until a message may go to `chat`: for the chat first, so that a silent one holds
        no token of the account that another could use. `message` is its id: one that asks again
        has asked since the first time."""
        bucket, now = self._bucket(chat, group=group), self._clock.monotonic()
        if message != bucket.message or not message:
            bucket.message, bucket.since = message, now
        # Not for ever: a chat that is refused again and again must not keep the others waiting.
        since, wait = max(bucket.since, now - KEEPS_S), bucket.take(now)
        if wait > 0:
            await self._clock.sleep(wait)
        await self._turns.take(since)

    def spare(self) -> bool:
        """Take an account token only if one is free: signals must not delay messages."""
        return self._account.take_spare(self._clock.monotonic())

    def spare_for(self, chat: str, *, group: bool = False) -> bool:
        """The same of a chat and its account, for an edit: a final reply outranks it."""
        now, bucket = self._clock.monotonic(), self._bucket(chat, group=group)
        # A chat that may hold one token only has none to leave.
        if not bucket.take_spare(now, leave=min(1, bucket.burst - 1)):
            return False
        if self._account.take_spare(now):
            return True
        bucket.tokens += 1
        return False

    def block(self, chat: str, seconds: float, *, group: bool = False) -> None:
        """Keep a chat silent for as long as its platform asked."""
        self._bucket(chat, group=group).block(self._clock.monotonic(), seconds)

    def _bucket(self, chat: str, *, group: bool) -> TokenBucket:
        found = self._chats.get(chat)
        if found is None:
            if len(self._chats) > MOST_CHATS:
                now = self._clock.monotonic()
                self._chats = {k: b for k, b in self._chats.items() if not b.is_full(now)}
            rate, burst = self._group if group else self._chat
            found = self._chats[chat] = TokenBucket.full(self._clock, rate=rate, burst=burst)
        return found
