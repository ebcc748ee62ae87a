"""The port `Fetch`: what the fake and the real one both keep, and what only a socket can show."""

import asyncio
import gzip
import socket
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import pytest
from aiohttp import web

from adapters.system.addresses import is_public
from adapters.system.fetch import AddressInfo, GuardedFetch
from runtime.domain.errors import ToolError
from runtime.ports.fetch import Fetch, Page
from tests.fakes.fetch import FakeFetch

pytestmark = pytest.mark.requirement("TOOL-8")
Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
PUBLIC = "93.184.216.34"
METADATA = "169.254.169.254"


@dataclass
class Site:
    """A server on loopback: what it serves by path, and what it was asked."""

    port: int = 0
    handlers: dict[str, Handler] = field(default_factory=dict)
    asked: list[web.BaseRequest] = field(default_factory=list)

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    def text(self, path: str, body: str | bytes, **headers: str) -> None:
        raw = body.encode() if isinstance(body, str) else body

        async def answer(request: web.BaseRequest) -> web.StreamResponse:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            kind = named.pop("content-type", "text/plain")
            charset = named.pop("charset", "utf-8") or None
            return web.Response(body=raw, content_type=kind, charset=charset, headers=named)

        self.handlers[path] = answer

    def redirect(self, path: str, to: str) -> None:
        async def answer(request: web.BaseRequest) -> web.StreamResponse:
            return web.Response(status=302, headers={"Location": to, "Set-Cookie": "a=b"})

        self.handlers[path] = answer

    async def serve(self, request: web.BaseRequest) -> web.StreamResponse:
        self.asked.append(request)
        handler = self.handlers.get(request.path)
        return web.Response(status=404) if handler is None else await handler(request)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    found = Site()
    runner = web.ServerRunner(web.Server(found.serve))
    await runner.setup()
    place = web.TCPSite(runner, "127.0.0.1", 0)
    await place.start()
    found.port = runner.addresses[0][1]
    yield found
    await runner.cleanup()


@dataclass
class Names:
    """A resolver whose answers change: the next one of a name's list, the last one for ever."""

    answers: dict[str, list[Sequence[str]]]
    asked: list[str] = field(default_factory=list)

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        found = self.answers.get(host)
        if found is None:
            raise OSError("no such name")
        return found.pop(0) if len(found) > 1 else found[0]


def allowing(site: Site, *, resolve: Names | None = None) -> GuardedFetch:
    return GuardedFetch([f"127.0.0.1:{site.port}"], resolve=resolve)


async def get(fetch: Fetch, url: str, *, max_bytes: int = 1000, timeout_s: float = 20) -> Page:
    return await fetch.get(url, max_bytes=max_bytes, timeout_s=timeout_s)


async def refusal(fetch: Fetch, url: str, *, timeout_s: float = 20) -> str:
    with pytest.raises(ToolError) as caught:
        await get(fetch, url, timeout_s=timeout_s)
    return str(caught.value)


# What every implementation keeps.


@dataclass
class Subject:
    """An implementation that knows ``/page`` (hello) and ``/silent`` (never answers)."""

    fetch: Fetch
    base: str


@pytest.fixture(params=["fake", "real"])
async def subject(request: pytest.FixtureRequest, site: Site) -> AsyncIterator[Subject]:
    base = site.url("")
    if request.param == "fake":
        known = Page(f"{base}/page", 200, "text/plain", b"hello", "utf-8", truncated=False)
        yield Subject(FakeFetch({known.url: known}, frozenset({f"{base}/silent"})), base)
        return
    over = asyncio.Event()

    async def silent(request: web.BaseRequest) -> web.StreamResponse:
        await over.wait()
        return web.Response()

    site.text("/page", "hello")
    site.handlers["/silent"] = silent
    yield Subject(allowing(site), base)
    over.set()


async def test_a_page_is_given(subject: Subject) -> None:
    page = await get(subject.fetch, f"{subject.base}/page#part")
    assert page == Page(f"{subject.base}/page", 200, "text/plain", b"hello", "utf-8", False)


async def test_a_long_body_is_cut(subject: Subject) -> None:
    page = await get(subject.fetch, f"{subject.base}/page", max_bytes=3)
    assert (page.body, page.truncated) == (b"hel", True)
    page = await get(subject.fetch, f"{subject.base}/page", max_bytes=5)
    assert (page.body, page.truncated) == (b"hello", False)


