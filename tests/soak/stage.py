"""What actions and faults work with: the town, the books, the dice, and bounded waits."""

import asyncio
import re
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from random import Random

from runtime.ports.clock import Clock
from tests.scenario.gateway.town import Town
from tests.soak.gateways import Gateways
from tests.soak.ledger import Ledger, Wish
from tests.soak.places import Place
from tests.soak.script import Script
from tests.wire.openai import ModelServer

PATIENCE_S = 45.0
"""How long a person waits before they go on with something else."""


@dataclass
class Stage:
    """Everything that a scene may touch. `denied` are tokens whose effect must not happen."""

    town: Town
    gateways: Gateways
    ledger: Ledger
    script: Script
    clock: Clock
    random: Random
    began: float
    denied: set[str] = field(default_factory=set)

    @property
    def model(self) -> ModelServer:
        """The model's server."""
        return self.town.model

    def now(self) -> float:
        """Seconds since the soak began."""
        return self.clock.monotonic() - self.began

    def wish(self, place: Place, kind: str) -> Wish:
        """A wish that is said by other means than `says`."""
        return self.ledger.wish(place.name, kind, self.now())

    async def says(self, place: Place, kind: str) -> Wish:
        """Somebody writes a message of this kind."""
        wish = self.wish(place, kind)
        await place.says(f"{wish.token} {kind}, please")
        return wish

    async def said(self, number: int) -> None:
        """Return when so many messages were said, by everybody together."""
        await self.ledger.signal.until(lambda: len(self.ledger.wishes) >= number)

    async def answered(self, wishes: Sequence[Wish]) -> bool:
        """Wait until all are answered or excused; False where patience ends first."""
        over = self.ledger.signal.until(lambda: not any(wish.is_open for wish in wishes))
        return await self.within(over)

    async def found(self, place: Place, wish: Wish, pattern: re.Pattern[str]) -> str | None:
        """The code on the card of a wish; None where patience ends first, or it needs none."""
        ledger = self.ledger

        def there() -> bool:
            found = ledger.find(place.name, wish.token, pattern)
            return found is not None or not wish.is_open

        await self.within(ledger.signal.until(there))
        return ledger.find(place.name, wish.token, pattern) if wish.is_open else None

    async def within(self, waiting: Awaitable[object], seconds: float = PATIENCE_S) -> bool:
        """Wait with patience; False where it ends first."""
        try:
            async with asyncio.timeout(seconds):
                await waiting
        except TimeoutError:
            return False
        return True
