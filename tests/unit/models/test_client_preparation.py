"""What a provider's library does once, and not again for each request.

The figures are in docs/performance.md. Each test also fails when the library no longer works where
the test looks.
"""

import json
from collections.abc import Sequence
from contextlib import aclosing

import pytest
from pydantic import SecretStr

from adapters.models import names
from adapters.models.names import Provider
from adapters.models.once import Once
from adapters.models.provider import ProviderModel, connect
from adapters.models.settings import ModelSettings
from runtime.domain.tools import ToolSpec
from tests.unit.models.counting import counted
from tests.unit.models.samples import LIST_DIR, READ_FILE, request, tool
from tests.wire.aimock import Aimock

WALK = "pydantic_ai/_json_schema.py"
KEY = SecretStr("sk-test-0123456789")
ANSWER = {"match": {"userMessage": "hello"}, "response": {"content": "Hello."}}


def model_at(url: str, wire: Provider) -> ProviderModel:
    """A model that is asked in the format of `wire`."""
    settings = ModelSettings(
        openai_api_key=KEY,
        openai_base_url=f"{url}/v1",
        anthropic_api_key=KEY,
        anthropic_base_url=url,
        gemini_api_key=KEY,
        gemini_base_url=url,
        ollama_url=url,
        ollama_model="small",
    )
    return connect(names.default_name(wire, settings), settings)


async def ask(model: ProviderModel, tools: tuple[ToolSpec, ...] = (READ_FILE, LIST_DIR)) -> None:
    """Ask once, and read the answer to its end."""
    async with aclosing(model.respond(request("hello", tools=tools))) as stream:
        async for _ in stream:
            pass


@pytest.mark.parametrize("wire", ["openai", "compatible", "ollama", "anthropic"])
async def test_no_request_makes_a_client_of_its_own(aimock: Aimock, wire: Provider) -> None:
    await aimock.load(ANSWER)
    file = f"{'anthropic' if wire == 'anthropic' else 'openai'}/_client.py"
    with counted(file) as called:
        model = model_at(aimock.url, wire)
    assert "__init__" in called, f"{file} is not where clients are made any more"
    with counted(file) as called:
        await ask(model)
    assert "__init__" not in called
    await model.close()


@pytest.mark.parametrize("wire", ["openai", "compatible", "ollama", "anthropic", "google"])
async def test_the_schemas_of_the_same_tools_are_walked_through_once(
    aimock: Aimock, wire: Provider
) -> None:
    await aimock.load(ANSWER)
    model = model_at(aimock.url, wire)
    other = tool("grep", "pattern")
    walks, sent = [], []
    for tools in ((READ_FILE, LIST_DIR), (READ_FILE, LIST_DIR), (READ_FILE, other)):
        with counted(WALK) as called:
            await ask(model, tools)
        walks.append(called.count("walk"))
        sent.append(json.dumps((await aimock.requests())[-1]["tools"]))
    await model.close()

    assert walks == [2, 0, 2], f"walks in {WALK}, where the library goes through a schema"
    assert sent[0] == sent[1]
    assert "list_dir" in sent[1]
    assert "list_dir" not in sent[2]
    assert "grep" in sent[2]


@pytest.mark.parametrize("wire", ["openai", "compatible", "ollama"])
async def test_the_same_tools_are_put_into_json_once(aimock: Aimock, wire: Provider) -> None:
    await aimock.load(ANSWER)
    model = model_at(aimock.url, wire)
    written = []
    for tools in ((READ_FILE, LIST_DIR), (READ_FILE, LIST_DIR), (READ_FILE,), ()):
        with counted("adapters/models/clients/openai.py") as called:
            await ask(model, tools)
        written.append(called.count("_json"))
    sent = [body.get("tools", []) for body in await aimock.requests()]
    await model.close()

    assert written == [2, 1, 2, 1], "the rest of the body, and tools that are new"
    names = [[one["function"]["name"] for one in tools] for tools in sent]
    assert names == [["read_file", "list_dir"], ["read_file", "list_dir"], ["read_file"], []]
    assert sent[0] == sent[1]


def test_what_is_kept_is_the_answer_for_these_very_parts() -> None:
    made: list[list[str]] = []

    def make(parts: Sequence[list[str]]) -> list[str]:
        made.append([word for part in parts for word in part])
        return made[-1]

    once = Once(make, limit=2)
    a, b = ["a"], ["b"]
    assert once((a, b)) is once([a, b])
    assert once((b, a)) == ["b", "a"]
    assert once((["a"], b)) == ["a", "b"]
    assert len(made) == 3, "equal parts are not the same"


def test_the_answer_that_was_asked_for_longest_ago_is_forgotten() -> None:
    made: list[str] = []

    def make(parts: Sequence[str]) -> int:
        made.append(parts[0])
        return len(made)

    once = Once(make, limit=2)
    for part in ("a", "b", "a", "c", "a", "b"):
        once((part,))
    assert made == ["a", "b", "c", "b"]
