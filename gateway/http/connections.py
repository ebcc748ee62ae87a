"""Connections: how many there may be, and how long one may say nothing.

aiohttp waits for a request's first line as long as its sender likes. A few hundred idle senders
would use up the process's files, and with them the database's.
"""

import asyncio
import resource
from typing import Final

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

MOST: Final = 1024
SILENT_S: Final = 20.0
RESERVED_FILES: Final = 128
"""Files that are kept for the database, commands and platforms."""


class GuardedRunner(web.AppRunner):
    """An `AppRunner` whose connections are counted, and closed when they stay silent."""

    async def _make_server(self) -> web.Server:
        server = await super()._make_server()
        return _Guarded(server, most_connections())


class _Guarded(web.Server):
    """Makes the handlers of `inner`; one connection too many is closed at once."""

    def __init__(self, inner: web.Server, most: int) -> None:
        self.__dict__.update(inner.__dict__)
        self._most = most

    def __call__(self) -> RequestHandler:
        handler = super().__call__()
        loop = asyncio.get_running_loop()
        if len(self.connections) >= self._most:
            # In two steps: the transport is joined to its handler in the first.
            loop.call_soon(loop.call_soon, _close, handler)
        else:
            loop.call_later(SILENT_S, _close_silent, self, handler)
        return handler


def _close(handler: RequestHandler) -> None:
    if handler.transport is not None:
        handler.transport.abort()


def _close_silent(server: _Guarded, handler: RequestHandler) -> None:
    """Close a connection that has not sent one whole request head yet."""
    if handler in server.connections and handler._request_count == 0:
        _close(handler)


def most_connections() -> int:
    """How many the process has files for, after it took what the system lets it have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard or hard == resource.RLIM_INFINITY:
        wanted = MOST * 4 if hard == resource.RLIM_INFINITY else min(hard, MOST * 4)
        soft = max(soft, wanted)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return max(16, min(MOST, soft - RESERVED_FILES))
