"""A chat platform in memory: what was sent is kept, failures happen on command."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from runtime.domain.errors import DeliveryError
from runtime.domain.messages import ChatAddress, OutboundMessage, Receipt, TextPart
from runtime.ports.chat import AdapterStatus, Capabilities, Posted
from runtime.ports.gatehouse import Gatehouse

FAST = Capabilities(
    chat_rate=1e6,
    chat_burst=1_000_000,
    account_rate=1e6,
    account_burst=1_000_000,
    typing_interval_s=None,
    edits=True,
)


@dataclass(frozen=True, slots=True)
class Sent:
    """One post as the platform shows it."""

    id: str
    outbox_id: str
    target: ChatAddress
    text: str
    message: OutboundMessage


class FakeChat:
    """Implements `ChatAdapter`; one post for each message, `failures` are raised first.

    `before_send` is awaited inside each send; `find` makes `lookup` answer from what was sent.
    """

    def __init__(
        self, channel: str = "test", account: str = "A1", capabilities: Capabilities = FAST
    ) -> None:
        self.channel = channel
        self.account = account
        self.capabilities = capabilities
        self.sent: list[Sent] = []
        self.edits: list[OutboundMessage] = []
        self.typings: list[tuple[str, str]] = []
        self.failures: list[DeliveryError] = []
        self.lost_receipts = 0
        self.gatehouse: Gatehouse | None = None
        self.listening = asyncio.Event()
        self._changed = asyncio.Event()

    def status(self) -> AdapterStatus:
        """Always connected."""
        return AdapterStatus(connected=True)

    async def connect(self) -> None:
        """Nothing to learn."""

    async def listen(self, gatehouse: Gatehouse) -> None:
        """Hand the gatehouse to the test, which speaks for the platform."""
        self.gatehouse = gatehouse
        self.listening.set()
        await asyncio.Event().wait()

    async def send(
        self, message: OutboundMessage, *, posted: Sequence[str], on_posted: Posted
    ) -> Receipt:
        """Keep the message; the n-th failure that was ordered is raised instead."""
        if posted:
            return Receipt(message_ids=tuple(posted))
        if self.failures:
            raise self.failures.pop(0)
        identifier = f"{self.channel}-{len(self.sent) + 1}"
        text = "\n".join(
            part.markdown if isinstance(part, TextPart) else part.kind for part in message.parts
        )
        self.sent.append(Sent(identifier, message.outbox_id, message.target, text, message))
        self._changed.set()
        return Receipt(message_ids=(identifier,))

    async def edit(self, message: OutboundMessage, receipt: Receipt) -> None:
        """Keep the edit."""
        self.edits.append(message)
        self._changed.set()

    async def typing(self, target: ChatAddress, state: str) -> None:
        """Keep the signal."""
        self.typings.append((target.chat_id, state))
        self._changed.set()

    async def lookup(self, message: OutboundMessage, *, posted: Sequence[str]) -> Receipt | None:
        """The post of a message, if there is one."""
        for one in self.sent:
            if one.outbox_id == message.outbox_id:
                return Receipt(message_ids=(one.id,))
        return None

    async def close(self) -> None:
        """Nothing to close."""

    def texts(self, chat_id: str | None = None) -> list[str]:
        """What a person sees, in order."""
        return [one.text for one in self.sent if chat_id in (None, one.target.chat_id)]

    async def until(self, condition: Callable[[], bool], within: float = 20.0) -> None:
        """Wait until `condition` holds; it is looked at after each change."""
        async with asyncio.timeout(within):
            while not condition():
                self._changed.clear()
                await self._changed.wait()
