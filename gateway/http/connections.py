"""Connections: how many there may be, and how long one may hold its place for nothing (SEC-7).

aiohttp waits for a request's head as long as its sender likes, and for a reader to read. A few
hundred of them would use up the process's files, and with them the database's.
"""

import asyncio
import resource
from dataclasses import dataclass, field
from typing import Final

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

MOST: Final = 2048
SILENT_S: Final = 20.0
"""How long the first request's head may take."""
IDLE_S: Final = 75.0
"""The same for each later one; proxies keep a connection for a minute."""
STALLED_S: Final = 30.0
"""How long a reader may take nothing of what waits for it."""
LOOK_S: Final = 5.0
RESERVED_FILES: Final = 128
"""Files that are kept for the database, commands and platforms."""


class GuardedRunner(web.AppRunner):
    """An `AppRunner` whose connections are counted, and closed when they stay silent or stalled."""

    def __init__(self, app: web.Application, *, shutdown_timeout: float) -> None:
        super().__init__(
            app, access_log=None, shutdown_timeout=shutdown_timeout, keepalive_timeout=IDLE_S
        )
        self._stalled: asyncio.TimerHandle | None = None

    async def _make_server(self) -> web.Server:
        server = _Guarded(await super()._make_server(), most_connections())
        self._look(server, _Readers())
        return server

    def _look(self, server: web.Server, readers: "_Readers") -> None:
        """Close the connections whose readers have stalled, and look again soon."""
        loop = asyncio.get_running_loop()
        for handler in readers.stalled(server.connections, loop.time()):
            _close(handler)
        self._stalled = loop.call_later(LOOK_S, self._look, server, readers)

    async def cleanup(self) -> None:
        """Stop serving."""
        if self._stalled is not None:
            self._stalled.cancel()
        await super().cleanup()


class _Guarded(web.Server):
    """Makes the handlers of `inner`. Where there are too many, the oldest connection that asks for
    nothing makes room; without one the new connection is closed."""

    def __init__(self, inner: web.Server, most: int) -> None:
        self.__dict__.update(inner.__dict__)
        self._most = most

    def __call__(self) -> RequestHandler:
        handler = super().__call__()
        loop = asyncio.get_running_loop()
        idle = None
        if len(self.connections) >= self._most:
            idle = next((one for one in self.connections if _is_idle(one)), None)
            # In two steps: the transport of a new one is joined to its handler in the first.
            loop.call_soon(loop.call_soon, _close, idle or handler)
        if idle is not None or len(self.connections) < self._most:
            loop.call_later(SILENT_S, _close_silent, self, handler)
        return handler


@dataclass(slots=True)
class _Readers:
    """What waits to be read on each connection, and since when nothing of it was taken."""

    waiting: dict[RequestHandler, tuple[int, float]] = field(default_factory=dict)

    def stalled(self, connections: list[RequestHandler], now: float) -> list[RequestHandler]:
        """The connections on which nothing was taken for too long."""
        before, self.waiting = self.waiting, {}
        for one in connections:
            size = 0 if one.transport is None else one.transport.get_write_buffer_size()
            if size:
                known = before.get(one)
                self.waiting[one] = known if known and known[0] == size else (size, now)
        return [one for one, (_, since) in self.waiting.items() if now - since >= STALLED_S]


def _is_idle(handler: RequestHandler) -> bool:
    """Whether no request is being answered there: it has sent none, half of one, or waits."""
    transport = handler.transport
    return transport is not None and not transport.is_closing() and handler._current_request is None


def _close(handler: RequestHandler) -> None:
    if handler.transport is not None:
        handler.transport.abort()


def _close_silent(server: _Guarded, handler: RequestHandler) -> None:
    """Close a connection that has not sent one whole request head yet."""
    if handler in server.connections and handler._request_count == 0:
        _close(handler)


def most_streams(wanted: int) -> int:
    """How many event streams may be open: as many as wanted, at most half of all connections, so
    that requests find one."""
    return min(wanted, most_connections() // 2)


def most_connections() -> int:
    """How many the process has files for, after it took what the system lets it have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard or hard == resource.RLIM_INFINITY:
        wanted = MOST * 2 if hard == resource.RLIM_INFINITY else min(hard, MOST * 2)
        soft = max(soft, wanted)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return max(16, min(MOST, soft - RESERVED_FILES))
