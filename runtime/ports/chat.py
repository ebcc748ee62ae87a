"""A chat platform, as the engine sees it. The engine asks capabilities, never names."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from runtime.domain.messages import Attachment, ChatAddress, OutboundMessage, Receipt
from runtime.ports.gatehouse import Gatehouse


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a platform can do. Rates are sends per second; bursts are sends.

    ``lookup``: a send whose outcome is unknown can be found again. ``repeatable``: whoever reads
    recognises a repeated send by its outbox id, so repeating one does no harm. ``group_rate`` and
    ``group_burst`` are for chats that are not direct; None where they are like the others.
    ``file_bytes`` is the largest file that may be sent; None where no limit is known.
    ``live_cards``: agents at work are shown by a message that is edited as they get on; elsewhere
    they are seen otherwise. ``edit_interval_s`` is how many seconds lie between two edits in one
    chat, whatever is edited (REN-4). ``command_prefix`` is what people begin a command with: a
    client that keeps the slash to itself needs another sign.
    """

    chat_rate: float = 1.0
    chat_burst: int = 5
    group_rate: float | None = None
    group_burst: int | None = None
    account_rate: float = 20.0
    account_burst: int = 20
    lookup: bool = False
    repeatable: bool = False
    typing_interval_s: float | None = 4.0
    edits: bool = False
    edit_interval_s: float = 0.0
    live_cards: bool = False
    files: bool = False
    file_bytes: int | None = None
    command_prefix: str = "/"


@dataclass(frozen=True, slots=True)
class AdapterStatus:
    """For /readyz, /v1/status and metrics. `detail` says what to do when not connected. `kind` is
    which of the platform's kinds of application this is, in its own words, as far as what arrived
    proves it; empty while nothing does."""

    connected: bool
    detail: str = ""
    kind: str = ""


Posted = Callable[[str], Awaitable[None]]
"""Awaited with the platform's message id after each post but the last, so that progress is durable,
and the next post waits for its turn in the buckets; the last is in the receipt."""


class Streams(Protocol):
    """Text that is shown while it grows (REN-4): native where the platform has it, else by edits.

    A message here is the row of the outbox that the run's reply will be; its text is all that was
    written so far, and for `close` the reply itself. What is shown meanwhile is best effort; the
    reply is not.
    """

    def interval_s(self, target: ChatAddress) -> float | None:
        """Seconds between two updates of one message; None where this chat gets no stream."""
        ...

    def grows_by_edits(self, target: ChatAddress, stream: str | None) -> bool:
        """Whether the text of a stream is shown by editing its post; with None, whether that of one
        that is opened now would be."""
        ...

    def ends_by_edit(
        self, message: OutboundMessage, stream: str, *, shown: OutboundMessage | None = None
    ) -> bool:
        """Whether `close` edits the post of the stream to make it the reply."""
        ...

    async def open(self, message: OutboundMessage) -> str:
        """Show the first of it; the id of its post, or "" where it leaves none that stays.

        Raises `DeliveryRetry`, `DeliveryRejected` (no stream here), `DeliveryUnknown`.
        """
        ...

    async def grow(self, message: OutboundMessage, stream: str) -> None:
        """Show all of the text so far. Raises `DeliveryRetry` (slower), or `DeliveryRejected` and
        `DeliveryUnknown` (it grows no more; `close` still mends it)."""
        ...

    async def close(
        self,
        message: OutboundMessage,
        stream: str,
        *,
        posted: Sequence[str],
        on_posted: Posted,
        shown: OutboundMessage | None = None,
    ) -> Receipt:
        """The reply in the place of what was streamed, and after it the posts that it needs more.

        ``shown`` is what the stream surely shows, if the caller knows: a post that reads so already
        is not edited.
        ``posted`` are the posts that are whole already, beginning with the stream's own. Safe to
        repeat, and by a process that did not open it. Raises as `ChatAdapter.send` does.
        """
        ...

    async def find(self, message: OutboundMessage) -> str | None:
        """The stream of this message that a process opened which then died; None where there is
        none or nobody can look. Raises `DeliveryRetry`."""
        ...


class Files(Protocol):
    """Files that came with messages."""

    def fetch(self, attachment: Attachment) -> AsyncIterator[bytes]:
        """The file's content in pieces; whoever reads it counts them.

        Raises `Unavailable` (try again later), `Forbidden` or `NotFound` (it cannot be had).
        """
        ...


@dataclass(frozen=True, slots=True)
class WebhookRequest:
    """A platform's HTTP request as it came. Header names are in lower case."""

    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class WebhookResponse:
    """What the platform is answered; the body is text or JSON, as `content_type` says."""

    status: int
    body: str = ""
    content_type: str = "text/plain"


class Webhook(Protocol):
    """The way in of a platform that calls us. Every replica serves it, whoever holds the lease."""

    @property
    def path(self) -> str:
        """Below ``/hooks/``: ``slack`` or ``slack/<name>``, never a secret."""
        ...

    async def receive(self, request: WebhookRequest, gatehouse: Gatehouse) -> WebhookResponse:
        """Check who calls, store, then answer (MSG-1). Raises `StoreUnavailable`, which the server
        answers with 503, so that the platform delivers again."""
        ...


class ChatAdapter(Protocol):
    """One account on one platform. Translates; decides nothing."""

    @property
    def channel(self) -> str: ...

    @property
    def account(self) -> str:
        """The bot's identity there: Slack's team, Telegram's bot id. Known after `connect`."""
        ...

    @property
    def capabilities(self) -> Capabilities: ...

    @property
    def streams(self) -> Streams | None:
        """How text grows here; None where it does not."""
        ...

    @property
    def files(self) -> Files | None:
        """How attachments are fetched; None where messages bring none, or bring them along."""
        ...

    @property
    def webhook(self) -> Webhook | None:
        """Where the platform calls us; None where we call it."""
        ...

    def status(self) -> AdapterStatus: ...

    async def connect(self) -> None:
        """Learn the account's identity. Raises `Unavailable` (try again later) or
        `Forbidden` (the token is wrong: tell the operator and give up)."""
        ...

    async def listen(self, gatehouse: Gatehouse) -> None:
        """Receive until cancelled: store by `gatehouse.accept`, then acknowledge (MSG-1)."""
        ...

    async def send(
        self, message: OutboundMessage, *, posted: Sequence[str], on_posted: Posted
    ) -> Receipt:
        """Post what is not among `posted` yet (ids of an earlier attempt's posts, in order).

        Rendering is deterministic, so that the n-th post is the same at every attempt.
        Raises `DeliveryRetry`, `DeliveryRejected` or `DeliveryUnknown`.
        """
        ...

    async def edit(self, message: OutboundMessage, receipt: Receipt) -> None:
        """Replace what `receipt` names by `message`: a card that was decided."""
        ...

    async def typing(self, target: ChatAddress, state: str) -> None:
        """Show that a run works: `state` as in `Activity.state`; ``done`` ends it. Best effort."""
        ...

    async def lookup(self, message: OutboundMessage, *, posted: Sequence[str]) -> Receipt | None:
        """The posts that are there of a message whose outcome is unknown; None where there is none.

        They may be fewer than the message needs: `send` is then called with them as `posted`.
        Only called where `capabilities.lookup`. Raises `DeliveryRetry`, or `DeliveryRejected`
        where the platform does not let us look.
        """
        ...

    async def close(self) -> None: ...
