"""One request to a provider, over real sockets: streams that break, hang or never end."""

import json
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

import pytest
from pydantic import SecretStr

from adapters.models import names
from adapters.models.model_registry import Catalog
from adapters.models.provider import MAX_CHARACTERS
from adapters.models.settings import ModelSettings
from runtime.domain.errors import ModelRejected, ModelRetry
from runtime.domain.tools import ToolCall, ToolResult
from runtime.domain.transcript import AssistantMessage, ToolMessage, UserMessage
from runtime.ports.model import Model, ModelResponse, TextChunk
from tests.conftest import FailAfter
from tests.unit.models.raw import SSE, answering, openai_chunk
from tests.unit.models.samples import collect, request
from tests.wire.aimock import Aimock, Json

KEY = SecretStr("sk-test-0123456789")
WIRES = pytest.mark.parametrize("wire", ["openai", "anthropic", "google", "compatible", "ollama"])


def settings(url: str) -> ModelSettings:
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


@asynccontextmanager
async def model_at(url: str, wire: str = "openai") -> AsyncIterator[Model]:
    catalog = Catalog(settings(url))
    try:
        yield catalog.get(names.default_name(wire, settings(url)))
    finally:
        await catalog.close()


def fixture(said: str, response: Json, **more: object) -> Json:
    return {"match": {"userMessage": said}, "response": response, **more}


@WIRES
async def test_every_providers_format_streams_text(aimock: Aimock, wire: str) -> None:
    await aimock.load(fixture("hello", {"content": "Hello to you too."}, chunkSize=4))
    async with model_at(aimock.url, wire) as model:
        first, _ = await collect(model, request("hello"))
        chunks, response = await collect(model, request("hello"))

    # Where nobody knows whether the model thinks aloud, its first answer comes as a whole.
    assert len(first) == (1 if wire in ("compatible", "ollama") else 5)
    assert len(chunks) == 5
    assert "".join(chunks) == response.text == "Hello to you too."
    assert (response.finish_reason, response.model) == ("stop", model.name)


@WIRES
async def test_text_and_two_parallel_calls_come_out_of_fragments(aimock: Aimock, wire: str) -> None:
    calls = [{"name": "read_file", "arguments": {"path": one}} for one in ("a.txt", "b.txt")]
    said = {"content": "I look.", "toolCalls": calls}
    if wire == "google":
        said["finishReason"] = "stop"  # aimock's own word for calls is none of Gemini's
    await aimock.load(fixture("look", said, chunkSize=3))
    async with model_at(aimock.url, wire) as model:
        _, response = await collect(model, request("look"))

    assert response.text == "I look."
    assert [call.name for call in response.tool_calls] == ["read_file", "read_file"]
    assert [call.arguments.replace(" ", "") for call in response.tool_calls] == [
        '{"path":"a.txt"}',
        '{"path":"b.txt"}',
    ]


async def test_results_go_back_with_their_calls(aimock: Aimock) -> None:
    await aimock.load(
        {
            "match": {"toolCallId": "c2", "toolResultContains": "of b"},
            "response": {"content": "Both read."},
        }
    )
    calls = tuple(ToolCall(id=one, name="read_file", arguments="{}") for one in ("c1", "c2"))
    results = tuple(
        ToolResult(call_id=one, name="read_file", content=text)
        for one, text in (("c1", "of a"), ("c2", "of b"))
    )
    said = (
        UserMessage(text="read both"),
        AssistantMessage(tool_calls=calls),
        ToolMessage(results=results),
    )
    for wire in ("openai", "anthropic"):
        async with model_at(aimock.url, wire) as model:
            _, response = await collect(model, request(*said))
        assert response.text == "Both read."


@pytest.mark.parametrize("wire", ["openai", "anthropic"])
async def test_a_response_that_is_no_text_is_seen_coming(aimock: Aimock, wire: str) -> None:
    """SUB-21: who watches a child must not take long arguments for silence."""
    call = {"name": "write_file", "arguments": json.dumps({"path": "a", "content": "x" * 400})}
    await aimock.load(fixture("write", {"toolCalls": [call]}, chunkSize=50))
    async with model_at(aimock.url, wire) as model, aclosing(model.respond(request("write"))) as it:
        items = [item async for item in it]

    assert TextChunk("") in items[:-1]
    assert isinstance(items[-1], ModelResponse)


