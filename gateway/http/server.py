"""Listening: one server for the application, refused where it would stand open (API-1)."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import structlog
from aiohttp import web

from gateway.addresses import is_loopback
from gateway.http.connections import GuardedRunner
from gateway.http.services import HttpSettings
from runtime.domain.errors import InvalidInput

log = structlog.get_logger(__name__)
SHUTDOWN_S: Final = 5.0


def check_exposure(settings: HttpSettings) -> None:
    """Raises `InvalidInput` for an address that others reach while there is no admin token."""
    if not is_loopback(settings.host) and not any(settings.admin_tokens()):
        raise InvalidInput(
            "http.host",
            f"{settings.host} can be reached from other machines, so an admin token is needed: "
            "set http.admin_token or http.admin_token_file, or listen on 127.0.0.1",
        )


@asynccontextmanager
async def serve(
    app: web.Application, settings: HttpSettings, own: socket.socket | None = None
) -> AsyncIterator[int]:
    """Serve while the context is entered; gives the port, which the system chose if it was 0. `own`
    is a socket that listens already, for the command line of the home.

    Raises `InvalidInput` as `check_exposure`, and `OSError` when the address cannot be had.
    """
    check_exposure(settings)
    runner = GuardedRunner(app, shutdown_timeout=SHUTDOWN_S)
    await runner.setup()
    try:
        site = web.TCPSite(runner, settings.host, settings.port)
        await site.start()
        port = int(runner.addresses[0][1])
        if own is not None:
            await web.SockSite(runner, own).start()
        log.info("http_listening", host=settings.host, port=port)
        yield port
    finally:
        await runner.cleanup()
