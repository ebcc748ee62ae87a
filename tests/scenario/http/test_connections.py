"""Connections that say nothing: they must not keep others out."""

import asyncio

import pytest

from gateway.http import connections
from tests.scenario.http.conftest import Sites


@pytest.mark.requirement("SEC-3")
async def test_a_connection_too_many_is_closed_and_the_others_are_served(
    sites: Sites, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "most_connections", lambda: 4)
    async with sites() as site, asyncio.timeout(20):
        idle = [await asyncio.open_connection("127.0.0.1", site.port) for _ in range(12)]
        refused = [reader for reader, _ in idle[6:]]
        assert [await reader.read() for reader in refused] == [b""] * len(refused)
        for _, writer in idle:
            writer.close()
        async with site.client.get(f"{site.url}/healthz") as response:
            assert response.status == 200


@pytest.mark.requirement("SEC-3")
async def test_a_connection_that_never_sends_a_request_is_closed(
    sites: Sites, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "SILENT_S", 0.05)
    async with sites() as site, asyncio.timeout(20):
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
