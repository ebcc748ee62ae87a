"""What a process answers that cannot start yet: it is alive, and not ready, with the reason.

Anybody may ask, so it says nothing that only the operator may know: the path and the cause stand in
the log (SEC-3).
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import structlog
from aiohttp import web

from gateway.http.connections import GuardedRunner
from gateway.http.responses import answer
from runtime.domain.value import JsonObject

log = structlog.get_logger(__name__)
_SHUTDOWN_S: Final = 1.0


@asynccontextmanager
async def answer_probes(host: str, port: int | None, reason: str) -> AsyncIterator[None]:
    """Serve `/healthz` and `/readyz` during the block, if there is a port. An address that cannot
    be had is no reason to wait less; the start says what is wrong with it."""
    runner = GuardedRunner(_application(reason), shutdown_timeout=_SHUTDOWN_S)
    await runner.setup()
    try:
        if port is not None:
            try:
                await web.TCPSite(runner, host, port).start()
            except OSError as error:
                log.warning("probes_unavailable", host=host, port=port, reason=str(error))
        yield
    finally:
        await runner.cleanup()


def _application(reason: str) -> web.Application:
    async def answer_alive(_request: web.Request) -> web.Response:
        return answer({"status": "ok"})

    async def answer_not_ready(_request: web.Request) -> web.Response:
        facts: JsonObject = {"status": "not ready", "reason": reason}
        return answer(facts, status=503)

    app = web.Application()
    app.add_routes([web.get("/healthz", answer_alive), web.get("/readyz", answer_not_ready)])
    return app
