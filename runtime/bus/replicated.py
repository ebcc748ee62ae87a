"""The bus of several replicas, whatever server carries it: one queue out, one reader, one task.

What is published here is delivered here at once and sent to the others when the connection can
take it. The connection comes back by itself; what was lost meanwhile is told to every reader as a
gap, never sent twice. A bus that is not connected is still the bus of its own process.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import Final, Protocol

import structlog

from runtime.bus.memory import MemoryBus
from runtime.bus.signal_format import Decoder, Encoder
from runtime.bus.signal_queue import MAX_WAITING, Outgoing
from runtime.domain.errors import Unavailable
from runtime.domain.value import JsonObject
from runtime.ports.bus import Signal
from runtime.ports.clock import Clock
from runtime.process.supervisor import Supervisor

log = structlog.get_logger(__name__)

BATCH: Final = 256
"""Payloads of one round trip."""
FIRST_DELAY_S: Final = 0.25
LONGEST_DELAY_S: Final = 15.0
HEARTBEAT_S: Final = 15.0
"""Silence after which the server is asked whether it is there: a dead line says nothing."""
CLOSE_S: Final = 2.0
"""How long closing waits for what is still to be sent."""


class Link(Protocol):
    """One connection that sends and listens."""

    @property
    def max_bytes(self) -> int:
        """The longest payload, in bytes of UTF-8."""

    @property
    def lost(self) -> bool:
        """Whether the connection is gone."""

    async def send(self, payloads: Sequence[str]) -> None:
        """One round trip, also when there is nothing to send.

        Raises `Unavailable`: then nobody knows what arrived, and the link is of no more use.
        """

    async def close(self) -> None:
        """Give everything back; raises nothing that a dead connection could cause."""


class Linker(Protocol):
    """Opens links to one server."""

    @property
    def server(self) -> str:
        """The server's name for people and logs: never a user or a password."""

    async def open(self, received: Callable[[str], None], lost: Callable[[], None]) -> Link:
        """Connect and listen. `received` gets every payload in order, one's own too or not;
        `lost` is called when the connection goes. Raises `Unavailable`."""


class ReplicatedBus:
    """Implements the port `bus` over a `Linker`. Without a `supervisor` it has its own."""

    def __init__(
        self,
        linker: Linker,
        clock: Clock,
        *,
        waiting: int = MAX_WAITING,
        supervisor: Supervisor | None = None,
    ) -> None:
        self.connected = False
        self.server = linker.server
        self._linker = linker
        self._clock = clock
        self._local = MemoryBus()
        self._encoder = Encoder()
        self._outgoing = Outgoing(self._encoder, limit=waiting)
        self._wake = asyncio.Event()
        self._supervisor = supervisor or Supervisor(clock)
        self._first: Link | None = None
        self._closing = False
        self._closed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Return after the first attempt to connect; if it failed, others follow.

        Raises what is wrong with the configuration, such as a driver that is not installed.
        """
        try:
            self._first = await self._open()
        except Unavailable as error:
            log.warning("bus_unreachable", server=self.server, reason=str(error))
        self.connected = self._first is not None
        self._task = asyncio.create_task(self._supervisor.keep("bus", self._run), name="bus")

    async def close(self) -> None:
        """Send what waits, if that is a matter of a moment, and disconnect."""
        self._closing = True
        task, self._task = self._task, None
        if task is None:
            return
        self._wake.set()
        try:
            if self.connected:
                with suppress(TimeoutError):
                    async with asyncio.timeout(CLOSE_S):
                        await self._closed.wait()
        finally:
            task.cancel()
            await asyncio.wait({task})
            if self._first is not None:
                await self._first.close()
        if not task.cancelled():
            task.result()

    def publish(self, topic: str, data: JsonObject) -> None:
        """Deliver here at once, and let the signal wait for the others."""
        signal = Signal(topic=topic, data=data)
        self._local.deliver(signal)
        if not self._closing:
            self._outgoing.put(signal)
            self._wake.set()

    def subscribe(
        self, *topics: str, limit: int = 1024
    ) -> AbstractAsyncContextManager[AsyncIterator[Signal]]:
        """Signals of this replica and of the others."""
        return self._local.subscribe(*topics, limit=limit)

    async def _run(self) -> None:
        """Be connected, until closed; then stay until cancelled."""
        delay = FIRST_DELAY_S
        while not self._closing:
            if self._first is None:
                await self._clock.sleep(delay)
                delay = min(delay * 2, LONGEST_DELAY_S)
            try:
                await self._connection()
                delay = FIRST_DELAY_S
            except Unavailable as error:
                log.warning("bus_unreachable", server=self.server, reason=str(error))
        self._closed.set()
        await asyncio.Event().wait()

    async def _open(self) -> Link:
        """A new connection, with its own reading of what comes. Raises `Unavailable`."""
        decoder = Decoder(self._encoder.publisher)

        def received(payload: str) -> None:
            self._received(decoder, payload)

        return await self._linker.open(received, self._wake.set)

    async def _connection(self) -> None:
        """One connection from its beginning to its end. Raises `Unavailable` if it has none."""
        first, self._first = self._first, None
        link = first or await self._open()
        try:
            log.info("bus_connected", server=self.server)
            self.connected = True
            if first is None:
                self._local.lose()
            await self._send(link)
        except Unavailable as error:
            log.warning("bus_lost", server=self.server, reason=str(error))
        finally:
            self.connected = False
            await link.close()

    async def _send(self, link: Link) -> None:
        """Send what waits until there is nothing left and the bus closes. Raises `Unavailable`."""
        silent = False
        while not link.lost:
            payloads = self._outgoing.take(max_bytes=link.max_bytes, most=BATCH)
            if payloads or silent:
                await link.send(payloads)
                silent = False
                self._tell_dropped()
            elif self._closing:
                return
            else:
                silent = await self._idle()
        raise Unavailable("The connection was closed.")

    async def _idle(self) -> bool:
        """Wait until something happens; True when nothing did for `HEARTBEAT_S`."""
        silent = False

        def expire() -> None:
            nonlocal silent
            silent = True
            self._wake.set()

        timer = self._clock.call_later(HEARTBEAT_S, expire)
        try:
            await self._wake.wait()
        finally:
            timer.cancel()
            self._wake.clear()
        return silent

    def _tell_dropped(self) -> None:
        if self._outgoing.dropped:
            log.warning("bus_dropped", server=self.server, signals=self._outgoing.dropped)
            self._outgoing.dropped = 0

    def _received(self, decoder: Decoder, payload: str) -> None:
        try:
            found = decoder.feed(payload)
        except ValueError as error:
            log.debug("bus_foreign_payload", server=self.server, reason=str(error))
            return
        if found.gap:
            self._local.lose()
        if found.signal is not None:
            self._local.deliver(found.signal)
