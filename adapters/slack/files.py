"""Files from Slack: fetched with the bot token, which only Slack's own hosts ever see.

A message may name any address. So an address that is not Slack's is refused before anything is
sent there, and a redirect is followed only to where the token may go. Slack answers a token that
may not read the file with its login page, which is not taken for the file.
"""

from collections.abc import AsyncIterator
from typing import Final
from urllib.parse import urljoin, urlsplit

import aiohttp

from adapters.slack.client import SlackClient
from adapters.slack.failures import Refused, SlackFailure
from adapters.slack.ingress import FILE_ID
from runtime.domain.errors import Forbidden, NotFound, Unavailable
from runtime.domain.json_fields import object_of, text_of
from runtime.domain.messages import Attachment

PIECE: Final = 64 * 1024
REDIRECTS: Final = 3
_SLACK: Final = ".slack.com"
_GONE: Final = frozenset({"file_deleted", "file_not_found"})
_HTML: Final = "text/html"


class SlackFiles:
    """`Files` of one workspace."""

    def __init__(self, client: SlackClient, api_url: str) -> None:
        self._client = client
        self._own = _origin(api_url)

    async def fetch(self, attachment: Attachment) -> AsyncIterator[bytes]:
        response, moved = await self._response(await self._address(attachment))
        try:
            _check(response, attachment, moved=moved)
            async for piece in response.content.iter_chunked(PIECE):
                yield piece
        except (aiohttp.ClientError, OSError) as error:
            raise Unavailable(f"The download of {attachment.name} broke off.") from error
        finally:
            response.close()

    async def _address(self, attachment: Attachment) -> str:
        reference = attachment.reference
        if not reference:
            raise Forbidden(f"{attachment.name} is not kept in Slack, so it cannot be fetched.")
        if not reference.startswith(FILE_ID):
            return reference
        try:
            answer = await self._client.read(
                "files.info", {"file": reference.removeprefix(FILE_ID)}
            )
        except Refused as refusal:
            if refusal.error not in _GONE:
                raise Forbidden(f"Slack does not show {attachment.name}: {refusal}.") from refusal
            raise NotFound("file", attachment.name) from refusal
        except SlackFailure as failure:
            raise Unavailable(f"Slack does not say where {attachment.name} is.") from failure
        address = text_of(object_of(answer, "file"), "url_private")
        if not address:
            raise NotFound("file", attachment.name)
        return address

    async def _response(self, address: str) -> tuple[aiohttp.ClientResponse, bool]:
        """The answer, and whether it came from another address than the first."""
        for turn in range(REDIRECTS):
            if not self._may_see_the_token(address):
                raise Forbidden("The file is not at an address of Slack's.")
            try:
                response = await self._client.fetch(address)
            except SlackFailure as failure:
                raise Unavailable("The file cannot be fetched now.") from failure
            if response.status not in (301, 302, 303, 307, 308):
                return response, turn > 0
            address = urljoin(address, response.headers.get("Location", ""))
            response.close()
        raise Forbidden("The file's address leads nowhere.")

    def _may_see_the_token(self, address: str) -> bool:
        try:
            origin = _origin(address)
        except ValueError:
            return False
        scheme, host, port = origin
        slack = scheme == "https" and port in (None, 443) and host.endswith(_SLACK)
        return slack or origin == self._own


def _check(response: aiohttp.ClientResponse, attachment: Attachment, *, moved: bool) -> None:
    status, name = response.status, attachment.name
    if status in (401, 403):
        raise Forbidden(f"Slack does not let the bot read {name}.")
    if status in (404, 410):
        raise NotFound("file", name)
    if status != 200:
        raise Unavailable(f"The file {name} cannot be fetched now: HTTP {status}.")
    if response.content_type == _HTML and (moved or attachment.media_type != _HTML):
        raise Forbidden(
            f"Slack answered with its login page instead of {name}: the bot token lacks the scope "
            "files:read."
        )


def _origin(address: str) -> tuple[str, str, int | None]:
    """Scheme, host and port. Raises `ValueError` for nonsense."""
    parts = urlsplit(address)
    return parts.scheme, (parts.hostname or "").lower(), parts.port
