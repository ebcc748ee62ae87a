"""python-telegram-bot's `Bot`, over a transport that knows whether a request had left.

This is the one module that imports the library, which costs some 26 MB and half a second; the
client imports it at its first call. The transport repeats nothing: a connection that breaks after
the request has left may have posted already (MSG-11). It reads refusals itself, because the
library drops parts of them and warns whenever it reads the seconds of a 429.
"""

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import quote

import aiohttp
from pydantic import JsonValue
from telegram import Bot
from telegram.error import TelegramError
from telegram.request import BaseRequest, RequestData

from adapters.platforms.proxies import proxy_for
from adapters.rendering import clean
from adapters.telegram.failures import (
    TelegramFailure,
    Unanswered,
    Unreachable,
    failure_in,
)
from adapters.telegram.settings import TelegramSettings
from runtime.domain.messages import FilePart
from runtime.domain.value import JsonObject

CONNECT_TIMEOUT_S = 10.0
# What a line must carry at least, or a file takes for ever: 2 Mbit/s.
SLOWEST_BYTES_S = 250_000
PIECE_BYTES = 64 * 1024
# Shorter than the idle limit of Telegram's servers, so that a call rarely leaves on a connection
# that just died.
KEEPALIVE_S = 15.0
_NOT_IN_NAMES = str.maketrans('"\\/', "'__")


class BotApi:
    """One bot and its HTTP session. Close it."""

    def __init__(self, settings: TelegramSettings) -> None:
        token, root = settings.token.get_secret_value(), settings.api_url.rstrip("/")
        self._transport = Transport(settings.request_timeout_s)
        # `Bot.initialize` is not used: after a wrong token it leaves its transports open.
        self._bot = _GenericBot(
            token,
            base_url=f"{root}/bot",
            base_file_url=f"{root}/file/bot",
            request=self._transport,
            get_updates_request=self._transport,
        )

    async def call(self, method: str, payload: JsonObject, timeout_s: float | None) -> JsonValue:
        """The `result` of one method as plain JSON. Raises `TelegramFailure`.

        The library's own methods build objects of the answer, and one field of an unknown shape
        would cost a whole batch of updates. Its generic call takes every method and answers with
        what came.
        """
        timeout = BaseRequest.DEFAULT_NONE if timeout_s is None else timeout_s
        try:
            answer: JsonValue = await self._bot.do_api_request(
                method, api_kwargs=dict(payload), read_timeout=timeout
            )
        except Failed as failed:
            raise failed.failure  # noqa: B904 - it knows its cause
        except TelegramError as error:
            raise Unanswered(f"{method}: {error}") from error
        return answer

    async def upload(
        self, method: str, payload: JsonObject, field: str, file: FilePart, size: int
    ) -> JsonValue:
        """As `TelegramClient.upload`.

        The library would read the whole file into memory; this streams it from the disk.
        """
        # Off the loop: the disk may be a slow one.
        content = await asyncio.to_thread(Path(file.path).open, "rb")
        with content:
            # The name goes into a header, between quotes and in one line.
            filename = " ".join(clean(file.name).translate(_NOT_IN_NAMES).split()) or "file"
            # Telegram takes a name as it stands there, without decoding it.
            form = aiohttp.FormData(quote_fields=False)
            for name, value in payload.items():
                form.add_field(name, value if isinstance(value, str) else json.dumps(value))
            form.add_field(field, content, filename=filename, content_type=file.media_type)
            total_s = self._transport.read_timeout + size / SLOWEST_BYTES_S
            _, body = await self._transport.request(
                "POST", f"{self._bot.base_url}/{method}", form, total_s
            )
        answer: JsonValue = json.loads(body)["result"]
        return answer

    def download(self, path: str) -> AsyncGenerator[bytes, None]:
        """The file at a ``file_path`` of `getFile`, in pieces. Raises `TelegramFailure`."""
        return self._transport.pieces(f"{self._bot.base_file_url}/{quote(path)}")

    async def close(self) -> None:
        await self._transport.shutdown()


class _GenericBot(Bot):
    """The library's bot, without its advice to call the methods that it knows by their names."""

    __slots__ = ()

    @classmethod
    def _warn(
        cls,
        message: object,
        category: type[Warning] = UserWarning,
        stacklevel: int = 0,
    ) -> None:
        """Nothing: `BotApi.call` says why the generic call is used."""


