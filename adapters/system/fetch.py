"""A guarded HTTP GET for `web_fetch` (TOOL-8).

Each hop is resolved once, every address is checked, and the connection is made to exactly those
addresses: a name that answers differently a moment later changes nothing. It carries no cookies,
no credentials and no proxy settings, and reads no more than it was asked for.
"""

import asyncio
import ipaddress
import socket
import zlib
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from typing_extensions import override
from yarl import URL

from adapters.system.addresses import is_public
from runtime.domain.errors import ToolError
from runtime.domain.printable import printable_name, quoted
from runtime.ports.fetch import MayReach, Page

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""The addresses of a host and port, as literals. Raises `OSError` where there are none."""
AddressInfo = tuple[
    int | socket.AddressFamily, int | socket.SocketKind, int, str, tuple[str | int, ...]
]
SocketFactory = Callable[[AddressInfo], socket.socket]
"""Makes the socket for one address that is about to be connected to."""

_REDIRECTS = 5
_REDIRECTING = frozenset({301, 302, 303, 307, 308})
_HEADERS = {
    "Accept": "text/html,application/xhtml+xml,text/*;q=0.9,application/json;q=0.9,*/*;q=0.5",
    "Accept-Encoding": "gzip, deflate",
    "User-Agent": "Gatehouse (+web_fetch)",
}
_PIECE = 16 * 1024


class GuardedFetch:
    """The port `Fetch` over aiohttp; keeps no connection between calls.

    `allow_hosts` holds ``host:port`` pairs that are reached whatever their address is: an
    operator's own service. `resolve` and `sockets` stand in for the system's.
    """

    def __init__(
        self,
        allow_hosts: Collection[str] = (),
        *,
        resolve: Resolve | None = None,
        sockets: SocketFactory | None = None,
    ) -> None:
        self._allowed = frozenset(host.lower() for host in allow_hosts)
        self._resolve = resolve or _system_resolve
        self._sockets = sockets

    async def get(
        self, url: str, *, max_bytes: int, timeout_s: float, may: MayReach | None = None
    ) -> Page:
        """At most `max_bytes` of the body, after decompression. Raises `ToolError`."""
        try:
            async with asyncio.timeout(timeout_s):
                return await self._get(_parsed(url), max_bytes, may)
        except TimeoutError as error:
            raise ToolError(f"{_named(url)} did not answer within {timeout_s:g} s") from error
        except (aiohttp.ClientError, OSError, UnicodeError, ValueError) as error:
            raise ToolError(f"{_named(url)} cannot be fetched: {_reason(error)}") from error

    async def _get(self, url: URL, max_bytes: int, may: MayReach | None) -> Page:
        for _ in range(_REDIRECTS + 1):
            if may is not None and not may((url.host or "").lower().rstrip(".")):
                raise ToolError(f"{url.host} is outside of what may be reached from here")
            found = await self._hop(url, max_bytes)
            if isinstance(found, Page):
                return found
            url = found
        raise ToolError(f"{_named(str(url))}: more than {_REDIRECTS} redirects")

    async def _hop(self, url: URL, max_bytes: int) -> Page | URL:
        """One request to checked addresses: the page, or where it redirects to."""
        addresses = await self._checked(url)
        connector = aiohttp.TCPConnector(
            resolver=_Pinned(addresses),
            use_dns_cache=False,
            force_close=True,
            socket_factory=_Sockets(addresses, self._sockets),
        )
        async with (
            aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
                auto_decompress=False,
                timeout=aiohttp.ClientTimeout(total=None),
            ) as session,
            session.get(url, headers=_HEADERS, allow_redirects=False) as response,
        ):
            location = response.headers.get("Location")
            if response.status in _REDIRECTING and location:
                return _parsed(str(url.join(URL(location))))
            body, truncated = await _body(response, max_bytes)
            return Page(
                url=str(url),
                status=response.status,
                media_type=response.content_type,
                body=body,
                encoding=response.charset or "",
                truncated=truncated,
            )

    async def _checked(self, url: URL) -> Sequence[str]:
        """The addresses to connect to. Raises `ToolError` if one of them is not public."""
        host, port = url.host or "", url.port or 0
        try:
            addresses = await self._resolve(host, port)
        except OSError as error:
            raise ToolError(f"{host} has no address") from error
        if f"{host}:{port}".lower() in self._allowed:
            return addresses
        if not addresses or not all(is_public(address) for address in addresses):
            raise ToolError(f"{host} is not on the public internet; only public pages are fetched")
        return addresses


class _Sockets:
    """Makes a socket for a checked address only: a literal host never passes the resolver."""

    def __init__(self, addresses: Sequence[str], inner: SocketFactory | None) -> None:
        self._addresses = frozenset(ipaddress.ip_address(a.partition("%")[0]) for a in addresses)
        self._inner = inner

    def __call__(self, info: AddressInfo) -> socket.socket:
        address = ipaddress.ip_address(str(info[4][0]).partition("%")[0])
        if address not in self._addresses:
            raise OSError(f"{address} was not checked")
        if self._inner is not None:
            return self._inner(info)
        return socket.socket(info[0], info[1], info[2])


class _Pinned(AbstractResolver):
    """Answers with the addresses that were checked, whatever is asked."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self._addresses = addresses

    @override
    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=socket.IPPROTO_TCP,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for address in self._addresses
        ]

    @override
    async def close(self) -> None:
        return


