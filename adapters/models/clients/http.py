"""The HTTP client beneath OpenAI's library: the one that it has for aiohttp.

The one that it takes by itself asks the operating system about every idle connection, twice for
each request: with a hundred sessions a fifth of the event loop's time. aiohttp is told when a
connection ends. It follows the same proxies of the environment, and takes no line of an answer's
head that is longer than 8 KB.
"""

from typing import Any

import httpx2
from aiohttp import ClientError, ServerTimeoutError
from openai import DefaultAioHttpClient


class HttpClient(DefaultAioHttpClient):
    """Raises what the usual client would raise.

    The library's own takes every connection that cannot be made for one that takes too long, and
    lets aiohttp's error through where an answer is no HTTP.
    """

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """As `httpx2.AsyncClient.send`."""
        try:
            return await super().send(request, **options)
        except httpx2.ConnectTimeout as error:
            if isinstance(error.__cause__, ServerTimeoutError):
                raise
            raise httpx2.ConnectError(str(error), request=request) from error
        except ClientError as error:
            raise httpx2.RemoteProtocolError(str(error), request=request) from error
