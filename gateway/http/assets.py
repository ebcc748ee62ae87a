"""`/v1/assets`: uploads for the items of messages, streamed to the disk and back (RUN-5).

What comes back is a download like a file that the agent sent: whatever it holds, a browser keeps
it and never shows it.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from aiohttp import web
from aiohttp.streams import StreamReader

from gateway.http.auth import PRINCIPAL, UPLOAD
from gateway.http.files import POLICY, disposition
from gateway.http.operations import Operation, query
from gateway.http.places import Places
from gateway.http.problems import HttpProblem
from gateway.http.query_models import UploadQuery
from gateway.http.request_bodies import idempotency_key
from gateway.http.responses import answer, path_id
from gateway.http.services import HttpServices
from runtime.intake.assets import AssetView, Sender

BYTES: Final = "application/octet-stream"
IDLE_S: Final = 30.0
"""The longest pause in an upload."""
WHOLE_S: Final = 900.0
"""The longest that an upload may take."""
MOST_AT_ONCE: Final = 16
MOST_OF_ONE: Final = 4
"""Uploads that are being taken: in all, and from one credential."""
_FORMS: Final = ("multipart/", "application/x-www-form-urlencoded")


class AssetRoutes:
    """Handlers of `/v1/assets`."""

    def __init__(self, services: HttpServices) -> None:
        self._assets = services.control.assets
        self._actor = services.control.actor.id
        self._places = Places("uploads", of_one=MOST_OF_ONE, in_all=MOST_AT_ONCE, retry_after_s=2)

    def operations(self) -> list[Operation]:
        return [
            Operation(
                *("POST", "/v1/assets", "Upload a file", self._receive),
                query=UploadQuery,
                upload=True,
                answer=AssetView,
                status=201,
                also=(200,),
                creates=True,
                name=UPLOAD,
            ),
            Operation(
                *("GET", "/v1/assets/{asset_id}", "Download what was uploaded", self._send),
                media_types=(BYTES,),
                errors=(410,),
            ),
        ]

    async def _receive(self, request: web.Request) -> web.Response:
        """The body is the file itself. The same content gets the same id."""
        asked = query(request, UploadQuery)
        if request.content_type.startswith(_FORMS) or "Content-Encoding" in request.headers:
            raise HttpProblem(
                415,
                "unsupported_media_type",
                "The body must be the bytes of the file, neither a form nor compressed "
                "(curl: --data-binary @FILE).",
                {"Connection": "close"},
            )
        credential = request[PRINCIPAL].credential
        with self._places.take(credential.token, closes=True):
            view, made = await self._assets.receive(
                _pieces(request.content),
                asked.name,
                Sender(credential.token, self._actor),
                declared=request.content_length,
                idempotency_key=idempotency_key(request),
            )
        headers = {"Location": f"/v1/assets/{view.id}"}
        return answer(view, status=201 if made else 200, headers=headers)

    async def _send(self, request: web.Request) -> web.Response:
        view, content = await self._assets.open(path_id(request, "asset_id", "asset"))
        if content is None:
            raise HttpProblem(410, "gone", "The content of this upload is gone; upload it again.")
        return web.Response(
            body=content,
            content_type=BYTES,
            headers={
                "Content-Disposition": disposition(view.name),
                "Content-Security-Policy": POLICY,
            },
        )


async def _pieces(content: StreamReader) -> AsyncIterator[bytes]:
    """The body as it comes. Raises `HttpProblem` for a slow sender."""
    loop = asyncio.get_running_loop()
    end = loop.time() + WHOLE_S
    while True:
        try:
            async with asyncio.timeout_at(min(end, loop.time() + IDLE_S)):
                piece = await content.readany()
        except TimeoutError:
            detail = f"An upload must go on within {IDLE_S:g} and end within {WHOLE_S:g} seconds."
            raise HttpProblem(408, "too_slow", detail, {"Connection": "close"}) from None
        if not piece:
            return
        yield piece
