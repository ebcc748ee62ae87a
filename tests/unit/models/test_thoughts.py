"""Thoughts go back to the model that had them, as they came, and to nobody else (MDL-3)."""

import json
from typing import Any

import pytest

from adapters.models.model_registry import Catalog
from runtime.domain.errors import ModelRejected
from runtime.domain.tools import ToolResult
from runtime.domain.transcript import AssistantMessage, ToolMessage, UserMessage
from runtime.ports.model import ModelRequest, ModelResponse
from runtime.store.payloads import kept_message, message_payload
from tests.unit.models.raw import SSE, Body, answering, openai_chunk, refusal
from tests.unit.models.samples import collect, request
from tests.unit.models.test_provider import model_at, settings
from tests.unit.models.test_streams_as_sent import DONE, event

pytestmark = pytest.mark.requirement("MDL-3")
SIGNED = {"google": {"thought_signature": "c2lnbmVk"}}
FINE = SSE + openai_chunk("It is Tuesday.", "stop") + DONE


def call(**more: object) -> dict[str, object]:
    function = {"name": "read_file", "arguments": '{"path": "date"}'}
    return {"index": 0, "id": "c1", "type": "function", "function": function, **more}


def thinking(*deltas: object, **more: object) -> bytes:
    """A stream with pieces of thoughts and then a call."""
    pieces = b"".join(event(delta) for delta in deltas)
    return SSE + pieces + event({"tool_calls": [call(**more)]}) + event({}, "tool_calls") + DONE


def behind(response: ModelResponse, *more: object) -> ModelRequest:
    """What is asked once the call of a response has its result."""
    said = AssistantMessage(
        text=response.text,
        tool_calls=response.tool_calls,
        model=response.model,
        thoughts=response.thoughts,
    )
    kept = kept_message(message_payload(said))
    assert kept == said, "a row keeps it"
    result = ToolResult(
        call_id=response.tool_calls[0].id, name="read_file", status="ok", content="Tuesday"
    )
    return request("what day is it?", kept, ToolMessage(results=(result,)), *map(str, more))


def assistant(body: Body) -> dict[str, Any]:
    (found,) = [one for one in body["messages"] if one["role"] == "assistant"]
    return found


def without_thoughts(body: Body) -> bool:
    return any(
        one["role"] == "assistant" and one.get("tool_calls") and not one.get("reasoning_content")
        for one in body["messages"]
    )


async def test_reasoning_content_goes_back_with_the_calls() -> None:
    """Kimi and DeepSeek refuse the whole conversation otherwise."""

    def answer(body: Body) -> bytes:
        if without_thoughts(body):
            return refusal(400, {"error": {"message": "reasoning_content is missing at index 2"}})
        if len(body["messages"]) > 2:
            return FINE
        return thinking({"reasoning_content": "She wants"}, {"reasoning_content": " the date."})

    async with answering(answer) as server, model_at(server.url, "compatible") as model:
        chunks, first = await collect(model, request("what day is it?"))
        assert chunks == []
        _, second = await collect(model, behind(first))
        assert second.text == "It is Tuesday."
        _, third = await collect(model, behind(first, "and now?"))
        assert third.text == "It is Tuesday."
    assert assistant(server.bodies[1])["reasoning_content"] == "She wants the date."
    assert server.asked == 3


async def test_a_signature_goes_back_with_its_call() -> None:
    """Gemini refuses the whole conversation otherwise."""

    def answer(body: Body) -> bytes:
        if len(body["messages"]) == 2:
            return thinking(extra_content=SIGNED)
        (sent,) = assistant(body)["tool_calls"]
        if sent.get("extra_content") != SIGNED:
            return refusal(400, {"error": {"message": "missing a thought_signature"}})
        return FINE

    async with answering(answer) as server, model_at(server.url, "compatible") as model:
        _, first = await collect(model, request("what day is it?"))
        _, second = await collect(model, behind(first))
    assert second.text == "It is Tuesday."
    assert server.asked == 2


async def test_details_go_back_as_they_came_whole() -> None:
    """OpenRouter hands on what other providers signed or encrypted."""
    text = {"type": "reasoning.text", "index": 0, "format": "anthropic-claude-v1"}
    secret = {"type": "reasoning.encrypted", "data": "AAAA", "id": "r1", "index": 1}
    pieces = [
        {"reasoning_details": [{**text, "text": "She wants"}]},
        {"reasoning_details": [{**text, "text": " the date."}]},
        {"reasoning_details": [{**text, "signature": "c2ln"}, secret]},
    ]

    def answer(body: Body) -> bytes:
        return thinking(*pieces) if len(body["messages"]) == 2 else FINE

    async with answering(answer) as server, model_at(server.url, "compatible") as model:
        _, first = await collect(model, request("what day is it?"))
        await collect(model, behind(first))
    assert assistant(server.bodies[1])["reasoning_details"] == [
        {**text, "text": "She wants the date.", "signature": "c2ln"},
        secret,
    ]


async def test_a_field_of_the_message_goes_back_as_it_came() -> None:
    """Gemini's compatible address signs the whole message where it calls nothing alone."""

    def answer(body: Body) -> bytes:
        return thinking({"extra_content": SIGNED}) if len(body["messages"]) == 2 else FINE

    async with answering(answer) as server, model_at(server.url, "compatible") as model:
        _, first = await collect(model, request("what day is it?"))
        await collect(model, behind(first))
    assert assistant(server.bodies[1])["extra_content"] == SIGNED