class Failed(TelegramError):
    """Carries a failure through the library, which lets only its own errors pass."""

    __slots__ = ("failure",)

    def __init__(self, failure: TelegramFailure) -> None:
        super().__init__(str(failure))
        self.failure = failure


class Transport(BaseRequest):
    """`BaseRequest` over one aiohttp session, which opens with the first request."""

    __slots__ = ("_session", "_timeout_s")

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._session: aiohttp.ClientSession | None = None

    @property
    def read_timeout(self) -> float:
        return self._timeout_s

    async def initialize(self) -> None:
        """Nothing: the session needs no more than the running loop."""

    async def shutdown(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def do_request(
        self,
        url: str,
        method: str,
        request_data: RequestData | None = None,
        read_timeout: object = BaseRequest.DEFAULT_NONE,
        write_timeout: object = BaseRequest.DEFAULT_NONE,  # noqa: ARG002
        connect_timeout: object = BaseRequest.DEFAULT_NONE,  # noqa: ARG002
        pool_timeout: object = BaseRequest.DEFAULT_NONE,  # noqa: ARG002
    ) -> tuple[int, bytes]:
        """Raises `Failed` for everything but a good answer. `read_timeout` is for all of it."""
        total_s = read_timeout if isinstance(read_timeout, int | float) else self._timeout_s
        data = request_data.json_parameters if request_data is not None else None
        try:
            return await self.request(method, url, data, total_s)
        except TelegramFailure as failure:
            failed = Failed(failure)
        # Outside of the block: each would be the other's cause, in a circle.
        raise failed

    async def pieces(self, url: str) -> AsyncGenerator[bytes, None]:
        """Those of a file. Raises `TelegramFailure`; nothing is lost by asking again."""
        timeout = aiohttp.ClientTimeout(sock_connect=CONNECT_TIMEOUT_S, sock_read=self._timeout_s)
        try:
            async with self._opened().get(
                url,
                timeout=timeout,
                trace_request_ctx=_Journey(),
                allow_redirects=False,
                proxy=proxy_for(url),
            ) as response:
                if response.status != 200:
                    failure = failure_in(response.status, await response.read())
                    raise failure or Unanswered(f"HTTP {response.status}")
                async for piece in response.content.iter_chunked(PIECE_BYTES):
                    yield piece
        except (aiohttp.ClientError, OSError) as error:
            # The address holds the token, so nothing of the error's text is passed on.
            raise Unanswered(f"the download broke: {type(error).__name__}") from None

    async def request(
        self,
        method: str,
        url: str,
        data: dict[str, str] | aiohttp.FormData | None,
        total_s: float,
    ) -> tuple[int, bytes]:
        """The status and the body of a good answer. Raises `TelegramFailure`."""
        journey = _Journey()
        try:
            async with self._opened().request(
                method,
                url,
                data=data,
                timeout=aiohttp.ClientTimeout(total=total_s, sock_connect=CONNECT_TIMEOUT_S),
                trace_request_ctx=journey,
                proxy=proxy_for(url),
            ) as response:
                status, body = response.status, await response.read()
        except (aiohttp.ClientError, OSError) as error:
            raise journey.ended(error) from error
        failure = failure_in(status, body)
        if failure is not None:
            raise failure
        return status, body

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            trace = aiohttp.TraceConfig()
            trace.on_request_headers_sent.append(_note_departure)
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(keepalive_timeout=KEEPALIVE_S),
                headers={"User-Agent": BaseRequest.USER_AGENT},
                trace_configs=[trace],
            )
        return self._session


class _Journey:
    """How far one request came: `left` once its first bytes may be on the wire."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = False

    def ended(self, error: Exception) -> TelegramFailure:
        # The texts of some errors hold the address, which holds the token: the class must do.
        detail = f"the connection failed: {type(error).__name__}"
        if isinstance(error, aiohttp.ClientConnectorDNSError):
            detail = f"the name {error.host} did not resolve"
        return Unanswered(detail) if self.left else Unreachable(detail)


async def _note_departure(
    _session: aiohttp.ClientSession,
    context: SimpleNamespace,
    _params: aiohttp.TraceRequestHeadersSentParams,
) -> None:
    context.trace_request_ctx.left = True
