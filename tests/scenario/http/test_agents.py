"""The trees of subagents by the API, in the shape of AGT-2."""

import asyncio
import json

import pytest

from tests.fakes.clock import START_MS, FakeClock
from tests.fakes.model import Gate, Said
from tests.scenario.harness import Plan
from tests.scenario.http.conftest import ASKS, WONDERS, Sites
from tests.scenario.http.test_queue_modes import switched

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
    async with asyncio.timeout(180), sites(*SCRIPT) as gateway:
        root = await gateway.session()
        status, empty = await gateway.ask("GET", f"/v1/agents/summaries?session_id={root}")
        assert (status, empty["items"], set(empty["counts"].values())) == (200, [], {0})
        run = await gateway.says(root, "look")
        await gateway.state(run, "completed")

        _, found = await gateway.ask("GET", f"/v1/agents/summaries?root={root}")
        one, two = found["items"]
        assert [one["agent_id"], two["agent_id"]] == ["one", "two"]
        assert one["parent_session_id"] == one["root_session_id"] == root
        _, snapshot = await gateway.ask("GET", f"/v1/agents/{one['session_id']}")
        assert one["parent_agent_id"] == snapshot["parent_agent_id"] == root
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
    async with asyncio.timeout(180), sites(*SCRIPT) as gateway:
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
        _, by_root = await gateway.ask("GET", f"/v1/agents/summaries?root_agent_id={root}")
        assert [one["agent_id"] for one in by_root["items"]] == ["one", "two"]
        status, problem = await gateway.ask("GET", f"{path}&root={root}")
        assert status == 422
        assert "give one of session_id, root and root_agent_id" in str(problem["detail"])
        for query, field in (("status=lazy", "status"), ("has_runtime=so", "has_runtime")):
            status, problem = await gateway.ask("GET", f"/v1/agents/summaries?{query}")
            assert (status, problem["field"]) == (422, field)
        status, _ = await gateway.ask("GET", "/v1/agents/summaries?session_id=ses_nobody")
        assert status == 404


@pytest.mark.requirement("AGT-1", "MSG-3")
async def test_every_session_has_one_agent_and_its_snapshot_says_all_of_it(sites: Sites) -> None:
    async with asyncio.timeout(180), sites(*SCRIPT) as gateway:
        root = await gateway.session()
        _, before = await gateway.ask("GET", f"/v1/agents/{root}")
        assert (before["status"], before["last_assistant_message"]) == ("idle", None)
        run = await gateway.says(root, "look")
        await gateway.state(run, "completed")

        _, sessions = await gateway.ask("GET", "/v1/sessions")
        _, found = await gateway.ask("GET", "/v1/agents")
        assert found["pagination"] == {"total_count": 3}
        ids = [one["id"] for one in found["items"]]
        assert sorted(ids) == sorted(one["id"] for one in sessions["items"])
        assert [one["session_id"] for one in found["items"]] == ids
        # Within a millisecond ids have no order.
        by_name = {item["agent_id"]: item for item in found["items"]}
        top, one = by_name["root"], by_name["one"]
        assert (await gateway.ask("GET", f"/v1/agents/{one['id']}"))[1] == one
        assert (top["id"], top["agent_id"], top["path"]) == (root, "root", "root")
        assert (top["parent_agent_id"], top["root_agent_id"]) == (None, root)
        assert (top["spawned_by_run_id"], top["settled_at_ms"]) == (None, None)
        assert top["last_assistant_message"] == "Both looked."
        assert {"sessions_spawn", "exec"} <= set(top["tool_surface"])
        assert "exec" in one["tool_surface"]
        assert "write_file" not in one["tool_surface"]
        assert (one["agent_id"], one["path"], one["type"]) == ("one", "root > one", "explore")
        assert one["parent_agent_id"] == one["root_agent_id"] == root
        assert (one["status"], one["dashboard_status"]) == ("completed", "done")
        assert one["prompt_summary"] == "Look."
        assert (one["spawned_by_run_id"], one["spawn_request_id"]) == (run, None)
        assert (one["retention"], one["nickname"]) == ("retain", "")
        assert one["conversation"]["key"].startswith("subagent:")
        assert one["created_at_ms"] <= one["settled_at_ms"]
        assert one["last_assistant_message"] == "found " * 100
        pending = [key for key in one if key.startswith("pending_")]
        assert len(pending) == 3
        assert not any(one[key] for key in pending)


