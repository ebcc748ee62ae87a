"""One place for Slack's envelopes to come in by Socket Mode: open, read, acknowledge, reopen.

The SDK's own client is not used for the socket: it acknowledges and reconnects in tasks that
nobody owns, swallows what its listeners raise, waits on its own clock and asks for a new address
without any backoff. Here an envelope is acknowledged when, and only when, the handler says so.

When Slack announces that it will leave, the old socket goes on being read until the new one is
open and what it carried is acknowledged. A socket that says nothing at all is given up.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

import structlog
from aiohttp import ClientWebSocketResponse, WSMsgType

from adapters.platforms.backoff import LONGEST_DELAY_S, Backoff
from adapters.slack.client import SlackClient
from adapters.slack.failures import SlackFailure, connection_error
from runtime.domain.json_fields import object_in
from runtime.domain.value import JsonObject
from runtime.ports.clock import Clock

log = structlog.get_logger(__name__)

PING_INTERVAL_S = 7.0
# Three pings without any frame: Slack pings on its own every few seconds as well. With the interval
# in which the last frame came, a dead socket is found within 28 seconds.
SILENT_INTERVALS = 3
STABLE_S = 30.0
MOST_AT_WORK = 500
"""Envelopes of a socket that are being stored at once. What comes beyond is left unacknowledged:
Slack delivers it again, and meanwhile the store or Slack's own answers may be there again."""
_EXPECTED_ENDS = frozenset({"warning", "refresh_requested"})
_REFUSALS = {
    "link_disabled": "Socket Mode is switched off in the settings of the Slack application.",
    "too_many_websockets": "Slack has ten sockets open for this application and takes no more.",
}


@dataclass(frozen=True, slots=True)
class Envelope:
    """What Slack tells; `kind` is ``events_api``, ``slash_commands`` or ``interactive``."""

    id: str
    kind: str
    payload: JsonObject


@dataclass(frozen=True, slots=True)
class Ack:
    """Slack may forget the envelope. `payload` is an answer that it shows, where it takes one."""

    payload: JsonObject | None = None


Handler = Callable[[Envelope], Awaitable[Ack | None]]
"""None leaves the envelope unacknowledged, so that Slack delivers it again."""
Counter = Callable[[int], None]
"""Told how many sockets of the application Slack counts, at each greeting."""


class Link:
    """One open socket. `leaving` is set when another one has to take over."""

    def __init__(
        self, socket: ClientWebSocketResponse, handler: Handler, clock: Clock, count: Counter
    ) -> None:
        self._socket = socket
        self._handler = handler
        self._clock = clock
        self._count = count
        self._heard = True
        self._busy: set[asyncio.Task[None]] = set()
        self.leaving = asyncio.Event()
        self.ready = False
        self.greeted = False
        self.open = True
        self.reason = ""

    async def run(self) -> None:
        """Read until the socket ends, and until everything it brought was handled."""
        try:
            async with asyncio.TaskGroup() as group:
                watch = group.create_task(self._watch(), name="slack-socket-watch")
                await self._read(group)
                watch.cancel()
                self.ready = False
                self.leaving.set()
        finally:
            self.ready = False
            self.leaving.set()
            await self._socket.close()
            self.open = False

    async def retire(self) -> None:
        """Acknowledge what is in work, then leave."""
        while self._busy:
            await asyncio.wait(self._busy)
        await self._socket.close()

    async def _read(self, group: asyncio.TaskGroup) -> None:
        async for frame in self._socket:
            self._heard = True
            if frame.type is WSMsgType.PING:
                await self._say(partial(self._socket.pong, frame.data))
            elif frame.type is WSMsgType.TEXT:
                self._take(frame.data, group)
            elif frame.type is WSMsgType.ERROR:
                return

    def _take(self, text: str, group: asyncio.TaskGroup) -> None:
        frame = object_in(text) or {}
        match frame.get("type"), frame.get("envelope_id"), frame.get("payload"):
            case "hello", _, _:
                self.ready = self.greeted = True
                number = frame.get("num_connections")
                self._count(number if isinstance(number, int) else 0)
            case "disconnect", _, _:
                self.reason = str(frame.get("reason"))
                self.leaving.set()
            case str(), str(identifier), dict() if len(self._busy) >= MOST_AT_WORK:
                log.warning("slack.too_much_at_once", envelope=identifier, at_work=MOST_AT_WORK)
            case str(kind), str(identifier), dict(payload):
                envelope = Envelope(identifier, kind, payload)
                task = group.create_task(self._handle(envelope), name=f"slack-{identifier}")
                self._busy.add(task)
                task.add_done_callback(self._busy.discard)
            case _:
                log.warning("slack.frame_ignored", keys=sorted(frame))

    async def _handle(self, envelope: Envelope) -> None:
        ack = await self._handler(envelope)
        if ack is None:
            return
        answer: JsonObject = {"envelope_id": envelope.id}
        if ack.payload is not None:
            answer["payload"] = ack.payload
        await self._say(partial(self._socket.send_str, json.dumps(answer)))

    async def _say(self, send: Callable[[], Awaitable[None]]) -> None:
        try:
            await send()
        except ConnectionError:
            # The socket went away: Slack sends what was not acknowledged over the next one.
            log.info("slack.socket_gone")

    async def _watch(self) -> None:
        """Ping, and close a socket from which nothing comes any more."""
        silent = 0
        while silent < SILENT_INTERVALS:
            await self._clock.sleep(PING_INTERVAL_S)
            silent = 0 if self._heard else silent + 1
            self._heard = False
            await self._say(self._socket.ping)
        self.reason = "silent"
        await self._socket.close()


