"""Token buckets: how often a platform may be called, per chat and per account (MSG-10)."""

from dataclasses import dataclass

from runtime.ports.clock import Clock


@dataclass(slots=True)
class TokenBucket:
    """`rate` tokens a second up to `burst`; `take` says how many seconds to wait first."""

    rate: float
    burst: int
    tokens: float
    at: float
    silent_until: float = 0.0

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

    def is_full(self, now: float) -> bool:
        """Whether forgetting this bucket would change nothing."""
        full = self.tokens + (now - self.at) * self.rate >= self.burst
        return full and now >= self.silent_until

    def _fill(self, now: float) -> None:
        self.tokens = min(float(self.burst), self.tokens + (now - self.at) * self.rate)
        self.at = now


Rate = tuple[float, int]
"""Messages a second, and how many may come at once."""


class Buckets:
    """An account's bucket and those of its chats; idle chats are forgotten.

    `group` is for chats that are not direct, where the platform counts them otherwise.
    """

    def __init__(
        self, clock: Clock, *, chat: Rate, account: Rate, group: Rate | None = None
    ) -> None:
        self._clock = clock
        self._chat = chat
        self._group = group or chat
        self._account = TokenBucket.full(clock, rate=account[0], burst=account[1])
        self._chats: dict[str, TokenBucket] = {}

    async def take(self, chat: str, *, group: bool = False) -> None:
        """Wait until a message may go to `chat`: for the chat first, so that a silent one holds
        no token of the account that another could use."""
        await self._wait(self._bucket(chat, group=group))
        await self._wait(self._account)

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

    async def _wait(self, bucket: TokenBucket) -> None:
        wait = bucket.take(self._clock.monotonic())
        if wait > 0:
            await self._clock.sleep(wait)

    def _bucket(self, chat: str, *, group: bool) -> TokenBucket:
        found = self._chats.get(chat)
        if found is None:
            if len(self._chats) > 10_000:
                now = self._clock.monotonic()
                self._chats = {k: b for k, b in self._chats.items() if not b.is_full(now)}
            rate, burst = self._group if group else self._chat
            found = self._chats[chat] = TokenBucket.full(self._clock, rate=rate, burst=burst)
        return found
