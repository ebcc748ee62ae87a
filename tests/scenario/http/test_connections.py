"""Connections that say nothing: they must not keep others out."""

import asyncio
from contextlib import suppress

import aiohttp
import pytest
from aiohttp import web

from gateway.http import auth, connections, events
from gateway.http.server import serve
from gateway.http.services import HttpSettings
from tests.scenario.harness import ADMIN
from tests.scenario.http.conftest import Sites


@pytest.mark.requirement("SEC-7")
async def test_half_sent_requests_keep_nobody_out(
    sites: Sites, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest connection that asks for nothing makes room."""
    monkeypatch.setattr(connections, "most_connections", lambda: 8)
    async with sites() as site, asyncio.timeout(120), site.feed() as feed:
        await feed.until("ready")
        half = [await asyncio.open_connection("127.0.0.1", site.port) for _ in range(20)]
        for _, writer in half:
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: localh")
        for _ in range(10):
            async with (
                aiohttp.ClientSession() as fresh,
                fresh.get(f"{site.url}/healthz") as response,
            ):
                assert response.status == 200
        assert await half[0][0].read() == b""
        session = await site.session()
        await site.says(session, "the stream was not ended for them")
        await feed.until("run.queued")
        for _, writer in half:
            writer.close()


@pytest.mark.requirement("SEC-7")
async def test_a_connection_too_many_is_closed_where_all_others_are_at_work(
    sites: Sites, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "most_connections", lambda: 2)
    monkeypatch.setattr(events, "most_streams", lambda wanted: wanted)
    async with sites() as site, asyncio.timeout(120), site.feed() as one, site.feed() as two:
        await one.until("ready")
        await two.until("ready")
        reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
        assert await reader.read() == b""
        writer.close()


@pytest.mark.requirement("SEC-7")
async def test_half_a_second_request_is_given_up_as_well(
    sites: Sites, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "IDLE_S", 0.05)
    async with sites() as site, asyncio.timeout(120):
        reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET / HT")
        assert b"200 OK" in await reader.read()
        writer.close()


@pytest.mark.requirement("SEC-7")
async def test_a_body_that_never_ends_is_given_up(
    sites: Sites, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auth, "FORM_S", 0.05)
    monkeypatch.setattr(auth, "BODY_S", 0.05)
    async with sites() as site, asyncio.timeout(120):
        for path, kind in (
            ("/login", "application/x-www-form-urlencoded"),
            ("/v1/sessions", "application/json"),
        ):
            reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
            head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n"
            head += f"Authorization: Bearer {ADMIN}\r\nContent-Length: 100\r\n\r\nto"
            writer.write(head.encode())
            assert b"408 " in await reader.readline()
            writer.close()


@pytest.mark.requirement("SEC-7")
async def test_a_reader_that_takes_nothing_is_given_up_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "STALLED_S", 0.2)
    monkeypatch.setattr(connections, "LOOK_S", 0.05)
    gone = asyncio.Event()

    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while True:
                await response.write(b"x" * 65_536)
        finally:
            gone.set()

    app = web.Application()
    app.add_routes([web.get("/", endless)])
    settings = HttpSettings(admin_tokens=lambda: (ADMIN,), port=0)
    async with asyncio.timeout(120), serve(app, settings) as port:
        url = f"http://127.0.0.1:{port}/"
        async with aiohttp.ClientSession() as reads, reads.get(url) as other:
            # It does not read on, so that what is sent to it waits.
            stuck, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
            writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            while not gone.is_set():
                assert await other.content.readany()
            gone.clear()
            assert len(await other.content.readany()) > 0
            assert not gone.is_set()
            writer.close()
            with suppress(ConnectionError):
                while await stuck.read(1 << 20):
                    pass


@pytest.mark.requirement("SEC-7")
async def test_a_connection_that_never_sends_a_request_is_closed(
    sites: Sites, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "SILENT_S", 0.05)
    async with sites() as site, asyncio.timeout(120):
        reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
        writer.write(b"GET / HT")
        assert await reader.read() == b""
        writer.close()


async def test_a_body_that_is_not_what_its_encoding_says_is_a_bad_request(sites: Sites) -> None:
    async with sites() as site:
        headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
        url = f"{site.url}/v1/sessions"
        async with site.client.post(url, data=b"no gzip at all", headers=headers) as response:
            assert response.status in (400, 401, 403)


@pytest.mark.requirement("SEC-7")
async def test_streams_leave_half_of_the_connections_to_requests(
    sites: Sites, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "most_connections", lambda: 5)
    assert connections.most_streams(1) == 1
    async with sites() as site, asyncio.timeout(120), site.feed() as one, site.feed() as two:
        await one.until("ready")
        await two.until("ready")
        status, problem = await site.ask("GET", "/v1/events")
        assert (status, problem["code"]) == (429, "queue_full")
        assert (await site.ask("GET", "/v1/status"))[0] == 200