async def _system_resolve(host: str, port: int) -> Sequence[str]:
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(info[4][0]) for info in found))


def _parsed(text: str) -> URL:
    if any(c.isspace() or not c.isprintable() for c in text) or "\\" in text:
        # Programs do not agree where the host of such an address ends.
        raise ToolError(f"{_named(text)}: an address has no spaces, controls or backslashes")
    url = URL(text)
    if url.scheme not in {"http", "https"} or not url.host:
        raise ToolError(f"{_named(text)}: only http:// and https:// pages are fetched")
    if url.user is not None or url.password is not None:
        raise ToolError(f"{url.host}: a URL with a user or a password is not fetched")
    if "%" in url.host:
        raise ToolError(f"{url.host}: a host with a zone is not fetched")
    return url.with_fragment(None)


async def _body(response: aiohttp.ClientResponse, max_bytes: int) -> tuple[bytes, bool]:
    """At most `max_bytes` of the decoded body, and whether it was cut.

    What comes over the wire is held to `max_bytes` as well.
    """
    decoder = _decoder(response.headers.get("Content-Encoding", ""))
    body = bytearray()
    received = 0
    async for piece in response.content.iter_chunked(_PIECE):
        received += len(piece)
        body += decoder.decode(piece, max_bytes + 1 - len(body))
        if len(body) > max_bytes or received > max_bytes:
            return bytes(body[:max_bytes]), True
    return bytes(body), False


class _Decoder(Protocol):
    def decode(self, data: bytes, limit: int) -> bytes:
        """At most `limit` bytes (more than 0) of what `data` adds; the rest may be lost."""
        ...


class _Identity:
    def decode(self, data: bytes, limit: int) -> bytes:
        return data[:limit]


@dataclass(slots=True)
class _Inflate:
    """gzip or zlib by their headers, in several members; else a raw deflate stream."""

    inflate: "zlib._Decompress | None" = None

    def decode(self, data: bytes, limit: int) -> bytes:
        out = bytearray()
        while data and len(out) < limit:
            out += self._some(data, limit - len(out))
            inflate = self.inflate
            if inflate is None or not inflate.eof:
                break
            data, self.inflate = inflate.unused_data, None
        return bytes(out)

    def _some(self, data: bytes, limit: int) -> bytes:
        try:
            if self.inflate is None:
                self.inflate = zlib.decompressobj(zlib.MAX_WBITS | 32)
                try:
                    return self.inflate.decompress(data, limit)
                except zlib.error:
                    self.inflate = zlib.decompressobj(-zlib.MAX_WBITS)
            return self.inflate.decompress(data, limit)
        except zlib.error as error:
            raise ToolError(f"the page is not what its encoding says: {error}") from error


def _decoder(encoding: str) -> _Decoder:
    match encoding.strip().lower():
        case "" | "identity":
            return _Identity()
        case "gzip" | "x-gzip" | "deflate":
            return _Inflate()
        case other:
            raise ToolError(
                f"the page came in an encoding that was not asked for: {quoted(other, 40)}"
            )


def _named(url: str) -> str:
    """A URL in an error: without its query, which may hold what is nobody's business."""
    return printable_name(url.partition("?")[0].partition("#")[0])


def _reason(error: BaseException) -> str:
    if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientConnectorSSLError):
        return "its certificate is not valid for it"
    if isinstance(error, aiohttp.ClientConnectorError):
        return "no connection could be made"
    return type(error).__name__