class SocketMode:
    """Keeps one connection open as long as `run` is awaited."""

    def __init__(
        self,
        client: SlackClient,
        clock: Clock,
        handler: Handler,
        *,
        count: Counter,
        address: str | None = None,
    ) -> None:
        """`address` is one that was asked for already; it is good for one connection."""
        self._count = count
        self._client = client
        self._clock = clock
        self._handler = handler
        self._address = address
        self._link: Link | None = None
        self._old: Link | None = None
        self.trouble = ""
        """Why it is not connected, in a sentence; empty while nothing went wrong."""
        self._backoff = Backoff(at_once=True)

    @property
    def connected(self) -> bool:
        return self._link is not None and self._link.ready

    @property
    def links(self) -> int:
        """How many sockets are open for it now: one, or two while one replaces the other."""
        return sum(link is not None and link.open for link in (self._link, self._old))

    async def run(self) -> None:
        """Receive until cancelled. A failing handler ends it; a failing connection never does."""
        async with asyncio.TaskGroup() as group:
            while True:
                link = await self._opened()
                opened_at = self._clock.monotonic()
                old = self._old = self._link
                self._link = link
                group.create_task(link.run(), name="slack-socket")
                if old is not None:
                    group.create_task(old.retire(), name="slack-socket-retire")
                await link.leaving.wait()
                self._note(link.reason)
                if self._clock.monotonic() - opened_at >= STABLE_S:
                    self._backoff.reset()
                elif link.greeted:
                    self._backoff.ease()
                await self._clock.sleep(
                    LONGEST_DELAY_S if link.reason in _REFUSALS else self._backoff.next()
                )

    async def _opened(self) -> Link:
        while True:
            try:
                address = self._address or await self._client.socket_address()
                self._address = None
                socket = await self._client.open_socket(address)
            except SlackFailure as failure:
                self.trouble = str(connection_error(failure, "app"))
                log.warning("slack.unreachable", reason=str(failure))
                await self._clock.sleep(self._backoff.next(failure.after_s))
            else:
                return Link(socket, self._handler, self._clock, self._count)

    def _note(self, reason: str) -> None:
        log.info("slack.socket_left", reason=reason or "cut")
        if reason in _REFUSALS:
            self.trouble = _REFUSALS[reason]
        elif reason in _EXPECTED_ENDS:
            self.trouble = "Slack asked for a new connection, which is being opened."
        else:
            self.trouble = "The connection to Slack was lost. Trying again."
