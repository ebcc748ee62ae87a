"""Socket Mode: tickets, several sockets at once, envelopes, acknowledgements, and bad days.

Each payload goes to one of the open sockets in turn. A socket that fell silent still counts as
open, as it does for Slack until somebody notices. Whatever was not acknowledged when its socket
went away is sent again over the next one.
"""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal

from aiohttp import WSCloseCode, WSMsgType, web

from tests.wire.slack.deliveries import Deliveries, Delivery
from tests.wire.slack.state import JsonObject

MAX_SOCKETS = 10
DisconnectReason = Literal["warning", "refresh_requested", "link_disabled", "too_many_websockets"]
AckHook = Callable[[Delivery], Awaitable[None]]


@dataclass(slots=True, eq=False)
class Link:
    """One socket. `retired` means that a disconnect frame told the client to leave it."""

    number: int
    socket: web.WebSocketResponse
    request: web.Request
    silent: bool = False
    retired: bool = False
    pings: int = 0
    pongs: int = 0
    received: list[JsonObject] = field(default_factory=list)

    @property
    def usable(self) -> bool:
        return not (self.retired or self.socket.closed)


class SocketHub:
    """The server's side of all Socket Mode connections of one application."""

    def __init__(
        self,
        deliveries: Deliveries,
        app_id: str,
        complain: Callable[[str, str], None],
        changed: Callable[[], Awaitable[None]],
    ) -> None:
        self.links: list[Link] = []
        self.on_ack: AckHook | None = None
        self.next_link: Link | None = None
        self._deliveries = deliveries
        self._app_id = app_id
        self._complain = complain
        self._changed = changed
        self._tickets: set[str] = set()
        self._counts = {"link": 0, "ticket": 0, "turn": 0}

    def new_ticket(self) -> str:
        ticket = f"ticket-{self._count('ticket')}"
        self._tickets.add(ticket)
        return ticket

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Run one connection until it ends. A ticket opens one socket, once."""
        ticket = request.query.get("ticket", "")
        if ticket not in self._tickets:
            return web.Response(status=403, text="ticket is unknown or used")
        self._tickets.remove(ticket)
        socket = web.WebSocketResponse(autoping=False)
        await socket.prepare(request)
        link = Link(self._count("link"), socket, request)
        if len(self.open_links()) >= MAX_SOCKETS:
            await self._send(link, _disconnect_frame("too_many_websockets"))
            await socket.close()
            return socket
        self.links.append(link)
        try:
            await self._send(link, self._hello())
            await self._send_orphans()
            await self._changed()
            await self._read(link)
        finally:
            self.links.remove(link)
        await self._changed()
        return socket

    async def deliver(self, delivery: Delivery) -> None:
        """Send a delivery over the next socket in turn; with none open it waits for one.

        A repeat takes another socket than the one that did not acknowledge it, if there is one.
        """
        candidates = self.open_links()
        if not candidates:
            delivery.link = None
            return
        others = [link for link in candidates if link.number != delivery.link] or candidates
        link = self.next_link or others[self._count("turn") % len(others)]
        self.next_link = None
        self._deliveries.open_envelope(delivery)
        delivery.link = link.number
        await self._send(link, delivery.frame())

    def open_links(self) -> list[Link]:
        return [link for link in self.links if link.usable]

    async def disconnect(self, reason: DisconnectReason) -> None:
        """Tell every client to leave its socket; all but a warning also close it."""
        for link in self.open_links():
            link.retired = True
            await self._send(link, _disconnect_frame(reason))
            if reason != "warning":
                await link.socket.close()

    async def ping(self) -> None:
        for link in self.open_links():
            link.pings += 1
            await link.socket.ping(b"Ping from applink-test")

    def drop(self) -> None:
        """Cut every connection in the middle, without a close frame."""
        for link in self.links:
            if link.request.transport is not None:
                link.request.transport.abort()

    async def close(self) -> None:
        for link in list(self.links):
            await link.socket.close(code=WSCloseCode.GOING_AWAY)

    async def _read(self, link: Link) -> None:
        async for message in link.socket:
            if link.silent:
                continue
            if message.type is WSMsgType.PING:
                await link.socket.pong(message.data)
            elif message.type is WSMsgType.PONG:
                link.pongs += 1
                await self._changed()
            elif message.type is WSMsgType.TEXT:
                await self._acknowledged(link, message.data)

    async def _acknowledged(self, link: Link, text: str) -> None:
        try:
            frame = json.loads(text)
        except json.JSONDecodeError:
            self._complain("socket", f"a frame that is no JSON: {text!r}")
            return
        if not isinstance(frame, dict) or not {"envelope_id"} <= set(frame) <= {
            "envelope_id",
            "payload",
        }:
            self._complain("socket", f"a frame that is no acknowledgement: {frame!r}")
            return
        link.received.append(frame)
        delivery = self._deliveries.by_envelope(str(frame["envelope_id"]))
        if delivery is None:
            self._complain("socket", f"an unknown envelope: {frame['envelope_id']!r}")
            return
        if "payload" in frame and not delivery.accepts_response:
            self._complain("socket", f"a payload for {delivery.kind}, which takes none")
        if self.on_ack is not None:
            await self.on_ack(delivery)
        response = frame.get("payload")
        delivery.response = response if isinstance(response, dict) else delivery.response
        delivery.late = delivery.late or frame["envelope_id"] != delivery.envelopes[-1]
        delivery.acked = True
        await self._changed()

    async def _send_orphans(self) -> None:
        """What no living socket carries any more goes out again, as Slack does it."""
        alive = {link.number for link in self.open_links() if not link.silent}
        for delivery in self._deliveries.waiting():
            if delivery.link in alive:
                continue
            sent_before = bool(delivery.envelopes)
            if sent_before and not self._deliveries.prepare_retry(delivery, "timeout"):
                continue
            await self.deliver(delivery)

    async def _send(self, link: Link, frame: JsonObject) -> None:
        if link.silent or link.socket.closed:
            return
        try:
            await link.socket.send_str(json.dumps(frame))
        except ConnectionError:
            # The client is gone; its reader will notice and the frame stays unacknowledged.
            link.retired = True

    def _hello(self) -> JsonObject:
        return {
            "type": "hello",
            "num_connections": len(self.open_links()),
            "debug_info": {
                "host": "applink-test",
                "started": "2026-01-01 00:00:00.000",
                "build_number": 1,
                "approximate_connection_time": 18060,
            },
            "connection_info": {"app_id": self._app_id},
        }

    def _count(self, name: str) -> int:
        self._counts[name] += 1
        return self._counts[name]


def _disconnect_frame(reason: DisconnectReason) -> JsonObject:
    return {"type": "disconnect", "reason": reason, "debug_info": {"host": "applink-test"}}
