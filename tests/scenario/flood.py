"""A platform that refuses a third of all calls for a while, and what its answers cost at best."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from runtime.domain.errors import DeliveryRetry
from runtime.domain.messages import OutboundMessage, Receipt
from runtime.ports.chat import Capabilities, Posted
from tests.fakes.chat import FAST, FakeChat
from tests.fakes.clock import FakeClock

# The limits of direct chats, as the adapters state them.
TELEGRAM = replace(
    FAST, chat_rate=1.0, chat_burst=3, account_rate=30.0, account_burst=30, lookup=True
)
SLACK = replace(TELEGRAM, chat_burst=5, account_rate=20.0, account_burst=20)
SLACK_S = 1e-6


@dataclass
class Served:
    """What one chat was answered: None for a post, else the seconds of a refusal."""

    limits: Capabilities
    answers: list[float | None] = field(default_factory=list)
    silent_until: float = 0.0
    luck: random.Random = field(default_factory=random.Random)

    def at_best(self) -> float:
        """When the last answer can have come, for a client that loses no time: it spends the
        chat's tokens as they come, and waits each refusal out."""
        rate, burst = self.limits.chat_rate, float(self.limits.chat_burst)
        now, tokens, at = 0.0, burst, 0.0
        for refused in self.answers:
            tokens = min(burst, tokens + (now - at) * rate)
            at = now
            if tokens < 1:
                now += (1 - tokens) / rate
                tokens, at = 1.0, now
            tokens -= 1
            now += refused or 0.0
        return now


class FloodedChat(FakeChat):
    """Answers a third of all calls with 429 and counts calls that come too early.

    Each chat has its own luck by the seed: it does not hang on which chat is served first.
    """

    def __init__(self, clock: FakeClock, *, seed: int, limits: Capabilities = TELEGRAM) -> None:
        super().__init__(capabilities=limits)
        self.clock = clock
        self.served: dict[str, Served] = {}
        self.seed = seed
        self.early = 0
        self.last = 0.0

    async def send(
        self, message: OutboundMessage, *, posted: Sequence[str], on_posted: Posted
    ) -> Receipt:
        """Refuse or post."""
        now, name = self.clock.monotonic(), message.target.chat_id
        chat = self.served.get(name)
        if chat is None:
            luck = random.Random(f"{self.seed} {name}")
            chat = self.served[name] = Served(self.capabilities, luck=luck)
        self.early += now < chat.silent_until - SLACK_S
        self.last = now
        if chat.luck.random() < 1 / 3:
            wait = float(chat.luck.randint(1, 5))
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
        limits = self.capabilities
        account = (self.calls - limits.account_burst) / limits.account_rate
        return max(account, *(one.at_best() for one in self.served.values()))