@pytest.mark.requirement("AGT-1")
async def test_the_agent_of_a_conversation_waits_works_and_ends(sites: Sites) -> None:
    clock, work = FakeClock(), Gate()

    def timed(plan: Plan) -> None:
        plan.clock = clock

    async with (
        asyncio.timeout(180),
        sites(Said("One.", before=work), "Two.", change=timed) as gateway,
    ):
        root = await switched(gateway, "collect")

        async def now() -> dict[str, object]:
            return (await gateway.ask("GET", f"/v1/agents/{root}"))[1]

        first = await gateway.says(root, "one")
        await work.reached.wait()
        # What is said meanwhile is collected for a moment before its run begins.
        run = await gateway.says(root, "two")
        work.open.set()
        await gateway.state(first, "completed")
        waits = await now()
        assert (waits["standing"], waits["dashboard_status"]) == ("queued", "queued_global")
        assert (waits["created_at_ms"], waits["last_activity_at_ms"]) == (START_MS, START_MS)
        await clock.advance(5)
        await gateway.state(run, "completed")
        worked = await now()
        assert (worked["standing"], worked["created_at_ms"]) == ("idle", START_MS)
        assert START_MS < worked["last_activity_at_ms"] <= START_MS + 5_000
        await gateway.ask("POST", f"/v1/sessions/{root}/end")
        ended = await now()
        assert (ended["status"], ended["dashboard_status"]) == ("completed", "done")
        assert ended["created_at_ms"] == START_MS


@pytest.mark.requirement("AGT-1")
async def test_agents_are_listed_by_pages_and_by_tree(sites: Sites) -> None:
    async with asyncio.timeout(180), sites(*SCRIPT) as gateway:
        root = await gateway.session()
        await gateway.state(await gateway.says(root, "look"), "completed")
        _, whole = await gateway.ask("GET", "/v1/agents")
        ids = [one["id"] for one in whole["items"]]
        other = await gateway.session()
        by_tree = f"/v1/agents?session_id={ids[-1]}"
        assert [one["id"] for one in (await gateway.ask("GET", by_tree))[1]["items"]] == ids
        _, first = await gateway.ask("GET", f"{by_tree}&limit=2")
        cursor = first["pagination"]["next_cursor"]
        _, rest = await gateway.ask("GET", f"{by_tree}&limit=2&cursor={cursor}")
        assert [one["id"] for one in (*first["items"], *rest["items"])] == ids
        assert first["pagination"]["total_count"] == 3
        _, whole = await gateway.ask("GET", "/v1/agents")
        assert [one["id"] for one in whole["items"]] == [*ids, other]


@pytest.mark.requirement("AGT-1", "API-3")
@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("ses_nobody", 404),
        ("no-id!", 404),
        ("?session_id=ses_nobody", 404),
        ("?session_id=no-id!", 422),
        ("?limit=201", 422),
        ("?cursor=none", 422),
    ],
)
async def test_an_agent_that_there_is_not_is_said_to_be_none(
    sites: Sites, path: str, status: int
) -> None:
    async with asyncio.timeout(180), sites() as gateway:
        whole = f"/v1/agents{path}" if path.startswith("?") else f"/v1/agents/{path}"
        assert (await gateway.ask("GET", whole))[0] == status
        await gateway.session()
        assert (await gateway.ask("GET", whole))[0] == status


@pytest.mark.requirement("AGT-1", "AGT-2")
async def test_what_an_agent_waits_for_is_in_its_snapshot(sites: Sites) -> None:
    async with asyncio.timeout(180), sites(ASKS, WONDERS) as gateway:
        for state, status, field in (
            ("waiting_for_approval", "waiting_for_approval", "pending_approvals"),
            ("waiting_for_user_question", "waiting_for_user_input", "pending_questions"),
        ):
            root = await gateway.session()
            run = await gateway.says(root, "go")
            await gateway.state(run, state)
            _, found = await gateway.ask("GET", f"/v1/agents/{root}")
            assert (found["status"], found["dashboard_status"]) == (status, "waiting")
            assert found["active_run_id"] == run
            path = field.removeprefix("pending_")
            _, open_ones = await gateway.ask("GET", f"/v1/{path}?session_id={root}")
            assert found[field] == [one["request_id"] for one in open_ones["items"]]


@pytest.mark.requirement("AGT-1", "API-4")
async def test_the_events_of_agents_are_streamed(sites: Sites) -> None:
    async with asyncio.timeout(180), sites(*SCRIPT) as gateway:
        root = await gateway.session()
        await gateway.state(await gateway.says(root, "look"), "completed")
        async with gateway.feed(f"session_id={root}&kinds=agent&last_event_id=0") as feed:
            await feed.until("agent.settled")
            await feed.until("agent.settled")
        kinds = [one.kind for one in feed.seen if one.kind.startswith("agent")]
        assert sorted(kinds) == ["agent.settled"] * 2 + ["agent.spawned"] * 2
        assert {one.kind for one in feed.seen} <= {"agent.spawned", "agent.settled", "ready"}
