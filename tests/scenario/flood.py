"""A platform that refuses a third of all calls for a while, and what its answers cost at best."""

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from runtime.domain.errors import DeliveryRetry
from runtime.domain.messages import OutboundMessage, Receipt
from runtime.ports.chat import Posted
from tests.fakes.chat import FAST, FakeChat
from tests.fakes.clock import FakeClock

# The limits of Telegram, as its adapter states them.
CHAT_RATE, CHAT_BURST = 1.0, 3
ACCOUNT_RATE, ACCOUNT_BURST = 30.0, 30
SLACK_S = 1e-6


@dataclass
class Served:
    """What one chat was answered: None for a post, else the seconds of a refusal."""

    answers: list[float | None] = field(default_factory=list)
    silent_until: float = 0.0

    def at_best(self) -> float:
        """When the last answer can have come, for a client that loses no time: it spends the
        chat's tokens as they come, and waits each refusal out."""
        now, tokens, at = 0.0, float(CHAT_BURST), 0.0
        for refused in self.answers:
            tokens = min(float(CHAT_BURST), tokens + (now - at) * CHAT_RATE)
            at = now
            if tokens < 1:
                now += (1 - tokens) / CHAT_RATE
                tokens, at = 1.0, now
            tokens -= 1
            now += refused or 0.0
        return now


class FloodedChat(FakeChat):
    """Answers a third of all calls with 429, by a seed, and counts calls that come too early."""

    def __init__(self, clock: FakeClock, *, seed: int) -> None:
        super().__init__(
            capabilities=replace(
                FAST,
                chat_rate=CHAT_RATE,
                chat_burst=CHAT_BURST,
                account_rate=ACCOUNT_RATE,
                account_burst=ACCOUNT_BURST,
                lookup=True,
            )
        )
        self.clock = clock
        self.served: dict[str, Served] = defaultdict(Served)
        self.early = 0
        self.last = 0.0
        self._random = random.Random(seed)

    async def send(
        self, message: OutboundMessage, *, posted: Sequence[str], on_posted: Posted
    ) -> Receipt:
        """Refuse or post."""
        now, chat = self.clock.monotonic(), self.served[message.target.chat_id]
        self.early += now < chat.silent_until - SLACK_S
        self.last = now
        if self._random.random() < 1 / 3:
            wait = float(self._random.randint(1, 5))
            chat.answers.append(wait)
            chat.silent_until = now + wait
            raise DeliveryRetry("429", after_s=wait)
        chat.answers.append(None)
        return await super().send(message, posted=posted, on_posted=on_posted)

    @property
    def calls(self) -> int:
        return sum(len(one.answers) for one in self.served.values())

    def needed_s(self) -> float:
        """What the limits and the served Retry-After need: of the slowest chat, or of all calls."""
        account = (self.calls - ACCOUNT_BURST) / ACCOUNT_RATE
        return max(account, *(one.at_best() for one in self.served.values()))
