"""How the model of a session writes: set for it, inherited, and sent to the provider (RUN-1)."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio
from pydantic import SecretStr

from adapters.models.model_registry import Catalog
from adapters.models.settings import ModelSettings
from runtime.features.subagents.settings import ChildModels, ChildSettings
from tests.fakes.model import DEFAULT_NAME, ScriptedModel, ScriptedModels
from tests.scenario.harness import Plan, Site
from tests.scenario.http.conftest import Sites
from tests.wire.openai import ModelServer

TASK = {"name": "one", "description": "Looks.", "prompt": "Look."}
CHOSEN = "openai:gpt-4.1"
WRITES = {"temperature": 0.25, "top_p": 0.5, "max_output_tokens": 300}


@pytest_asyncio.fixture
async def provider() -> AsyncIterator[ModelServer]:
    """A provider's server that takes down what it is asked."""
    async with ModelServer().running() as server:
        yield server


def asking(server: ModelServer) -> Callable[[Plan], None]:
    """A plan whose models are those of that server."""

    def change(plan: Plan) -> None:
        key = SecretStr("sk-test-0123456789")
        offered = (CHOSEN, "openai:gpt-4.1-mini", "openai:gpt-6-luna")
        plan.models = Catalog(
            ModelSettings(
                openai_api_key=key, openai_base_url=server.url, default=CHOSEN, offered=offered
            )
        )
        models = ChildModels(offered=frozenset(offered))
        plan.services["children"] = ChildSettings(models=models)

    return change


def of_children(server: ModelServer) -> list[dict[str, object]]:
    return [one.body for one in server.prompts if "You are the subagent" in one.text]


async def ran(gateway: Site, **asked: object) -> str:
    root = await gateway.session(**asked)
    await gateway.state(await gateway.says(root, "hi"), "completed")
    return root


async def settled(gateway: Site, root: str, count: int = 1) -> None:
    async with gateway.feed(f"session_id={root}&kinds=agent.settled&last_event_id=0") as feed:
        for _ in range(count):
            await feed.next()


@pytest.mark.requirement("AGT-3", "RUN-1")
async def test_what_a_session_and_its_subagents_are_to_write_like_reaches_the_provider(
    sites: Sites, provider: ModelServer
) -> None:
    async with asyncio.timeout(300), sites(change=asking(provider)) as gateway:
        root = await gateway.session()
        path = f"/v1/sessions/{root}/route-policy"
        status, seen = await gateway.ask("PUT", path, {"generation": WRITES})
        assert (status, seen["model"]) == (200, None), seen
        assert seen["generation"] == {**WRITES, "reasoning_effort": None}
        await gateway.state(await gateway.says(root, "hi"), "completed")
        first = provider.prompts[0].body
        assert (first["temperature"], first["top_p"]) == (0.25, 0.5)
        assert first["max_completion_tokens"] == 300
        route = {"provider": "openai", "model": "gpt-6-luna"}
        route["generation"] = {"reasoning_effort": "high"}
        asked = {"route_policy": route, "subtask": TASK}
        _, plan = await gateway.ask("POST", f"/v1/agents/{root}/sidechains/explain", asked)
        assert plan["model"] == "openai:gpt-6-luna"
        assert plan["generation"]["reasoning_effort"] == "high"
        status, made = await gateway.ask("POST", f"/v1/agents/{root}/sidechains", asked)
        assert status == 201, made
        await settled(gateway, root)
        (child,) = of_children(provider)
        assert (child["model"], child["reasoning_effort"]) == ("gpt-6-luna", "high")
        assert {"temperature", "top_p"} & child.keys() == set()
        assert child["max_completion_tokens"] == 8192
        assert (await gateway.ask("DELETE", path))[1]["generation"] is None
        await gateway.state(await gateway.says(root, "again"), "completed")
        last = provider.about("again")[0].body
        assert {"temperature", "top_p", "reasoning_effort"} & last.keys() == set()
        assert last["max_completion_tokens"] == 8192


@pytest.mark.requirement("AGT-3", "SUB-18")
@pytest.mark.parametrize("other", [False, True])
async def test_a_subagent_writes_as_its_parent_does_unless_its_model_is_another(
    sites: Sites, provider: ModelServer, other: bool
) -> None:
    async with asyncio.timeout(300), sites(change=asking(provider)) as gateway:
        root = await gateway.session()
        path = f"/v1/sessions/{root}/route-policy"
        policy = {"provider": "openai", "model": "gpt-4.1", "generation": {"temperature": 0.25}}
        assert (await gateway.ask("PUT", path, policy))[0] == 200
        await gateway.state(await gateway.says(root, "hi"), "completed")
        # One that would take it as well.
        route = {"route_policy": {"model": "openai:gpt-4.1-mini"}} if other else {}
        await gateway.ask("POST", f"/v1/agents/{root}/sidechains", {"subtask": TASK, **route})
        await settled(gateway, root)
        (child,) = of_children(provider)
        assert child.get("temperature") == (None if other else 0.25)


