"""The gateway's HTTP API, as the command line uses it. It shows nothing and decides nothing."""

import errno
import os
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import aiohttp
from pydantic import JsonValue, SecretStr

from gateway import home_socket
from gateway.cli.answers import Refused, Unreachable
from gateway.config import Client
from runtime.domain.json_fields import object_in, object_of, objects_of, text_of

Json = JsonValue
JsonObject = dict[str, JsonValue]

TIMEOUT_S: Final = 30.0
CONNECT_S: Final = 5.0
PAGE: Final = 200
"""The most items that a gateway puts on a page."""
LOCAL: Final = "http://localhost"
"""What a socket's address is for HTTP."""
NOT_RUNNING: Final = (
    "no gateway of {home} is running. Start it with `gatehouse serve`. To use a gateway elsewhere, "
    "put its address into GATEHOUSE_URL and its token into GATEHOUSE_TOKEN"
)


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event of the stream; `id` is where a later stream goes on."""

    id: str
    kind: str
    data: JsonObject


class GatewayClient:
    """A connection to one gateway. Every call raises `Unreachable` or `Refused`."""

    def __init__(
        self,
        url: str,
        token: SecretStr | None,
        *,
        home: Path | None = None,
        socket: Path | None = None,
    ) -> None:
        """At `url`; or, where that is empty, at a socket: this one, or any of a `home`."""
        self.url = url or LOCAL
        self._by_socket = not url
        self._token = token
        self._home = home
        self._socket = socket
        self._session: aiohttp.ClientSession | None = None
        self._way = ExitStack()

    @classmethod
    def of(cls, place: Client) -> Self:
        """The gateway that the settings name."""
        return cls(place.url, place.token, home=None if place.url else place.home)

    async def __aenter__(self) -> Self:
        if not self._by_socket:
            self._session = self._new_session(None)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._leave()

    async def page_url(self) -> str:
        """Where a person's browser finds the gateway."""
        return text_of(await self.get("/v1/runtime"), "url") if self._by_socket else self.url

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> JsonObject:
        """The object at `path`."""
        return await self._call("GET", path, query=query)

    async def items(
        self, path: str, query: Mapping[str, str] | None = None, *, most: int = 200
    ) -> list[JsonObject]:
        """The items of a list, at most `most`."""
        found: list[JsonObject] = []
        async for page in self.pages(path, {**(query or {}), "limit": str(min(most, PAGE))}):
            found += page
            if len(found) >= most:
                break
        return found[:most]

    async def pages(self, path: str, query: Mapping[str, str]) -> AsyncIterator[list[JsonObject]]:
        """The items of a list, page by page."""
        asked = dict(query)
        while True:
            page = await self.get(path, asked)
            yield objects_of(page, "items")
            asked["cursor"] = text_of(object_of(page, "pagination"), "next_cursor")
            if not asked["cursor"]:
                return

    async def post(
        self, path: str, body: JsonObject | None = None, *, key: str | None = None
    ) -> JsonObject:
        """What became of a request; the same `key` makes a repeat harmless (RUN-4)."""
        headers = {} if key is None else {"Idempotency-Key": key}
        return await self._call("POST", path, body=body or {}, headers=headers)

    async def events(
        self, query: Mapping[str, str], *, after: str | None = None
    ) -> AsyncIterator[ServerEvent]:
        """Events from now, or from past `after`, until the connection ends (API-4)."""
        headers = {"Accept": "text/event-stream"}
        if after is not None:
            headers["Last-Event-ID"] = after
        session = await self._open()
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=60.0)
        try:
            async with session.get(
                f"{self.url}/v1/events",
                params=query,
                headers=headers,
                timeout=timeout,
                allow_redirects=False,
            ) as response:
                if response.status != 200:
                    raise _refused(response.status, await response.read())
                async for event in _events(response.content):
                    yield event
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise await self._unreachable(error) from error

    async def _call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: JsonObject | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> JsonObject:
        try:
            async with (await self._open()).request(
                method,
                f"{self.url}{path}",
                params=query,
                json=body,
                headers=headers,
                # It would send the token on, to whatever address it is told.
                allow_redirects=False,
            ) as response:
                raw = await response.read()
                if response.status >= 400:
                    raise _refused(response.status, raw)
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            raise await self._unreachable(error) from error
        return object_in(raw) or {}

    async def _open(self) -> aiohttp.ClientSession:
        """The connections; those of a home lead to a gateway of it that is there now."""
        if self._session is None:
            found = [self._socket] if self._socket else home_socket.live(self._home or Path())
            if not found:
                raise Unreachable(NOT_RUNNING.format(home=self._home))
            path = self._way.enter_context(home_socket.reachable(found[0]))
            self._session = self._new_session(aiohttp.UnixConnector(path))
        return self._session

    def _new_session(self, connector: aiohttp.BaseConnector | None) -> aiohttp.ClientSession:
        headers = {"Accept": "application/json", "User-Agent": "gatehouse-cli"}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token.get_secret_value()}"
        return aiohttp.ClientSession(
            headers=headers,
            connector=connector,
            timeout=aiohttp.ClientTimeout(total=TIMEOUT_S, sock_connect=CONNECT_S),
        )

    async def _leave(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()
        self._way.close()

    async def _unreachable(self, error: BaseException) -> Unreachable:
        why = "it did not answer in time" if isinstance(error, TimeoutError) else _plain(error)
        if not self._by_socket:
            return Unreachable(
                f"no gateway can be reached at {self.url} ({why}). Start one with "
                "`gatehouse serve`, or name another address in GATEHOUSE_URL and its token in "
                "GATEHOUSE_TOKEN."
            )
        # The next call looks for the socket of the gateway that took its place.
        await self._leave()
        return Unreachable(f"the gateway of {self._home or self._socket} went away ({why})")


async def _events(content: aiohttp.StreamReader) -> AsyncIterator[ServerEvent]:
    """Events of a stream (WHATWG HTML, 9.2.6); what is no JSON object is passed over."""
    fields: dict[str, list[str]] = {}
    last = ""
    buffer = b""
    async for chunk in content.iter_any():
        *lines, buffer = (buffer + chunk).split(b"\n")
        for raw in lines:
            line = raw.decode("utf-8", "replace").rstrip("\r")
            if line:
                name, _, value = line.partition(":")
                fields.setdefault(name, []).append(value.removeprefix(" "))
                continue
            last = fields.get("id", [last])[-1]
            data = object_in("\n".join(fields.get("data", []))) or {}
            kind = fields.get("event", ["message"])[-1]
            fields = {}
            if data or kind != "message":
                yield ServerEvent(last, kind, data)


def _refused(status: int, raw: bytes) -> Refused:
    problem = object_in(raw) or {}
    detail = str(problem.get("detail") or problem.get("title") or f"it answered {status}")
    return Refused(status, detail, str(problem.get("code", "")), str(problem.get("kind", "")))


_UNREACHED: Final = {
    errno.ECONNREFUSED: "the connection was refused",
    errno.ECONNRESET: "the connection was cut",
    errno.EPIPE: "the connection was cut",
}


def _said(error: OSError) -> str:
    if isinstance(error, socket.gaierror) or error.errno is None:
        return error.strerror or str(error) or "the connection was refused"
    return os.strerror(error.errno)


def _plain(error: BaseException) -> str:
    if isinstance(error, aiohttp.ClientConnectorError):
        # Of a call that failed asyncio says only which address it called; the number says why.
        return _UNREACHED.get(error.os_error.errno or 0) or _said(error.os_error)
    # aiohttp's own error of a connection that was reset is no `ConnectionResetError`.
    reset = isinstance(error, OSError) and error.errno in (errno.ECONNRESET, errno.EPIPE)
    cut = (aiohttp.ClientPayloadError, aiohttp.ServerDisconnectedError, ConnectionResetError)
    if reset or isinstance(error, cut):
        return "the connection was cut"
    return str(error) or type(error).__name__
