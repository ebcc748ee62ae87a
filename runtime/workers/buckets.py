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

    @classmethod
    def full(cls, clock: Clock, *, rate: float, burst: int) -> "TokenBucket":
        """A bucket that nobody has taken from."""
        return cls(rate, burst, float(burst), clock.monotonic())

    def take(self, now: float) -> float:
        """Take one token, into debt if need be; the seconds until it is covered."""
        self.tokens = min(float(self.burst), self.tokens + (now - self.at) * self.rate)
        self.at = now
        self.tokens -= 1
        return 0.0 if self.tokens >= 0 else -self.tokens / self.rate

    def block(self, now: float, seconds: float) -> None:
        """The platform asked for silence: nothing for `seconds`."""
        self.at = now
        self.tokens = min(self.tokens, 0.0) - seconds * self.rate

    def is_full(self, now: float) -> bool:
        """Whether forgetting this bucket would change nothing."""
        return self.tokens + (now - self.at) * self.rate >= self.burst


class Buckets:
    """An account's bucket and those of its chats; idle chats are forgotten."""

    def __init__(
        self, clock: Clock, *, chat: tuple[float, int], account: tuple[float, int]
    ) -> None:
        self._clock = clock
        self._chat = chat
        self._account = TokenBucket.full(clock, rate=account[0], burst=account[1])
        self._chats: dict[str, TokenBucket] = {}

    async def take(self, chat: str) -> None:
        """Wait until a message may go to `chat`."""
        now = self._clock.monotonic()
        wait = max(self._bucket(chat).take(now), self._account.take(now))
        if wait > 0:
            await self._clock.sleep(wait)

    def spare(self) -> bool:
        """Take an account token only if one is free: signals must not delay messages."""
        now = self._clock.monotonic()
        if self._account.tokens + (now - self._account.at) * self._account.rate < 2:
            return False
        self._account.take(now)
        return True

    def block(self, chat: str, seconds: float) -> None:
        """Keep a chat silent for as long as its platform asked."""
        self._bucket(chat).block(self._clock.monotonic(), seconds)

    def _bucket(self, chat: str) -> TokenBucket:
        found = self._chats.get(chat)
        if found is None:
            if len(self._chats) > 10_000:
                now = self._clock.monotonic()
                self._chats = {k: b for k, b in self._chats.items() if not b.is_full(now)}
            rate, burst = self._chat
            found = self._chats[chat] = TokenBucket.full(self._clock, rate=rate, burst=burst)
        return found
