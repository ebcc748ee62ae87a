"""`/v1/files`: what the agent sent into a chat of this server, to be saved and never to be shown.

Whatever a file holds, a browser keeps it as a download: as an attachment of no known type, in a
sandbox, and without guessing (``nosniff`` is set for every answer).
"""

import asyncio
import re
from typing import Final
from urllib.parse import quote

from aiohttp import web

from gateway.http.operations import Operation
from gateway.http.problems import HttpProblem
from gateway.http.responses import path_id
from gateway.http.services import HttpServices
from runtime.delivery.file_copies import open_copy

POLICY: Final = "default-src 'none'; sandbox; frame-ancestors 'none'; form-action 'none'"
_PLAIN: Final = re.compile(r"[^A-Za-z0-9._ -]")


class FileRoutes:
    """Handlers of `/v1/files`."""

    def __init__(self, services: HttpServices) -> None:
        self._views = services.views
        self._workspace = services.workspace

    def operations(self) -> list[Operation]:
        path = "/v1/files/{outbox_id}/{place:[0-9]{1,3}}"
        return [
            Operation(
                *("GET", path, "Download a file that the agent sent", self._download),
                media_types=("application/octet-stream",),
                errors=(410,),
            )
        ]

    async def _download(self, request: web.Request) -> web.Response:
        outbox_id = path_id(request, "outbox_id", "file")
        part = await self._views.sent_file(outbox_id, int(request.match_info["place"]))
        copy = await asyncio.to_thread(open_copy, self._workspace, part)
        if copy is None:
            raise HttpProblem(
                410, "gone", "This file is not kept any more (delivery.keep_files_s); ask for it."
            )
        return web.Response(
            body=copy,
            content_type="application/octet-stream",
            headers={
                "Content-Disposition": disposition(part.name),
                "Content-Security-Policy": POLICY,
            },
        )


def disposition(name: str) -> str:
    """A file name as a header (RFC 6266): plain for old programs, and as it is."""
    plain = _PLAIN.sub("_", name)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"
