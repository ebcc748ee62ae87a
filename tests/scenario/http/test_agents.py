"""The trees of subagents by the API, in the shape of AGT-2."""

import asyncio
import json

import pytest

from tests.fakes.model import Said
from tests.scenario.http.conftest import Sites

BATCH = json.dumps(
    {
        "agents": [
            {"task": "Look.", "id": "one"},
            {"task": "Look.", "id": "two", "depends_on": ["one"]},
        ]
    }
)
SCRIPT = (Said(calls=(("sessions_spawn", BATCH),)), "found " * 100, "also found", "Both looked.")


@pytest.mark.requirement("AGT-2")
async def test_a_tree_is_read_by_any_of_its_sessions(sites: Sites) -> None:
    async with asyncio.timeout(30), sites(*SCRIPT) as gateway:
        root = await gateway.session()
        status, empty = await gateway.ask("GET", f"/v1/agents/summaries?session_id={root}")
        assert (status, empty["items"], set(empty["counts"].values())) == (200, [], {0})
        run = await gateway.says(root, "look")
        await gateway.state(run, "completed")

        _, found = await gateway.ask("GET", f"/v1/agents/summaries?root={root}")
        one, two = found["items"]
        assert [one["agent_id"], two["agent_id"]] == ["one", "two"]
        assert one["parent_session_id"] == one["root_session_id"] == root
        assert (one["status"], one["standing"], one["depth"]) == ("completed", "completed", 1)
        assert one["last_output_preview"] == ("found " * 100)[:240]
        assert (one["tokens"], one["cost_usd"]) == (110, 0.001)
        assert one["elapsed_ms"] == one["settled_at_ms"] - one["created_at_ms"]
        assert found["pagination"] == {"total_count": 2}
        assert found["counts"]["completed"] == 2

        by_child = f"/v1/agents/summaries?session_id={two['session_id']}"
        assert (await gateway.ask("GET", by_child))[1]["items"] == found["items"]
        _, first = await gateway.ask("GET", f"{by_child}&limit=1")
        assert first["items"] == [one]
        assert first["counts"]["completed"] == 2, "of the whole scope"
        cursor = first["pagination"]["next_cursor"]
        _, rest = await gateway.ask("GET", f"{by_child}&limit=1&cursor={cursor}")
        assert rest["items"] == [two]
        assert "next_cursor" not in rest["pagination"]


@pytest.mark.requirement("AGT-2")
async def test_only_what_is_asked_for_and_nothing_else_is_taken(sites: Sites) -> None:
    async with asyncio.timeout(30), sites(*SCRIPT) as gateway:
        root = await gateway.session()
        await gateway.state(await gateway.says(root, "look"), "completed")
        path = f"/v1/agents/summaries?session_id={root}"

        async def names(query: str) -> list[str]:
            return [one["agent_id"] for one in (await gateway.ask("GET", path + query))[1]["items"]]

        assert await names("&status=completed") == ["one", "two"]
        assert await names("&status=failed") == []
        assert await names("&has_runtime=true") == []
        assert await names("&has_runtime=false") == ["one", "two"]
        everywhere = await gateway.ask("GET", "/v1/agents/summaries")
        assert everywhere[1]["items"] == [], "nobody is at work"
        for query, field in (("status=lazy", "status"), ("has_runtime=so", "has_runtime")):
            status, problem = await gateway.ask("GET", f"/v1/agents/summaries?{query}")
            assert (status, problem["field"]) == (422, field)
        status, _ = await gateway.ask("GET", "/v1/agents/summaries?session_id=ses_nobody")
        assert status == 404
