"""`ChatAdapter` for the channels that the gateway's own HTTP server serves.

Their messages come in through the server; what goes out is published on the bus, from where the
event stream takes it to the page. A message counts as delivered when it is published: whoever was
not looking reads it from the conversation later.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from adapters.web.egress import message_event
from runtime.domain.messages import ChatAddress, OutboundMessage, Receipt
from runtime.ports.bus import LIVE, Bus
from runtime.ports.chat import AdapterStatus, Capabilities, Posted
from runtime.ports.gatehouse import Gatehouse

ACCOUNT: Final = "local"
CHANNELS: Final = ("web", "terminal", "api")
_CAPABILITIES = Capabilities(
    chat_rate=1_000.0,
    chat_burst=1_000,
    account_rate=10_000.0,
    account_burst=10_000,
    lookup=True,
    # The page hears of a run's activity from the bus itself.
    typing_interval_s=None,
    edits=True,
    files=True,
)


class WebAdapter:
    """One of the local channels. The page follows the live events itself, comes in through the
    gateway's own server, and uploads files with the message."""

    account = ACCOUNT
    capabilities = _CAPABILITIES
    streams = None
    files = None
    webhook = None

    def __init__(self, bus: Bus, *, channel: str = "web") -> None:
        if channel not in CHANNELS:
            raise ValueError(f"{channel} is no local channel")
        self._bus = bus
        self.channel = channel
        self._connected = False

    def status(self) -> AdapterStatus:
        """Connected from `connect` to `close`: there is no other side that could be away."""
        return AdapterStatus(connected=self._connected)

    async def connect(self) -> None:
        self._connected = True

    async def listen(self, gatehouse: Gatehouse) -> None:  # noqa: ARG002 - the port's signature
        """Wait until cancelled: requests come in through the HTTP server."""
        await asyncio.Event().wait()

    async def send(
        self,
        message: OutboundMessage,
        *,
        posted: Sequence[str],  # noqa: ARG002 - one post, so there is never an earlier one
        on_posted: Posted,  # noqa: ARG002
    ) -> Receipt:
        self._bus.publish(LIVE, message_event(message))
        return Receipt(message_ids=(message.outbox_id,))

    async def edit(self, message: OutboundMessage, receipt: Receipt) -> None:  # noqa: ARG002
        self._bus.publish(LIVE, message_event(message, changed=True))

    async def typing(self, target: ChatAddress, state: str) -> None:
        """Nothing to do: activity is on the bus already."""

    async def lookup(
        self,
        message: OutboundMessage,
        *,
        posted: Sequence[str],  # noqa: ARG002
    ) -> Receipt | None:
        """It is in the conversation, so it arrived."""
        self._bus.publish(LIVE, message_event(message))
        return Receipt(message_ids=(message.outbox_id,))

    async def close(self) -> None:
        self._connected = False