async def test_the_bound_on_output_and_the_system_prompt_are_sent(aimock: Aimock) -> None:
    await aimock.load(fixture("hello", {"content": "Hi."}))
    async with model_at(aimock.url) as model:
        await collect(model, request("hello", system="Be brief.", max_output_tokens=321))

    (body,) = await aimock.requests()
    assert "Be brief." in str(body["messages"])
    assert 321 in (body.get("max_completion_tokens"), body.get("max_tokens"))


async def test_usage_and_cost_are_the_providers_count(aimock: Aimock) -> None:
    usage = {"prompt_tokens": 1_000_000, "completion_tokens": 100_000, "total_tokens": 1_100_000}
    await aimock.load(fixture("count", {"content": "One.", "usage": usage}))
    spent = {}
    for wire in ("openai", "compatible", "ollama"):
        async with model_at(aimock.url, wire) as model:
            _, response = await collect(model, request("count"))
        assert (response.usage.input_tokens, response.usage.output_tokens) == (1_000_000, 100_000)
        spent[wire] = response.usage.cost_usd
    assert spent["openai"] is not None
    assert spent["openai"] > 0
    assert spent["compatible"] is None, "an unknown price is not zero"
    assert spent["ollama"] == 0.0


@WIRES
@pytest.mark.requirement("MSG-18")
async def test_too_many_requests_says_when_to_come_back_and_the_next_one_passes(
    aimock: Aimock, wire: str
) -> None:
    busy = {"error": {"message": "slow down", "type": "rate_limit_error"}, "status": 429}
    await aimock.load(
        {
            "match": {"userMessage": "busy", "sequenceIndex": 0},
            "response": {**busy, "retryAfter": 7},
        },
        {"match": {"userMessage": "busy", "sequenceIndex": 1}, "response": {"content": "Now."}},
    )
    async with model_at(aimock.url, wire) as model:
        with pytest.raises(ModelRetry) as caught:
            await collect(model, request("busy"))
        assert caught.value.after_s == 7.0
        assert len(await aimock.requests()) == 1, "the library did not try again by itself"

        _, response = await collect(model, request("busy"))
    assert response.text == "Now."


@WIRES
@pytest.mark.requirement("MSG-18")
async def test_a_stream_that_is_cut_in_the_middle_is_worth_another_try(
    aimock: Aimock, wire: str
) -> None:
    await aimock.load(
        fixture("cut", {"content": "word " * 200}, chunkSize=5, truncateAfterChunks=20, latency=1)
    )
    async with model_at(aimock.url, wire) as model:
        with pytest.raises(ModelRetry):
            await collect(model, request("cut"))


@pytest.mark.requirement("MSG-18")
async def test_a_stream_that_ends_without_saying_so_is_worth_another_try() -> None:
    async with (
        answering(SSE + openai_chunk("half an ans")) as server,
        model_at(server.url) as model,
    ):
        with pytest.raises(ModelRetry):
            await collect(model, request("hello"))


@pytest.mark.requirement("MSG-18")
async def test_a_server_that_is_not_there_is_worth_another_try() -> None:
    async with answering(b"") as gone:
        pass
    async with model_at(gone.url) as model:
        with pytest.raises(ModelRetry):
            await collect(model, request("hello"))


@pytest.mark.requirement("MSG-18")
async def test_a_server_that_says_nothing_runs_into_the_timeout(fail_after: FailAfter) -> None:
    async with answering(SSE, hold=True) as server:
        catalog = Catalog(settings(server.url).model_copy(update={"timeout_s": 0.05}))
        async with fail_after():
            with pytest.raises(ModelRetry):
                await collect(catalog.get(catalog.default), request("hello"))
        await catalog.close()
        assert server.asked == 1


