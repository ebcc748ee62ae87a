"""What every model keeps, whoever is behind it: the fake, the offline model, two wire formats."""

import re
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass

import pytest
import pytest_asyncio
from pydantic import SecretStr

from adapters.models.model_registry import Catalog
from adapters.models.offline import OfflineModel
from adapters.models.settings import ModelSettings
from runtime.domain.errors import InvalidInput, ModelError, ModelRejected, ModelRetry
from runtime.domain.routes import AS_IT_IS, Generation
from runtime.ports.model import Model, ModelRequest, Models, TextChunk
from tests.fakes.model import Said, ScriptedModel, ScriptedModels
from tests.unit.models.samples import collect, request
from tests.wire.aimock import Aimock

TEXT = "hello"
CALLS = "read a.txt and b.txt"
BUSY = "say that you are busy"
BAD_KEY = "say that the key is wrong"
ANSWER = "Hello, this is an answer of several words."
PATHS = ['{"path":"a.txt"}', '{"path":"b.txt"}']


def scripted(asked: ModelRequest) -> Said:
    match asked.messages[-1].text:  # type: ignore[union-attr]  # only people speak here
        case "hello":
            return Said(ANSWER)
        case "read a.txt and b.txt":
            return Said(calls=tuple(("read_file", path) for path in PATHS))
        case "say that you are busy":
            return Said(error=ModelRetry("busy", 7.0))
        case _:
            return Said(error=ModelRejected("wrong key"))


CAN_FAIL = pytest.mark.parametrize("subject", ["scripted", "openai", "anthropic"], indirect=True)

FIXTURES = (
    {"match": {"userMessage": TEXT}, "response": {"content": ANSWER}, "chunkSize": 5},
    {
        "match": {"userMessage": CALLS},
        "response": {
            "toolCalls": [
                {"name": "read_file", "arguments": {"path": "a.txt"}},
                {"name": "read_file", "arguments": {"path": "b.txt"}},
            ]
        },
        "chunkSize": 4,
    },
    {
        "match": {"userMessage": BUSY},
        "response": {"error": {"message": "busy"}, "status": 429, "retryAfter": 7},
    },
    {
        "match": {"userMessage": BAD_KEY},
        "response": {"error": {"message": "invalid key"}, "status": 401},
    },
)


@dataclass(frozen=True, slots=True)
class Subject:
    models: Models

    @property
    def model(self) -> Model:
        return self.models.get(self.models.default)


@pytest_asyncio.fixture(params=["scripted", "offline", "openai", "anthropic"])
async def subject(request: pytest.FixtureRequest) -> AsyncIterator[Subject]:
    if request.param == "scripted":
        yield Subject(ScriptedModels(ScriptedModel(scripted)))
    elif request.param == "offline":
        yield Subject(ScriptedModels(OfflineModel()))
    else:
        server: Aimock = request.getfixturevalue("aimock_server")
        await server.reset()
        await server.load(*FIXTURES)
        settings = {
            "openai": ModelSettings(
                openai_api_key=SecretStr("sk-test-key"), openai_base_url=f"{server.url}/v1"
            ),
            "anthropic": ModelSettings(
                anthropic_api_key=SecretStr("sk-test-key"), anthropic_base_url=server.url
            ),
        }
        catalog = Catalog(settings[request.param])
        yield Subject(catalog)
        await catalog.close()


async def test_text_arrives_in_chunks_and_ends_with_one_response(subject: Subject) -> None:
    # The first answer of a server that nobody knows comes as a whole: it may begin with thoughts.
    await collect(subject.model, request(TEXT))
    chunks, response = await collect(subject.model, request(TEXT))

    assert len(chunks) > 1
    assert "".join(chunks) == response.text
    assert response.text.startswith("Hello")
    assert (response.tool_calls, response.finish_reason) == ((), "stop")
    assert response.model == subject.model.name == subject.models.default
    assert response.usage.input_tokens > 0
    assert response.usage.output_tokens > 0


async def test_parallel_calls_come_whole_in_order_and_with_ids_of_their_own(
    subject: Subject,
) -> None:
    _, response = await collect(subject.model, request(CALLS))

    assert [call.name for call in response.tool_calls] == ["read_file", "read_file"]
    assert [call.arguments.replace(" ", "") for call in response.tool_calls] == PATHS
    ids = [call.id for call in response.tool_calls]
    assert len(set(ids)) == 2
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,40}", one) for one in ids)
    assert response.finish_reason == "tool_call"


async def test_a_stream_that_is_closed_early_leaves_the_model_usable(subject: Subject) -> None:
    stream = subject.model.respond(request(TEXT))
    async with aclosing(stream):  # type: ignore[type-var]  # every model's is a generator
        first = await anext(stream)
    assert isinstance(first, TextChunk)
    with pytest.raises(StopAsyncIteration):
        await anext(stream)

    _, response = await collect(subject.model, request(TEXT))
    assert response.text


@pytest.mark.requirement("MSG-18")
@CAN_FAIL
async def test_a_busy_provider_is_worth_another_try_after_the_time_it_asked_for(
    subject: Subject,
) -> None:
    with pytest.raises(ModelRetry) as caught:
        await collect(subject.model, request(BUSY))
    assert caught.value.after_s == 7.0


@pytest.mark.requirement("MSG-18")
@CAN_FAIL
async def test_a_refused_key_is_not_worth_another_try(subject: Subject) -> None:
    with pytest.raises(ModelRejected) as caught:
        await collect(subject.model, request(BAD_KEY))
    assert isinstance(caught.value, ModelError)
    assert "sk-test-key" not in caught.value.reason + caught.value.public


async def test_models_know_their_names_and_refuse_others(subject: Subject) -> None:
    assert subject.models.default in subject.models.names()
    assert subject.model.context_tokens is None or subject.model.context_tokens > 1_000
    with pytest.raises(InvalidInput):
        subject.models.get("nobody:knows-this")


@pytest.mark.requirement("AGT-3")
async def test_every_model_takes_a_length_and_is_asked_to_keep_it(subject: Subject) -> None:
    assert await subject.model.unfit(Generation(max_output_tokens=5)) == {}
    assert await subject.model.unfit(AS_IT_IS) == {}