async def test_silence_is_an_error(subject: Subject) -> None:
    told = await refusal(subject.fetch, f"{subject.base}/silent", timeout_s=0.05)
    assert "did not answer within 0.05 s" in told


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://example.org/",
        "gopher://127.0.0.1/",
        "http://user:secret@example.org/",
        "http://",
        "http://127.0.0.1/",
        "http://[::1]/",
        f"http://{METADATA}/latest/meta-data",
    ],
)
async def test_what_no_tool_may_ask_for_is_refused(subject: Subject, url: str) -> None:
    assert "secret" not in await refusal(subject.fetch, url)


# What only the real one does.


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.8.8.8",
        "0.0.0.0",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "100.64.0.1",
        "169.254.0.1",
        METADATA,
        "192.0.0.1",
        "192.0.2.1",
        "198.18.0.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::127.0.0.1",
        "::ffff:127.0.0.1",
        f"::ffff:{METADATA}",
        "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::808:808",
        "2002:7f00:1::",
        "2002:a9fe:a9fe::1",
        "2001:0:4136:e378:8000:63bf:3fff:fdd2",
        "2001:db8::1",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fe80::1%eth0",
        "fec0::1",
        "ff02::1",
        "no address",
        "",
    ],
)
async def test_only_public_addresses_are_connected_to(address: str) -> None:
    assert not is_public(address)
    opened: list[AddressInfo] = []
    fetch = GuardedFetch(resolve=Names({"host.test": [[address]]}), sockets=no_socket(opened))
    assert "host.test is not on the public internet" in await refusal(fetch, "http://host.test/")
    mixed = GuardedFetch(
        resolve=Names({"host.test": [[PUBLIC, address]]}), sockets=no_socket(opened)
    )
    assert "not on the public internet" in await refusal(mixed, "http://host.test/")
    assert opened == []


@pytest.mark.parametrize(
    "address", [PUBLIC, "8.8.8.8", "2606:4700::1111", "64:ff9b::808:808", "::ffff:8.8.8.8"]
)
def test_public_addresses_pass(address: str) -> None:
    assert is_public(address)


def no_socket(opened: list[AddressInfo]) -> Callable[[AddressInfo], socket.socket]:
    def factory(info: AddressInfo) -> socket.socket:
        opened.append(info)
        raise OSError("this test opens no connection")

    return factory


async def test_a_name_that_rebinds_is_connected_to_where_it_was_checked(site: Site) -> None:
    """The first answer is public, every later one is loopback, where something listens."""
    site.text("/", "inside")
    names = Names({"rebind.test": [[PUBLIC], ["127.0.0.1"]]})
    opened: list[AddressInfo] = []
    fetch = GuardedFetch(resolve=names, sockets=no_socket(opened))
    assert "no connection could be made" in await refusal(fetch, site.url("/", "rebind.test"))
    assert names.asked == ["rebind.test"]
    assert {info[4][0] for info in opened} == {PUBLIC}
    assert site.asked == []


async def test_a_literal_that_the_check_never_saw_gets_no_socket(site: Site) -> None:
    """A literal host passes no resolver; the socket is held to the checked addresses too."""
    site.text("/", "inside")
    fetch = GuardedFetch(resolve=Names({"127.0.0.1": [[PUBLIC]]}))
    assert "cannot be fetched" in await refusal(fetch, site.url("/"))
    assert site.asked == []


@pytest.mark.parametrize(
    "target",
    [
        f"http://{METADATA}/latest/meta-data",
        "http://127.0.0.1:1/",
        "http://[::1]/",
        "//localhost/",
        "http://inner.test/",
        "file:///etc/passwd",
        "http://a:b@example.org/",
    ],
)
async def test_each_redirect_is_checked_again(site: Site, target: str) -> None:
    site.redirect("/", target)
    names = Names(
        {
            "127.0.0.1": [["127.0.0.1"]],
            METADATA: [[METADATA]],
            "::1": [["::1"]],
            "localhost": [["127.0.0.1"]],
            "inner.test": [["10.1.2.3"]],
        }
    )
    told = await refusal(allowing(site, resolve=names), site.url("/"))
    assert "is not on the public internet" in told or "fetched" in told
    assert "cannot be fetched" not in told
    assert len(site.asked) == 1