async def test_another_model_of_the_same_server_gets_none() -> None:
    stream = thinking({"reasoning_content": "Hm."})
    async with answering(lambda body: stream if len(body["messages"]) == 2 else FINE) as server:
        async with model_at(server.url, "compatible") as model:
            _, first = await collect(model, request("what day is it?"))
        catalog = Catalog(settings(server.url))
        await collect(catalog.get("compatible:else"), behind(first))
        await catalog.close()
    assert "Hm." not in json.dumps(server.bodies[1])


async def test_a_server_that_takes_no_thoughts_is_asked_without() -> None:
    def answer(body: Body) -> bytes:
        if len(body["messages"]) == 2:
            return thinking({"reasoning_content": "Hm."})
        if not without_thoughts(body):
            return refusal(422, {"detail": "reasoning_content: extra inputs are not permitted"})
        return FINE

    async with answering(answer) as server, model_at(server.url, "compatible") as model:
        _, first = await collect(model, request("what day is it?"))
        _, second = await collect(model, behind(first))
    assert (second.text, server.asked) == ("It is Tuesday.", 3)


async def test_no_other_model_and_no_other_server_gets_them() -> None:
    async with (
        answering(lambda _: thinking({"reasoning_content": "Hm."})) as one,
        answering(FINE) as other,
    ):
        async with model_at(one.url, "compatible") as model:
            _, first = await collect(model, request("what day is it?"))
        asked = behind(first)
        async with model_at(other.url, "compatible") as model:
            await collect(model, asked)
        catalog = Catalog(settings(one.url).model_copy(update={"openai_base_url": other.url}))
        await collect(catalog.get("compatible:else"), asked)
        await catalog.close()
    for body in other.bodies:
        assert "Hm." not in json.dumps(body)


async def test_what_thinks_in_words_only_has_nothing_to_give_back() -> None:
    async with answering(FINE) as server, model_at(server.url, "compatible") as model:
        _, response = await collect(model, request("what day is it?"))
    assert response.thoughts == ""


def test_thoughts_stand_in_a_row_and_in_nothing_else() -> None:
    said = AssistantMessage(text="It is noon.", model="compatible:m", thoughts='{"parts": []}')
    assert "parts" in message_payload(said)
    for shown in (said.model_dump_json(), str(said.model_dump()), repr(said)):
        assert "parts" not in shown
    assert kept_message(message_payload(said)) == said


@pytest.mark.parametrize("thoughts", ["no JSON", "[]", "{}", '{"host": "", "parts": [{}]}'])
async def test_thoughts_of_another_version_are_passed_over(thoughts: str) -> None:
    async with answering(FINE) as server, model_at(server.url, "compatible") as model:
        said = AssistantMessage(text="So.", model=model.name, thoughts=thoughts)
        _, response = await collect(model, request("hi", said, UserMessage(text="and?")))
    assert response.text == "It is Tuesday."


async def test_a_refusal_that_is_about_something_else_leaves_them() -> None:
    with pytest.raises(ModelRejected):
        async with (
            answering(refusal(400, {"error": {"message": "the moon is wrong"}})) as server,
            model_at(server.url, "compatible") as model,
        ):
            await collect(model, request("hi"))


ALOUD = ("She wants", " the date.", "\n</think>\n", "It is", " Tuesday.")


def spoken(*pieces: str, end: str = "stop") -> bytes:
    """A stream of text."""
    return SSE + b"".join(map(openai_chunk, pieces)) + openai_chunk("", end) + DONE


async def test_thoughts_without_an_opening_tag_are_shown_at_no_time() -> None:
    async with answering(spoken(*ALOUD)) as server, model_at(server.url, "compatible") as model:
        for _ in range(2):
            chunks, response = await collect(model, request("what day is it?"))
            assert "".join(chunks) == response.text == "It is Tuesday."


async def test_a_server_whose_thoughts_come_apart_grows_from_its_first_answer() -> None:
    stream = SSE + event({"reasoning_content": "Hm."})
    stream += b"".join(map(openai_chunk, ("It is", " Tuesday."))) + openai_chunk("", "stop") + DONE
    async with answering(stream) as server, model_at(server.url, "compatible") as model:
        chunks, _ = await collect(model, request("what day is it?"))
    assert [chunk for chunk in chunks if chunk] == ["It is", " Tuesday."]


async def test_a_server_that_answered_without_thoughts_grows_from_then_on() -> None:
    seen: list[list[str]] = []
    async with (
        answering(spoken("It is", " Tuesday.")) as server,
        model_at(server.url, "compatible") as model,
    ):
        for _ in range(2):
            chunks, _ = await collect(model, request("what day is it?"))
            seen.append([chunk for chunk in chunks if chunk])
    assert seen == [["It is Tuesday."], ["It is", " Tuesday."]]


async def test_a_cut_answer_of_a_model_that_thinks_first_is_no_answer() -> None:
    streams = iter([spoken(*ALOUD), spoken("She wants", " the date", end="length")])
    async with (
        answering(lambda _: next(streams)) as server,
        model_at(server.url, "compatible") as model,
    ):
        await collect(model, request("what day is it?"))
        chunks, response = await collect(model, request("what day is it?"))
    assert ("".join(chunks), response.text, response.finish_reason) == ("", "", "length")


async def test_held_text_counts_for_the_bound() -> None:
    stream = SSE + openai_chunk("x" * 1000) * 200
    async with answering(stream, hold=True) as server, model_at(server.url, "compatible") as model:
        _, response = await collect(model, request("go on"))
    assert (len(response.text), response.finish_reason) == (1000 * 16, "length")
