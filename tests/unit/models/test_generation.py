"""How a model is asked to write: what each provider is sent, and what it cannot take (AGT-3)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import pytest
from aiohttp import web
from pydantic import SecretStr

from adapters.models.model_registry import Catalog
from adapters.models.offline import OfflineModel
from adapters.models.settings import ModelSettings
from runtime.domain.errors import ModelRejected
from runtime.domain.routes import AS_IT_IS, Generation
from tests.unit.models.samples import collect, request

KEY = SecretStr("sk-test-0123456789")


@dataclass(slots=True)
class Refusing:
    """A server that takes every request down as it came, and refuses its key."""

    url: str = ""
    bodies: list[dict[str, object]] = field(default_factory=list)

    async def take(self, asked: web.Request) -> web.Response:
        self.bodies.append(await asked.json())
        return web.json_response({"error": {"message": "no", "type": "test"}}, status=401)


@asynccontextmanager
async def refusing() -> AsyncIterator[Refusing]:
    server, app = Refusing(), web.Application()
    app.router.add_route("*", "/{path:.*}", server.take)
    runner = web.AppRunner(app, shutdown_timeout=1.0, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    server.url = f"http://{host}:{port}"
    try:
        yield server
    finally:
        await runner.cleanup()


def settings(url: str = "http://127.0.0.1:9") -> ModelSettings:
    return ModelSettings(
        openai_api_key=KEY,
        openai_base_url=f"{url}/v1",
        anthropic_api_key=KEY,
        anthropic_base_url=url,
        gemini_api_key=KEY,
        gemini_base_url=url,
        ollama_url=url,
        ollama_model="small",
    )


async def sent(name: str, generation: Generation) -> dict[str, object]:
    """The body that a provider is sent."""
    async with refusing() as server:
        catalog = Catalog(settings(server.url))
        try:
            asked = replace(request("hello"), generation=generation)
            with pytest.raises(ModelRejected):
                await collect(catalog.get(name), asked)
        finally:
            await catalog.close()
    (body,) = server.bodies
    return body


def picked(body: dict[str, object], path: str) -> object:
    found: object = body
    for step in path.split("."):
        found = found.get(step) if isinstance(found, dict) else None
    return found


SAMPLING = {"temperature": 0.25, "top_p": 0.5}


@pytest.mark.requirement("AGT-3", "RUN-1")
@pytest.mark.parametrize(
    ("name", "asked", "wire"),
    [
        ("openai:gpt-4.1", SAMPLING, SAMPLING),
        ("openai:gpt-5.1", SAMPLING, SAMPLING),
        ("openai:gpt-6-luna", {"reasoning_effort": "high"}, {"reasoning_effort": "high"}),
        (
            "compatible:m",
            {**SAMPLING, "reasoning_effort": "low"},
            {**SAMPLING, "reasoning_effort": "low"},
        ),
        (
            "ollama:small",
            {**SAMPLING, "reasoning_effort": "low"},
            {**SAMPLING, "reasoning_effort": "low"},
        ),
        ("anthropic:claude-haiku-4-5", {"temperature": 0.25}, {"temperature": 0.25}),
        ("anthropic:claude-haiku-4-5", {"top_p": 0.5}, {"top_p": 0.5}),
        (
            "anthropic:claude-sonnet-5-5",
            {"reasoning_effort": "low"},
            {"output_config.effort": "low"},
        ),
        (
            "google:gemini-2.5-flash",
            {**SAMPLING, "reasoning_effort": "low"},
            {
                "generationConfig.temperature": 0.25,
                "generationConfig.topP": 0.5,
                "generationConfig.thinkingConfig.thinking_budget": 2048,
            },
        ),
        (
            "google:gemini-3.8-flash",
            {"reasoning_effort": "high"},
            {"generationConfig.thinkingConfig.thinking_level": "HIGH"},
        ),
    ],
)
async def test_every_provider_is_told_in_its_own_words(
    name: str, asked: dict[str, object], wire: dict[str, object]
) -> None:
    generation = Generation.model_validate(asked)
    catalog = Catalog(settings())
    assert await catalog.get(name).unfit(generation) == {}
    await catalog.close()
    body, plain = await sent(name, generation), await sent(name, AS_IT_IS)
    assert {path: picked(body, path) for path in wire} == wire
    assert {path: picked(plain, path) for path in wire} == dict.fromkeys(wire)


@pytest.mark.requirement("AGT-3", "RUN-1")
@pytest.mark.parametrize(
    ("name", "asked", "refused"),
    [
        ("openai:gpt-4.1", {"reasoning_effort": "low"}, {"reasoning_effort"}),
        ("openai:gpt-6-luna", SAMPLING, {"temperature", "top_p"}),
        ("openai:o3", SAMPLING, {"temperature", "top_p"}),
        ("openai:o3", {"reasoning_effort": "minimal"}, {"reasoning_effort"}),
        ("openai:gpt-5.6-luna", {"reasoning_effort": "minimal"}, {"reasoning_effort"}),
        ("openai:gpt-5.1", {**SAMPLING, "reasoning_effort": "low"}, {"temperature", "top_p"}),
        ("compatible:m", {**SAMPLING, "reasoning_effort": "minimal"}, set()),
        ("anthropic:claude-haiku-4-5", {"temperature": 1.5}, {"temperature"}),
        ("anthropic:claude-haiku-4-5", SAMPLING, {"top_p"}),
        ("anthropic:claude-haiku-4-5", {"reasoning_effort": "low"}, {"reasoning_effort"}),
        ("anthropic:claude-sonnet-5-5", SAMPLING, {"temperature", "top_p"}),
        ("anthropic:claude-sonnet-5-5", {"reasoning_effort": "minimal"}, {"reasoning_effort"}),
        ("google:gemini-2.0-flash", {"reasoning_effort": "low"}, {"reasoning_effort"}),
        ("google:gemini-3.8-flash", {"reasoning_effort": "minimal"}, {"reasoning_effort"}),
        ("google:gemini-3.8-flash", {"max_output_tokens": 100, **SAMPLING}, set()),
    ],
)
async def test_what_a_model_cannot_take_is_named_with_its_rule(
    name: str, asked: dict[str, object], refused: set[str]
) -> None:
    catalog = Catalog(settings())
    broken = await catalog.get(name).unfit(Generation.model_validate(asked))
    await catalog.close()
    assert set(broken) == refused
    assert all(rule.startswith(("must be", "cannot be set")) for rule in broken.values())


@pytest.mark.requirement("AGT-3")
async def test_the_offline_model_takes_a_length_and_nothing_else() -> None:
    model = OfflineModel()
    asked = Generation(temperature=0.5, top_p=0.5, max_output_tokens=5, reasoning_effort="low")
    assert set(await model.unfit(asked)) == {"temperature", "top_p", "reasoning_effort"}
    assert await model.unfit(Generation(max_output_tokens=5)) == {}


async def test_a_library_is_not_loaded_for_a_model_that_writes_as_it_is() -> None:
    def load(name: str, settings: ModelSettings) -> object:
        raise AssertionError(f"{name} was loaded")

    catalog = Catalog(settings(), load=load)  # type: ignore[arg-type]  # it is never called
    assert await catalog.get("openai:gpt-4.1").unfit(AS_IT_IS) == {}