@pytest.mark.requirement("SUB-18")
async def test_a_host_that_may_not_be_reached_is_never_asked(site: Site) -> None:
    site.redirect("/", f"http://inner.test:{site.port}/there")
    site.text("/there", "never")
    fetch = GuardedFetch(
        [f"127.0.0.1:{site.port}", f"inner.test:{site.port}"],
        resolve=Names({"127.0.0.1": [["127.0.0.1"]], "inner.test": [["127.0.0.1"]]}),
    )
    for may, asked in ((frozenset({"127.0.0.1"}), 1), (frozenset({"inner.test"}), 1)):
        with pytest.raises(ToolError, match="outside of what may be reached"):
            await fetch.get(site.url("/"), max_bytes=100, timeout_s=20, may=may.__contains__)
        assert len(site.asked) == asked
    page = await fetch.get(site.url("/"), max_bytes=100, timeout_s=20, may=lambda host: True)
    assert page.body == b"never"


async def test_redirects_are_followed_without_cookies_and_at_most_five_times(site: Site) -> None:
    for n in range(7):
        site.redirect(f"/{n}", f"/{n + 1}")
    site.text("/5", "there")
    page = await get(allowing(site), site.url("/0"))
    assert (page.url, page.body) == (site.url("/5"), b"there")
    assert all("Cookie" not in request.headers for request in site.asked)
    site.redirect("/5", "/6")
    assert "more than 5 redirects" in await refusal(allowing(site), site.url("/0"))


async def test_a_big_body_is_not_read_to_its_end(site: Site) -> None:
    sent = 0
    over = asyncio.Event()

    async def endless(request: web.BaseRequest) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while True:
                await response.write(b"x" * 65536)
                sent += 65536
        except ConnectionError:
            over.set()
        return response

    site.handlers["/"] = endless
    page = await get(allowing(site), site.url("/"), max_bytes=100_000)
    assert (len(page.body), page.truncated) == (100_000, True)
    await over.wait()
    assert sent < 50_000_000


async def test_a_body_that_stops_half_way_is_cut_by_time(site: Site) -> None:
    gate, begun = asyncio.Event(), asyncio.Event()

    async def slow(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"so far")
        begun.set()
        await gate.wait()
        return response

    site.handlers["/"] = slow
    told = await refusal(allowing(site), site.url("/"), timeout_s=1)
    assert begun.is_set()
    assert "did not answer within 1 s" in told
    gate.set()


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "raw deflate", "members"])
async def test_a_compression_bomb_stays_small(site: Site, encoding: str) -> None:
    plain = b"a" * 50_000_000
    raw = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    body = {
        "gzip": lambda: gzip.compress(plain),
        "deflate": lambda: zlib.compress(plain),
        "raw deflate": lambda: raw.compress(plain) + raw.flush(),
        "members": lambda: gzip.compress(b"a" * 1000) * 4000,
    }[encoding]()
    site.text("/", body, content_encoding="deflate" if "deflate" in encoding else "gzip")
    page = await get(allowing(site), site.url("/"), max_bytes=20_000)
    assert (page.body, page.truncated) == (b"a" * 20_000, True)


async def test_compressed_pages_are_read_and_odd_encodings_refused(site: Site) -> None:
    site.text("/gzip", gzip.compress(b"hel") + gzip.compress(b"lo"), content_encoding="gzip")
    site.text("/bad", b"no gzip at all", content_encoding="gzip")
    site.text("/br", b"x", content_encoding="br")
    assert (await get(allowing(site), site.url("/gzip"))).body == b"hello"
    assert "not what its encoding says" in await refusal(allowing(site), site.url("/bad"))
    assert "not asked for: 'br'" in await refusal(allowing(site), site.url("/br"))


@pytest.mark.parametrize("charset", ["", "windows-1251"])
async def test_a_page_comes_with_the_encoding_that_its_header_names(
    site: Site, charset: str
) -> None:
    site.text("/", b"x", charset=charset)
    assert (await get(allowing(site), site.url("/"))).encoding == charset


async def test_nothing_of_the_machine_goes_along(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    site.text("/", "hello")
    await get(allowing(site), site.url("/?q=1"))
    sent = site.asked[0].headers
    assert set(sent) == {"Host", "Accept", "Accept-Encoding", "User-Agent", "Connection"}


async def test_an_error_names_no_query_and_no_inside(site: Site) -> None:
    site.text("/", "x")
    closed = GuardedFetch(["127.0.0.1:1"])
    told = await refusal(closed, "http://127.0.0.1:1/a?token=secret")
    assert told == "http://127.0.0.1:1/a cannot be fetched: no connection could be made"
    assert "has no address" in await refusal(GuardedFetch(resolve=Names({})), "http://none.test/")
