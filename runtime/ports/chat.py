"""A chat platform, as the engine sees it. The engine asks capabilities, never names."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from runtime.domain.messages import ChatAddress, OutboundMessage, Receipt
from runtime.ports.gatehouse import Gatehouse


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a platform can do. Rates are sends per second; bursts are sends.

    ``lookup``: a send whose outcome is unknown can be found again. ``repeatable``: whoever reads
    recognises a repeated send by its outbox id, so repeating one does no harm.
    """

    chat_rate: float = 1.0
    chat_burst: int = 5
    account_rate: float = 20.0
    account_burst: int = 20
    lookup: bool = False
    repeatable: bool = False
    typing_interval_s: float | None = 4.0
    buttons: bool = False
    edits: bool = False
    threads: bool = False
    files: bool = False
    reactions: bool = False


@dataclass(frozen=True, slots=True)
class AdapterStatus:
    """For /readyz, /v1/status and metrics. `detail` says what to do when not connected."""

    connected: bool
    detail: str = ""


Posted = Callable[[str], Awaitable[None]]
"""Awaited with the platform's message id after each post but the last, so that progress is durable;
the last is in the receipt."""


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
