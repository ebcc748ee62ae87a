"""Files that came with messages, fetched by `getFile`: bots get up to 20 MB.

The address of a file holds the token, so it never leaves this folder, not even in an error.
Source: "File" of the Bot API.
"""

from collections.abc import AsyncIterator
from contextlib import aclosing

from adapters.telegram.client import TelegramClient
from adapters.telegram.failures import Refused, TelegramFailure, connection_error
from runtime.domain.errors import Forbidden, NotFound, Unavailable
from runtime.domain.json_fields import text_of
from runtime.domain.messages import Attachment

MOST_BYTES = 20 * 1024 * 1024
_TOO_BIG = "Telegram gives bots files of up to 20 MB"


class TelegramFiles:
    """`Files` of one bot."""

    def __init__(self, client: TelegramClient) -> None:
        self._client = client

    async def fetch(self, attachment: Attachment) -> AsyncIterator[bytes]:
        """Raises `Unavailable`, `Forbidden` (too big) or `NotFound`."""
        if attachment.size_bytes is not None and attachment.size_bytes > MOST_BYTES:
            raise Forbidden(f"{_TOO_BIG}, and this one has {attachment.size_bytes / 1e6:.0f}.")
        if not attachment.reference:
            raise NotFound("file", attachment.name)
        path = await self._path(attachment)
        try:
            # Whoever reads may stop early: then the connection is given back at once.
            async with aclosing(self._client.download(path)) as pieces:
                async for piece in pieces:
                    yield piece
        except TelegramFailure as failure:
            raise _error(failure, attachment) from None

    async def _path(self, attachment: Attachment) -> str:
        try:
            answer = await self._client.call("getFile", {"file_id": attachment.reference})
        except TelegramFailure as failure:
            raise _error(failure, attachment) from failure
        path = text_of(answer, "file_path") if isinstance(answer, dict) else ""
        # A Bot API server in local mode names a file of its own disk, which is not ours to read.
        if not path or path.startswith("/") or ".." in path.split("/"):
            raise NotFound("file", attachment.name)
        return path


def _error(failure: TelegramFailure, attachment: Attachment) -> Forbidden | NotFound | Unavailable:
    if not isinstance(failure, Refused) or failure.code >= 500:
        return Unavailable(f"{attachment.name} cannot be fetched from Telegram now: {failure}.")
    if failure.says("too big"):
        return Forbidden(f"{_TOO_BIG}.")
    if failure.code == 401:
        return connection_error(failure)
    return NotFound("file", attachment.name)