@pytest.mark.requirement("AGT-3", "RUN-1", "API-3")
@pytest.mark.parametrize(
    ("generation", "field"),
    [
        ({"reasoning_effort": "low"}, "generation.reasoning_effort"),
        ({"temperature": 3}, "generation.temperature"),
        ({"top_p": 0}, "generation.top_p"),
        ({"max_output_tokens": 8193}, "generation.max_output_tokens"),
        ({"max_output_tokens": 0}, "generation.max_output_tokens"),
        ({"reasoning_effort": "much"}, "generation.reasoning_effort"),
        ({"top_k": 3}, "generation.top_k"),
    ],
)
async def test_what_the_model_cannot_take_is_refused_by_its_name(
    sites: Sites, provider: ModelServer, generation: dict[str, object], field: str
) -> None:
    async with asyncio.timeout(300), sites(change=asking(provider)) as gateway:
        root = await ran(gateway)
        policy = {"model": CHOSEN, "generation": generation}
        path = f"/v1/sessions/{root}/route-policy"
        status, problem = await gateway.ask("PUT", path, policy)
        assert (status, problem["field"]) == (422, field), problem
        asked = {"route_policy": policy, "subtask": TASK}
        for path in ("sidechains", "sidechains/explain"):
            status, problem = await gateway.ask("POST", f"/v1/agents/{root}/{path}", asked)
            assert (status, problem["field"]) == (422, f"route_policy.{field}"), problem
        # The default model is judged as well as one that is named.
        asked = {"route_policy": {"generation": generation}, "subtask": TASK}
        status, problem = await gateway.ask("POST", f"/v1/agents/{root}/sidechains", asked)
        assert (status, problem["field"]) == (422, f"route_policy.{field}"), problem
        _, seen = await gateway.ask("GET", f"/v1/sessions/{root}")
        assert seen["generation"] is None


@pytest.mark.requirement("RUN-1")
@pytest.mark.parametrize(
    ("policy", "status"),
    [
        ({"provider": "scripted"}, 400),
        ({"provider": "scripted", "generation": {"temperature": 1}}, 400),
        ({"provider": "openai", "model": "scripted:model"}, 400),
        ({}, 422),
        ({"generation": None}, 422),
        ({"model": "nobody:x"}, 422),
    ],
)
async def test_a_policy_that_says_nothing_or_two_things_is_refused(
    sites: Sites, policy: dict[str, object], status: int
) -> None:
    async with sites() as gateway:
        session = await gateway.session()
        path = f"/v1/sessions/{session}/route-policy"
        answered, problem = await gateway.ask("PUT", path, policy)
        assert answered == status
        if status == 400:
            assert str(problem["detail"]).startswith("provider: ")


@pytest.mark.requirement("RUN-1", "AGT-3")
async def test_what_another_model_cannot_take_is_left_out_when_that_one_answers(
    sites: Sites,
) -> None:
    """What was set for a model that is gone, or fails, is no reason to be silent."""
    first = ScriptedModel(["One."], name=DEFAULT_NAME, refused=["temperature"])
    second = ScriptedModel(["Two."], name="scripted:other")

    def change(plan: Plan) -> None:
        plan.models = ScriptedModels(first, second)

    async with asyncio.timeout(300), sites(change=change) as gateway:
        root = await gateway.session()
        path = f"/v1/sessions/{root}/route-policy"
        policy = {"model": "scripted:other", "generation": {"temperature": 1, "top_p": 0.5}}
        assert (await gateway.ask("PUT", path, policy))[0] == 200
        await gateway.state(await gateway.says(root, "hi"), "completed")
        await gateway.says(root, "/model default")
        await gateway.state(await gateway.says(root, "again"), "completed")
    assert second.requests[0].generation.given == ("temperature", "top_p")
    assert first.requests[0].generation.given == ("top_p",)


@pytest.mark.requirement("AGT-3")
async def test_where_no_model_is_named_the_parents_is_judged(
    sites: Sites, provider: ModelServer
) -> None:
    async with asyncio.timeout(300), sites(change=asking(provider)) as gateway:
        root = await ran(gateway)
        policy = {"model": "openai:gpt-6-luna"}
        path = f"/v1/sessions/{root}/route-policy"
        assert (await gateway.ask("PUT", path, policy))[0] == 200
        asked = {"subtask": TASK, "route_policy": {"generation": {"temperature": 0.5}}}
        path = f"/v1/agents/{root}/sidechains/explain"
        status, problem = await gateway.ask("POST", path, asked)
        assert (status, problem["field"]) == (422, "route_policy.generation.temperature"), problem
        asked["route_policy"] = {"generation": {"reasoning_effort": "low"}}
        assert (await gateway.ask("POST", path, asked))[0] == 200


@pytest.mark.requirement("RUN-1")
async def test_a_policy_replaces_the_whole_one_before(sites: Sites) -> None:
    async with sites() as gateway:
        path = f"/v1/sessions/{await gateway.session()}/route-policy"
        await gateway.ask("PUT", path, {"model": DEFAULT_NAME, "generation": {"top_p": 0.5}})
        _, seen = await gateway.ask("PUT", path, {"model": DEFAULT_NAME})
        assert (seen["model"], seen["generation"]) == (DEFAULT_NAME, None)
        _, seen = await gateway.ask("PUT", path, {"generation": {"top_p": 0.5}})
        assert (seen["model"], seen["generation"]["top_p"]) == (None, 0.5)