@pytest.mark.requirement("MSG-18")
async def test_a_date_to_come_back_counts_from_the_servers_own_clock() -> None:
    head = (
        b"HTTP/1.1 503 Busy\r\nDate: Fri, 20 Nov 2026 10:00:00 GMT\r\n"
        b"Retry-After: Fri, 20 Nov 2026 10:00:30 GMT\r\nContent-Length: 0\r\n\r\n"
    )
    async with answering(head) as server, model_at(server.url) as model:
        with pytest.raises(ModelRetry) as caught:
            await collect(model, request("hello"))
    assert caught.value.after_s == 30.0


@WIRES
@pytest.mark.requirement("MSG-18")
async def test_a_wrong_key_is_rejected_and_stays_out_of_the_message(
    aimock: Aimock, wire: str
) -> None:
    words = f"Incorrect API key provided: {KEY.get_secret_value()}"
    await aimock.load(
        fixture("hello", {"error": {"message": words, "type": "auth"}, "status": 401})
    )
    async with model_at(aimock.url, wire) as model:
        with pytest.raises(ModelRejected) as caught:
            await collect(model, request("hello"))
    assert KEY.get_secret_value() not in caught.value.reason + caught.value.public
    assert "doctor" in caught.value.public
    assert caught.value.__cause__ is None


@WIRES
async def test_ten_megabytes_are_read_up_to_the_bound(aimock: Aimock, wire: str) -> None:
    await aimock.load(fixture("huge", {"content": "x" * 10_000_000}, chunkSize=100_000))
    async with model_at(aimock.url, wire) as model:
        _, whole = await collect(model, request("huge", max_output_tokens=1_000_000))
        _, little = await collect(model, request("huge", max_output_tokens=10))

    assert (len(whole.text), whole.finish_reason) == (MAX_CHARACTERS, "length")
    assert (len(little.text), little.finish_reason) == (160, "length")
    assert little.usage.output_tokens >= 40, "what was read is paid for"


async def test_endless_arguments_are_no_call(aimock: Aimock) -> None:
    call = {"name": "read_file", "arguments": {"path": "x" * 100_000}}
    await aimock.load(fixture("huge", {"content": "I try.", "toolCalls": [call]}, chunkSize=1_000))
    async with model_at(aimock.url) as model:
        _, response = await collect(model, request("huge", max_output_tokens=100))
    assert (response.tool_calls, response.finish_reason) == ((), "length")


async def test_an_empty_response_is_handed_on_as_it_is() -> None:
    content = SSE + openai_chunk("", "stop") + b"data: [DONE]\n\n"
    async with answering(content) as server, model_at(server.url) as model:
        chunks, response = await collect(model, request("hello"))
    assert (chunks, response.text, response.tool_calls) == ([], "", ())
    assert response.finish_reason == "stop"


async def test_a_reason_that_nobody_knows_ends_a_response_but_is_no_good_end() -> None:
    content = SSE + openai_chunk("Done.") + openai_chunk("", "abgeschlossen") + b"data: [DONE]\n\n"
    async with answering(content) as server, model_at(server.url) as model:
        _, response = await collect(model, request("hello"))
    assert (response.text, response.finish_reason) == ("Done.", "unknown")
    assert response.finish_word == "abgeschlossen"


async def test_closing_the_stream_hangs_up_at_once(fail_after: FailAfter) -> None:
    async with (
        answering(SSE + openai_chunk("first words"), hold=True) as server,
        model_at(server.url) as model,
        fail_after(),
    ):
        async with aclosing(model.respond(request("hello"))) as stream:  # type: ignore[type-var]  # a generator
            assert await anext(stream) == TextChunk("first words")
            assert not server.left.is_set()
        await server.left.wait()


async def test_a_refusal_is_an_answer_and_no_broken_stream() -> None:
    refusal = openai_chunk("").replace(b'"content": ""', b'"refusal": "No."')
    content = SSE + refusal + openai_chunk("", "stop") + b"data: [DONE]\n\n"
    async with answering(content) as server, model_at(server.url) as model:
        _, response = await collect(model, request("hello"))
    assert (response.text, response.finish_reason) == ("No.", "refusal")
