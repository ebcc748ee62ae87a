"""Subagents that programs start by the API, and the dry run (AGT-3)."""

import asyncio
from collections.abc import Mapping

import pytest

from tests.fakes.model import Gate, Said
from tests.scenario.harness import READER, Site
from tests.scenario.http.conftest import Sites


def request(**asked: object) -> dict[str, object]:
    """A request for the agent `one`, with what is asked besides."""
    task = {"name": "one", "description": "Looks.", "prompt": "Look."}
    return {"subtask": {**task, **asked.pop("subtask", {})}, **asked}


INLINE = {"type": "inline_asset", "name": "a.txt", "data": "YQ=="}
"""A file in base64."""


async def ran(gateway: Site) -> str:
    """A conversation whose agent ran once."""
    root = await gateway.session()
    await gateway.state(await gateway.says(root, "hi"), "completed")
    return root


async def spawned(
    gateway: Site, root: str, asked: Mapping[str, object], *, dry: bool = False
) -> tuple[int, dict[str, object]]:
    path = f"/v1/agents/{root}/sidechains"
    return await gateway.ask("POST", f"{path}/explain" if dry else path, dict(asked))


async def agents_of(gateway: Site, root: str) -> list[dict[str, object]]:
    _, found = await gateway.ask("GET", f"/v1/agents/summaries?root={root}")
    return list(found["items"])


@pytest.mark.requirement("AGT-3")
async def test_it_works_in_the_background_and_hands_its_result_to_its_parent(sites: Sites) -> None:
    async with asyncio.timeout(300), sites("Hello.", "I looked.", "It looked.") as gateway:
        root = await ran(gateway)
        status, made = await spawned(gateway, root, request(nickname="north"))
        assert status == 201, made
        assert (made["agent_id"], made["nickname"], made["type"]) == ("one", "north", "default")
        assert (made["parent_agent_id"], made["root_agent_id"]) == (root, root)
        assert (made["prompt_summary"], made["retention"]) == ("Look.", "retain")
        assert "exec" in made["tool_surface"]
        async with gateway.feed(f"session_id={root}&kinds=agent.settled&last_event_id=0") as feed:
            await feed.next()
        async with gateway.feed(f"session_id={root}&kinds=run.completed&last_event_id=0") as feed:
            for _ in range(2):
                await feed.next()
        _, top = await gateway.ask("GET", f"/v1/agents/{root}")
        assert top["last_assistant_message"] == "It looked."


@pytest.mark.requirement("AGT-3", "SUB-6")
@pytest.mark.parametrize("header", [True, False])
async def test_the_same_request_starts_one_agent_and_another_is_a_conflict(
    sites: Sites, header: bool
) -> None:
    work = Gate()
    async with asyncio.timeout(300), sites("Hello.", Said("x", before=work)) as gateway:
        root = await ran(gateway)
        path = f"/v1/agents/{root}/sidechains"
        headers = {"Idempotency-Key": "k"} if header else {}
        asked = request() if header else request(spawn_request_id="k")
        first = await gateway.ask("POST", path, asked, headers=headers)
        again = await gateway.ask("POST", path, asked, headers=headers)
        assert (first[0], again[0]) == (201, 200)
        assert first[1]["id"] == again[1]["id"]
        other = {**asked, "nickname": "other"}
        status, problem = await gateway.ask("POST", path, other, headers=headers)
        assert (status, "another request" in str(problem["detail"])) == (409, True)
        assert len(await agents_of(gateway, root)) == 1
        work.open.set()


@pytest.mark.requirement("AGT-3", "API-1")
async def test_a_dry_run_says_what_would_be_and_makes_nothing(sites: Sites) -> None:
    async with asyncio.timeout(300), sites("Hello.") as gateway:
        root = await ran(gateway)
        asked = request(
            permission_mode="plan",
            retention="close_on_settle",
            tool_surface={"allowlist": ["read_file", "grep", "exec"], "denylist": ["exec"]},
            capability_scope={
                "paths": ["notes"],
                "network": ["example.org"],
                "budget": {"tokens": 500, "steps": 3},
            },
            fork_context={
                "parent_assistant_message": "I saw ice.",
                "system_prompt": "Be brief.",
                "isolation": "selective",
            },
        )
        status, plan = await spawned(gateway, root, asked, dry=True)
        assert status == 200, plan
        assert (plan["name"], plan["type"], plan["depth"]) == ("one", "default", 1)
        assert plan["tools"] == ["grep", "read_file"]
        assert plan["permission_mode"] == "plan"
        assert (plan["retention"], plan["isolation"]) == ("close_on_settle", "selective")
        assert [paths[0].endswith("/files/notes") for paths in plan["paths"]] == [True]
        assert plan["network"] == [["example.org"]]
        assert (plan["tokens"], plan["steps"]) == (500, 3)
        assert plan["prompt"] == "Be brief."
        assert plan["task"].startswith("Look.\n\nWhat the agent that you work for said last:\n<")
        assert "I saw ice." in plan["task"]
        assert await agents_of(gateway, root) == []
        _, sessions = await gateway.ask("GET", "/v1/sessions")
        assert len(sessions["items"]) == 1
        _, runs = await gateway.ask("GET", "/v1/runs")
        assert len(runs["items"]) == 1
        path = f"/v1/agents/{root}/sidechains/explain"
        assert (await gateway.ask("POST", path, request(), token=READER))[0] == 403


