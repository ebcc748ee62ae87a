"""The real program counts itself: every part is wired to what `/metrics` says (API-5, OPS-8)."""

from pathlib import Path

import aiohttp
import pytest

from tests.conftest import FailAfter
from tests.scenario.process.program import BEARER, Place, gateway
from tests.scenario.process.talk import conversation, finished
from tests.unit.http.metrics_support import Scrape

MODEL = "offline:offline"


@pytest.mark.requirement("OPS-8", "API-5", "TOOL-5")
async def test_a_running_gateway_counts_what_it_does(tmp_path: Path, fail_after: FailAfter) -> None:
    place = Place(tmp_path, {"GATEHOUSE_WORKERS__TURNS": "7"})
    async with fail_after(60), gateway(place) as program:
        url = await program.url()
        async with conversation(url) as talk:
            sent = await talk.submit("list files")
            assert await finished(talk, sent.run_id) == "completed"
        async with aiohttp.ClientSession(headers=BEARER) as client:
            async with client.get(f"{url}/metrics") as response:
                assert response.content_type == "text/plain"
                found = Scrape(await response.text())
            async with client.get(f"{url}/v1/status") as response:
                status = await response.json()
        chosen = await program.says("sandbox_chosen")
    assert found.of("messages_in_total", channel="terminal", disposition="queued") == 1
    assert found.of("queue_seconds_count") == 1
    assert found.of("model_calls_total", model=MODEL, outcome="answered") == 2
    assert found.of("tool_decisions_total", tool="list_dir", verdict="allow") == 1
    assert found.of("tool_calls_total", tool="list_dir", status="ok") == 1
    assert found.of("store_units_total", unit="finish", result="kept") == 1
    commits = found.of("store_commits_total")
    assert commits is not None
    assert commits >= 3
    assert found.of("turns_limit") == 7
    assert found.of("lease_held", lease="process") == 1
    assert found.of("bus_connected") == 1
    sandboxes = [dict(labels) for name, labels in found.values if name == "gatehouse_sandbox_info"]
    assert [one["name"] for one in sandboxes] == [status["sandbox"]]
    assert status["sandbox"]
    assert status["sandbox"] in chosen
    for part in ("bus", "engine", "adapters", "taking"):
        assert found.of("part_up", part=part) == 1, part
    assert found.types["gatehouse_runs_ended"] == "counter"
    assert not any(name.endswith("_created") for name in found.names)


@pytest.mark.requirement("OPS-8")
async def test_what_a_caller_makes_up_is_no_label(tmp_path: Path, fail_after: FailAfter) -> None:
    async with fail_after(60), gateway(Place(tmp_path)) as program:
        url = await program.url()
        async with aiohttp.ClientSession(headers=BEARER) as client:
            async with client.request("PROPFIND", f"{url}/coffee/secret-path") as response:
                assert response.status in (404, 405)
            async with client.get(f"{url}/metrics") as response:
                text = await response.text()
    assert "PROPFIND" not in text
    assert "secret-path" not in text
    assert 'method="other"' in text
