"""Slack's servers as they call a gateway: prepared requests over kept connections, at a rate.

As cheap as can be, because it shares the machine with what is measured: no HTTP library, no task
for a request. A request counts from when it was due, so that a driver which waits for a slow answer
does not hide it.
"""

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from urllib.parse import urlsplit

from adapters.system.clock import SystemClock
from tests.wire.slack import signed_headers

CONNECTIONS = 64


def request(url: str, body: bytes, *, secret: str, at: int) -> bytes:
    """One signed request, as it goes over the wire."""
    parts = urlsplit(url)
    headers = signed_headers(body, secret=secret, timestamp=at)
    headers |= {"Host": parts.netloc, "Content-Length": str(len(body))}
    lines = [f"POST {parts.path} HTTP/1.1", *(f"{key}: {value}" for key, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode() + body


class Caller(asyncio.Protocol):
    """One connection; at most one request is on its way. Answers of other kinds than 200 count."""

    def __init__(self, callers: "Callers") -> None:
        self._callers = callers
        self._transport: asyncio.Transport | None = None
        self._got = b""
        self._due = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def call(self, prepared: bytes, due: float) -> None:
        """Send it now; it was due at `due`, in seconds of `perf_counter`."""
        assert self._transport is not None
        self._due = due
        self._transport.write(prepared)

    def data_received(self, data: bytes) -> None:
        self._got += data
        head, ended, body = self._got.partition(b"\r\n\r\n")
        if not ended or len(body) < _length(head):
            return
        self._got = b""
        self._callers.answered(self, self._due, int(head[9:12]))

    def connection_lost(self, error: Exception | None) -> None:
        self._callers.lost(error)


class Callers:
    """All connections to one gateway. `took` are milliseconds, `refused` statuses but 200."""

    def __init__(self) -> None:
        self.took: list[float] = []
        self.refused: list[int] = []
        self._free: deque[Caller] = deque()
        self._waiting: deque[tuple[bytes, float]] = deque()
        self._over = asyncio.Event()
        self._amount = 0
        self._closing = False

    async def flood(self, url: str, prepared: Sequence[bytes], rate: float) -> float:
        """Send all of them at a steady rate; the seconds until the last was answered."""
        loop, parts, clock = asyncio.get_running_loop(), urlsplit(url), SystemClock()
        self._amount = len(prepared)
        transports = []
        for _ in range(CONNECTIONS):
            transport, caller = await loop.create_connection(
                lambda: Caller(self), parts.hostname or "", parts.port or 80
            )
            transports.append(transport)
            self._free.append(caller)
        begun = time.perf_counter()
        for number, each in enumerate(prepared):
            due = begun + number / rate
            await clock.sleep(max(due - time.perf_counter(), 0))
            self._waiting.append((each, due))
            self._send()
        await self._over.wait()
        took = time.perf_counter() - begun
        self._closing = True
        for transport in transports:
            transport.close()
        return took

    def answered(self, caller: Caller, due: float, status: int) -> None:
        """An answer came over this connection, which is free again."""
        self.took.append((time.perf_counter() - due) * 1000)
        if status != 200:
            self.refused.append(status)
        self._free.append(caller)
        self._send()
        if len(self.took) == self._amount:
            self._over.set()

    def lost(self, error: Exception | None) -> None:
        """A connection ended, which nobody expects before the end."""
        if not self._closing:
            raise ConnectionError("the gateway closed a connection") from error

    def _send(self) -> None:
        while self._waiting and self._free:
            self._free.popleft().call(*self._waiting.popleft())


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0