@pytest.mark.requirement("AGT-3", "SUB-1")
@pytest.mark.parametrize(
    ("profile", "has", "lacks"),
    [
        ("default", {"write_file", "exec", "sessions_spawn"}, set()),
        ("planning", {"read_file", "exec"}, {"write_file"}),
        ("coordination", {"sessions_spawn", "send_message"}, {"write_file", "exec"}),
        ("verification", {"exec"}, {"write_file"}),
        ("explore", {"read_file"}, {"write_file"}),
    ],
)
async def test_every_profile_can_be_started(
    sites: Sites, profile: str, has: set[str], lacks: set[str]
) -> None:
    async with asyncio.timeout(300), sites("Hello.") as gateway:
        root = await ran(gateway)
        asked = request(subtask={"profile": profile})
        status, plan = await spawned(gateway, root, asked, dry=True)
        assert (status, plan["type"]) == (200, profile), plan
        assert has <= set(plan["tools"])
        assert not lacks & set(plan["tools"])


@pytest.mark.requirement("AGT-3", "POL-5", "SUB-18")
@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"permission_mode": "bypassPermissions"}, "permission_mode: wider on the axis mode"),
        (
            {"capability_scope": {"paths": ["/etc"]}},
            "capability_scope.paths: wider on the axis paths",
        ),
        (
            {"capability_scope": {"network": ["*.example.org"]}},
            "capability_scope.network: wider on the axis network",
        ),
        (
            {"capability_scope": {"budget": {"tokens": 1_000_000}}},
            "capability_scope.budget: wider on the axis spend",
        ),
        (
            {"credential_scope": {"names": ["gitlab"]}},
            "credential_scope.names: wider on the axis secrets",
        ),
        (
            {"fork_context": {"worktree_path": "south"}},
            "fork_context.worktree_path: wider on the axis paths",
        ),
        (
            {"fork_context": {"worktree_path": "/etc"}},
            "fork_context.worktree_path: wider on the axis paths",
        ),
        (
            {"tool_surface": {"allowlist": ["write_file"]}},
            "tool_surface.allowlist: wider on the axis tools",
        ),
        (
            {"fork_context": {"tool_surface": {"allowlist": ["write_file"]}}},
            "tool_surface.allowlist: wider on the axis tools",
        ),
    ],
)
@pytest.mark.parametrize("dry", [True, False])
async def test_more_than_the_parent_has_is_refused_with_the_axis(
    sites: Sites, asked: dict[str, object], said: str, dry: bool
) -> None:
    """The parent is itself such an agent, whose every axis is bounded."""
    work = Gate()
    async with asyncio.timeout(300), sites("Hello.", Said("x", before=work)) as gateway:
        root = await ran(gateway)
        narrow = request(
            permission_mode="default",
            tool_surface={"allowlist": ["read_file", "sessions_spawn"]},
            capability_scope={
                "paths": ["notes"],
                "network": ["example.org"],
                "budget": {"tokens": 5_000},
            },
            credential_scope={"names": ["github"]},
        )
        status, parent = await spawned(gateway, root, narrow)
        assert status == 201, parent
        await work.reached.wait()
        child = request(subtask={"name": "two"}, **asked)
        status, problem = await spawned(gateway, str(parent["id"]), child, dry=dry)
        assert (status, problem["code"]) == (403, "forbidden"), problem
        assert said in str(problem["detail"])
        assert len(await agents_of(gateway, root)) == 1
        work.open.set()


@pytest.mark.requirement("AGT-3")
@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"route_policy": {"provider": "test"}}, "route_policy.provider: there is no model"),
        ({"route_policy": {"provider": "test", "model": "other:m"}}, "a model of other"),
        ({"route_policy": {"provider": "test", "generation": {"top_p": 1}}}, "no model"),
        (
            {"fork_context": {"isolation": "worktree", "worktree_path": "notes"}},
            "fork_context: a new worktree and worktree_path",
        ),
        (
            {
                "tool_surface": {"denylist": ["exec"]},
                "fork_context": {"tool_surface": {"denylist": ["grep"]}},
            },
            "are different",
        ),
    ],
)
@pytest.mark.parametrize("dry", [True, False])
async def test_what_contradicts_itself_is_a_bad_request(
    sites: Sites, asked: dict[str, object], said: str, dry: bool
) -> None:
    async with asyncio.timeout(300), sites("Hello.") as gateway:
        root = await ran(gateway)
        status, problem = await spawned(gateway, root, request(**asked), dry=dry)
        assert (status, problem["code"]) == (400, "bad_request")
        assert said in str(problem["detail"])


