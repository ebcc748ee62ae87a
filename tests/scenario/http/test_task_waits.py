"""Requests that wait for a task: so many at once, and none for a client that is gone (TSK-3)."""

import asyncio
from typing import Any

import aiohttp
import pytest

from gateway.http import tasks as routes
from tests.conftest import FailAfter
from tests.scenario.harness import ADMIN, READER
from tests.scenario.http.conftest import Sites
from tests.scenario.http.test_tasks import database, made, marked, now, read, sites

__all__ = ["database", "sites"]


@pytest.mark.requirement("TSK-1", "TSK-3", "API-1")
@pytest.mark.parametrize(("bound", "who"), [("MOST_WAITS_OF_ONE", "same"), ("MOST_WAITS", "other")])
async def test_so_many_wait_at_once(
    sites: Sites, monkeypatch: pytest.MonkeyPatch, fail_after: FailAfter, bound: str, who: str
) -> None:
    monkeypatch.setattr(routes, bound, 1)
    async with fail_after(), sites() as gateway, aiohttp.ClientSession() as client:
        session = await gateway.session()
        task = await made(gateway, session, "Write the notes")
        path = f"/v1/sessions/{session}/tasks/{task['id']}/output"
        token = READER if who == "other" else ADMIN

        async def asks(query: str, token: str) -> tuple[int, dict[str, Any], str | None]:
            headers = {"Authorization": f"Bearer {token}"}
            async with client.get(f"{gateway.url}{path}?{query}", headers=headers) as found:
                return found.status, await found.json(), found.headers.get("Retry-After")

        first = asyncio.create_task(asks("wait=true", ADMIN), name="first")
        await asks("", token)
        while (refused := await asks("wait=true&timeout_ms=0", token))[0] == 200:
            if first.done():
                # This one had its place in that moment.
                first = asyncio.create_task(asks("wait=true", ADMIN), name="first")
            await asks("", token)
        status, problem, again = refused
        assert (status, problem["code"], again) == (429, "queue_full", "10")
        assert "waits of one token" in problem["detail"]
        # Who does not wait needs no place, and a place is free again once its wait is over.
        assert (await asks("", token))[0] == 200
        await marked(gateway, session, task, status="completed")
        assert (await first)[0] == 200
        assert (await asks("wait=true&timeout_ms=0", token))[0] == 200


@pytest.mark.requirement("TSK-3", "API-1")
async def test_a_wait_ends_with_the_client_that_waits(
    sites: Sites, monkeypatch: pytest.MonkeyPatch, fail_after: FailAfter
) -> None:
    monkeypatch.setattr(routes, "MOST_WAITS_OF_ONE", 1)
    monkeypatch.setattr(routes, "GONE_S", 0.01)
    async with fail_after(), sites() as gateway:
        session = await gateway.session()
        task = await made(gateway, session, "Write the notes")
        path = f"/v1/sessions/{session}/tasks/{task['id']}/output?wait=true"
        raw = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {ADMIN}\r\n\r\n"
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        writer.write(raw.encode())
        answered = asyncio.create_task(reader.read(10_000), name="answer")
        while (await gateway.ask("GET", f"{path}&timeout_ms=0"))[0] == 200:
            if answered.done():
                # The other had its place in that moment.
                writer.write(raw.encode())
                answered = asyncio.create_task(reader.read(10_000), name="answer")
                await now(gateway, session, task)
        writer.close()
        await answered
        while (await gateway.ask("GET", f"{path}&timeout_ms=0"))[0] == 429:
            pass
        assert (await read(gateway, session, task, "wait=true&timeout_ms=0"))["task"] == task
