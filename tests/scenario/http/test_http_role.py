"""A process that only serves: what is said to it is stored and waits, or is refused with a 503."""

from pathlib import Path

import aiohttp
import pytest

from gateway.cli.client import GatewayClient
from tests.conftest import FailAfter
from tests.contract.store_support import postgres_server
from tests.scenario.process.program import ADMIN, BEARER, SHORT_LEASE, Place, gateway
from tests.scenario.process.test_roles import ready
from tests.scenario.process.test_store_away import road, until_ready


class Page:
    """A person at the page, as it sends: a repeat carries the key of the first try."""

    def __init__(self, url: str, session_id: str, http: aiohttp.ClientSession) -> None:
        self._url = f"{url}/v1/sessions/{session_id}"
        self._http = http
        self.retry_after = ""

    async def sends(self, text: str, key: str) -> tuple[int, dict[str, object]]:
        """(status, what was answered)."""
        headers = {"Idempotency-Key": key}
        body = {"content": text}
        async with self._http.post(f"{self._url}/runs", json=body, headers=headers) as answer:
            self.retry_after = answer.headers.get("Retry-After", "")
            return answer.status, await answer.json(content_type=None)

    async def said(self, kind: str) -> list[str]:
        """The texts of this kind in the conversation."""
        async with self._http.get(f"{self._url}/messages") as answer:
            items = (await answer.json())["items"]
        return [one["text"] for one in items if one["kind"] == kind]


@pytest.mark.requirement("MSG-1", "MSG-2", "SCALE-1")
async def test_what_is_said_to_a_process_that_only_serves_is_kept_or_refused_and_answered_once(
    tmp_path: Path, fail_after: FailAfter
) -> None:
    async with fail_after(120), road(postgres_server()) as (way, database):
        place = Place(tmp_path)
        place.variables |= {"GATEHOUSE_DATABASE__URL": database, **SHORT_LEASE}
        async with (
            gateway(place, "serve", "--roles", "http") as front,
            GatewayClient(await front.url(), ADMIN) as client,
            aiohttp.ClientSession(headers=BEARER) as http,
        ):
            session = await client.post("/v1/sessions", {"channel": "web"})
            page = Page(client.url, str(session["id"]), http)
            status, first = await page.sends("hello", "one")
            assert (status, first["disposition"]) == (202, "queued"), "nobody takes turns yet"

            await way.cut()
            await until_ready(client.url, ready=False)
            status, problem = await page.sends("are you there?", "two")
            assert (status, problem["code"], page.retry_after) == (503, "unavailable", "2")
            assert problem["detail"] == "Nothing was done; try again."
            assert "127.0.0.1" not in str(problem), "where the database is stays here"

            await way.mend()
            await until_ready(client.url, ready=True)
            assert await page.said("user") == ["hello"]
            status, second = await page.sends("are you there?", "two")
            assert (status, second["disposition"]) == (202, "queued")
            assert await page.sends("are you there?", "two") == (202, second)
            runs = {first["run_id"], second["run_id"]}
            assert await page.said("assistant") == []

            async with gateway(place, "serve", "--roles", "workers,timers") as back:
                await ready(back)
                while len(await page.said("assistant")) < len(runs):
                    continue
            assert await page.said("user") == ["hello", "are you there?"]
            assert len(await page.said("assistant")) == len(runs)
