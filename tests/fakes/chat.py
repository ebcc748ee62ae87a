"""A chat platform in memory: what was sent is kept, failures happen on command."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from runtime.domain.errors import DeliveryError, DeliveryRejected, DeliveryUnknown
from runtime.domain.messages import ChatAddress, OutboundMessage, Receipt, TextPart
from runtime.ports.chat import AdapterStatus, Capabilities, Files, Posted, Streams, Webhook
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

    With `shows_edits`, an edit changes the post, else it is only kept in `edits`. The next
    `unanswered` posts are kept, and their senders hear nothing of it.
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
        self.shows_edits = False
        self.unanswered = 0
        self.gatehouse: Gatehouse | None = None
        self.streams: Streams | None = None
        self.files: Files | None = None
        self.webhook: Webhook | None = None
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
        receipt = Receipt(message_ids=(self.post(message),))
        if self.unanswered:
            self.unanswered -= 1
            raise DeliveryUnknown("no answer")
        return receipt

    def post(self, message: OutboundMessage) -> str:
        """The platform takes a message; the id of its post."""
        identifier = f"{self.channel}-{len(self.sent) + 1}"
        self.sent.append(
            Sent(identifier, message.outbox_id, message.target, _text(message), message)
        )
        self._changed.set()
        return identifier

    def change(self, identifier: str, message: OutboundMessage) -> bool:
        """The platform changes a post; False where there is none of that id."""
        for place, one in enumerate(self.sent):
            if one.id == identifier:
                self.sent[place] = replace(one, text=_text(message), message=message)
                self._changed.set()
                return True
        return False

    async def edit(self, message: OutboundMessage, receipt: Receipt) -> None:
        """Keep the edit; a post that is there reads so from now on."""
        self.edits.append(message)
        if self.shows_edits:
            for identifier in receipt.message_ids:
                self.change(identifier, message)
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


class FakeStreams:
    """Implements `Streams` on a `FakeChat`: a post that changes, or with `drafts` none that stays.

    `calls` are what was asked, with the text; failures of an operation are raised first. With
    `finds`, a post is found again by the message's outbox id.
    """

    def __init__(
        self, chat: FakeChat, *, interval: float | None = 1.0, drafts: bool = False
    ) -> None:
        self.chat = chat
        self.interval = interval
        self.drafts = drafts
        self.finds = True
        self.calls: list[tuple[str, str]] = []
        self.failures: dict[str, list[DeliveryError]] = {}
        self.hold: dict[str, Callable[[], Awaitable[None]]] = {}

    def interval_s(self, target: ChatAddress) -> float | None:
        """The same for every chat."""
        return self.interval

    def grows_by_edits(self, target: ChatAddress, stream: str | None) -> bool:
        """A draft leaves no post that could be changed."""
        return not self.drafts and stream != ""

    def ends_by_edit(
        self, message: OutboundMessage, stream: str, *, shown: OutboundMessage | None = None
    ) -> bool:
        """The same; a post that reads so already is left."""
        return stream != "" and not (shown is not None and _text(shown) == _text(message))

    async def open(self, message: OutboundMessage) -> str:
        """Post the first of it."""
        await self._asked("open", message)
        identifier = "" if self.drafts else self.chat.post(message)
        await self._held("opened")
        return identifier

    async def grow(self, message: OutboundMessage, stream: str) -> None:
        """Change the post."""
        await self._asked("grow", message)
        if not self.drafts and not self.chat.change(stream, message):
            raise DeliveryRejected("there is no such post")

    async def close(
        self,
        message: OutboundMessage,
        stream: str,
        *,
        posted: Sequence[str],
        on_posted: Posted,
        shown: OutboundMessage | None = None,
    ) -> Receipt:
        """Put the reply in the post's place."""
        await self._asked("close", message)
        if stream == "" or posted:
            # What is among `posted` is whole already.
            return await self.chat.send(message, posted=posted, on_posted=on_posted)
        reads_so = shown is not None and _text(shown) == _text(message)
        if not reads_so and not self.chat.change(stream, message):
            raise DeliveryRejected("there is no such post")
        return Receipt(message_ids=(stream,))

    async def find(self, message: OutboundMessage) -> str | None:
        """The post of a message by its outbox id."""
        await self._asked("find", message)
        ids = [one.id for one in self.chat.sent if one.outbox_id == message.outbox_id]
        return ids[0] if ids and self.finds else None

    async def _asked(self, operation: str, message: OutboundMessage) -> None:
        self.calls.append((operation, _text(message)))
        await self._held(operation)
        if self.failures.get(operation):
            raise self.failures[operation].pop(0)

    async def _held(self, operation: str) -> None:
        if operation in self.hold:
            await self.hold[operation]()


def _text(message: OutboundMessage) -> str:
    return "\n".join(
        part.markdown if isinstance(part, TextPart) else part.kind for part in message.parts
    )