@pytest.mark.requirement("AGT-3", "API-3", "SUB-5")
@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"thread_id": "T1"}, "thread_id"),
        ({"session_id": "ses_other"}, "session_id"),
        ({"credential_scope": {"github": True}}, "credential_scope.github"),
        ({"credential_scope": {"names": [""]}}, "credential_scope.names.0"),
        ({"route_policy": {"generation": {"top_p": 2}}}, "route_policy.generation.top_p"),
        ({"route_policy": {"model": "none:such"}}, "route_policy.model"),
        ({"fork_context": {"worktree_path": "nowhere"}}, "fork_context.worktree_path"),
        (
            {"fork_context": {"parent_assistant_message": "x" * 99_990}},
            "fork_context.parent_assistant_message",
        ),
        ({"fork_context": {"isolation": "worktree"}}, "fork_context.isolation"),
        ({"fork_context": {"isolation": "none"}}, "fork_context.isolation"),
        (
            {"fork_context": {"inherited_tool_call_ids": ["c1"]}},
            "fork_context.inherited_tool_call_ids",
        ),
        ({"fork_context": {"prompt_merge_mode": "mix"}}, "fork_context.prompt_merge_mode"),
        ({"subtask": {"asset_ids": ["a"]}}, "subtask.asset_ids.0"),
        ({"subtask": {"attachments": ["a"]}}, "subtask.attachments.0"),
        ({"subtask": {"attachments": [INLINE]}}, "subtask"),
        (
            {"subtask": {"prompt": None, "content": "x", "attachments": [{**INLINE, "data": "?"}]}},
            "subtask.attachments.0.data",
        ),
        ({"subtask": {"prompt": None, "content": "x", "asset_ids": ["a"]}}, "subtask"),
        ({"subtask": {"content": "also"}}, "subtask"),
        ({"subtask": {"prompt": " "}}, "subtask"),
        ({"subtask": {"name": "two words"}}, "subtask.name"),
        ({"subtask": {"name": "root"}}, "subtask.name"),
        ({"subtask": {"profile": "explorer"}}, "subtask.profile"),
        ({"capability_scope": {"paths": ["a/*"]}}, "capability_scope.paths"),
        ({"retention": "for ever"}, "retention"),
        ({"generation": {}}, "generation"),
    ],
)
async def test_what_cannot_be_honoured_is_refused_by_its_name(
    sites: Sites, asked: dict[str, object], field: str
) -> None:
    async with asyncio.timeout(300), sites("Hello.") as gateway:
        root = await ran(gateway)
        for dry in (True, False):
            status, problem = await spawned(gateway, root, request(**asked), dry=dry)
            assert (status, problem.get("field")) == (422, field), problem
        assert await agents_of(gateway, root) == []


@pytest.mark.requirement("AGT-3", "API-3", "SUB-5")
async def test_a_parent_that_is_not_there_has_ended_or_never_ran_starts_nobody(
    sites: Sites,
) -> None:
    async with asyncio.timeout(300), sites("Hello.", "I looked.", "It looked.") as gateway:
        assert (await spawned(gateway, "ses_none", request()))[0] == 404
        fresh = await gateway.session()
        status, problem = await spawned(gateway, fresh, request())
        assert (status, "never run" in str(problem["detail"])) == (409, True)
        root = await ran(gateway)
        _, made = await spawned(gateway, root, request())
        async with gateway.feed(f"session_id={root}&kinds=run.completed&last_event_id=0") as feed:
            for _ in range(2):
                await feed.next()
        status, problem = await spawned(gateway, str(made["id"]), request(subtask={"name": "b"}))
        assert (status, "has ended" in str(problem["detail"])) == (409, True)
        taken = request(subtask={"profile": "ghost"})
        status, problem = await spawned(gateway, root, taken)
        fields = [error["field"] for error in problem["errors"]]
        assert (status, sorted(fields)) == (422, ["subtask.name", "subtask.profile"])
        assert (await gateway.ask("POST", f"/v1/sessions/{root}/end"))[0] == 200
        assert (await spawned(gateway, root, request(subtask={"name": "c"})))[0] == 409


@pytest.mark.requirement("AGT-3")
@pytest.mark.parametrize(
    ("task", "text"),
    [
        ({"content": "Look."}, "Look."),
        ({"prompt": "Look."}, "Look."),
        (
            {"input_items": [{"type": "text", "text": "Look."}, {"type": "text", "text": "Say."}]},
            "Look.\n\nSay.",
        ),
    ],
)
async def test_a_task_is_said_in_one_of_three_ways(
    sites: Sites, task: dict[str, object], text: str
) -> None:
    async with asyncio.timeout(300), sites("Hello.") as gateway:
        root = await ran(gateway)
        asked = {"subtask": {"name": "one", "description": "Looks.", **task}}
        status, plan = await spawned(gateway, root, asked, dry=True)
        assert (status, plan["task"]) == (200, text), plan
