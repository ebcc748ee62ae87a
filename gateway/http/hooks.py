"""Where platforms call us: `POST /hooks/<path>`, one path for each adapter with a webhook.

The guard lets these requests through: a platform has no token of ours, and the adapter checks its
signature or its secret instead, before anything is read or stored. Nothing is answered with
success before it is stored (MSG-1); a store that is away is a 503, after which platforms repeat.
"""

import asyncio
from collections.abc import Iterable
from typing import Final

from aiohttp import web

from runtime.ports.chat import Webhook, WebhookRequest
from runtime.ports.gatehouse import Gatehouse

MAX_BODY: Final = 1024 * 1024
"""Bytes of one request. The largest that platforms send are a tenth of it."""
BODY_S: Final = 10.0
"""How long one may take to come in: whoever sends is not known yet, and holds a connection."""


class HookRoutes:
    """The routes of the adapters' webhooks."""

    def __init__(
        self, hooks: Iterable[Webhook], gatehouse: Gatehouse, *, body_s: float = BODY_S
    ) -> None:
        self._hooks = {hook.path: hook for hook in hooks}
        self._body_s = body_s
        self._gatehouse = gatehouse

    def routes(self) -> list[web.RouteDef]:
        """What to add to the application."""
        return [web.post("/hooks/{path:.+}", self.receive, name="hook")]

    async def receive(self, request: web.Request) -> web.Response:
        """Hand the request to its adapter as it came."""
        hook = self._hooks.get(request.match_info["path"])
        if hook is None:
            raise web.HTTPNotFound
        headers = {name.lower(): value for name, value in request.headers.items()}
        try:
            async with asyncio.timeout(self._body_s):
                body = await _body(request)
        except TimeoutError:
            raise web.HTTPRequestTimeout from None
        call = WebhookRequest(headers=headers, body=body)
        answer = await hook.receive(call, self._gatehouse)
        return web.Response(
            status=answer.status, text=answer.body, content_type=answer.content_type
        )


async def _body(request: web.Request) -> bytes:
    """The body, counted as it comes in: a length may be missing, and a packed one grows."""
    body = bytearray()
    async for piece in request.content.iter_any():
        body += piece
        if len(body) > MAX_BODY:
            raise web.HTTPRequestEntityTooLarge(MAX_BODY, len(body))
    return bytes(body)
