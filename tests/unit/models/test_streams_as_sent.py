"""Streams of OpenAI's format as servers of other makes send them (MDL-1), over real sockets."""

import json
from collections.abc import AsyncIterator, Sequence

import pytest

from adapters.models.clients.openai_stream import EventDecoder
from adapters.models.model_registry import Catalog
from runtime.domain.errors import ModelRetry
from runtime.ports.model import ModelResponse
from tests.conftest import FailAfter
from tests.unit.models.raw import SSE, answering
from tests.unit.models.samples import collect, request
from tests.unit.models.test_provider import model_at, settings

pytestmark = pytest.mark.requirement("MDL-1")
DONE = b"data: [DONE]\n\n"
WHOLE = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}


def event(delta: object = None, finish: object = None, **fields: object) -> bytes:
    """A piece of a stream; without a delta it has none."""
    choice = {"index": 0, "finish_reason": finish} | ({} if delta is None else {"delta": delta})
    return f"data: {json.dumps({**WHOLE, 'choices': [choice], **fields})}\n\n".encode()


def said(*texts: str, finish: object = None) -> bytes:
    return b"".join(event({"content": text}, finish) for text in texts)


def call(
    arguments: object = "",
    *,
    name: str | None = "read_file",
    index: object = 0,
    call_id: str | None = None,
) -> bytes:
    """A fragment of a call."""
    function = {"arguments": arguments} | ({"name": name} if name else {})
    fragment = {"index": index, "id": call_id, "type": "function", "function": function}
    return event({"tool_calls": [fragment]})


async def answer(stream: bytes, *, head: bytes = SSE) -> ModelResponse:
    """What one request is answered; the server is asked once."""
    async with answering(head + stream) as server, model_at(server.url, "compatible") as model:
        chunks, response = await collect(model, request("hello"))
        assert server.asked == 1
    assert "".join(chunks) == response.text
    return response


USAGE = event(choices=[], usage={"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13})
ENDS = {
    "no reason and a usage": said("It is ", "noon.") + USAGE + DONE,
    "an empty reason": said("It is ", "noon.", finish="") + DONE,
    "choices that are null": said("It is ", "noon.") + event(choices=None) + DONE,
    "a last piece without a delta": said("It is ", "noon.") + event(finish="stop"),
    "a last delta that is null": said("It is noon.")
    + event(choices=[{"index": 0, "delta": None, "finish_reason": "stop"}]),
    "a delta that is a list": said("It is noon.")
    + event(choices=[{"index": 0, "delta": [], "finish_reason": "stop"}]),
    "no end behind its reason": said("It is ", "noon.") + event({}, "stop"),
    "spaces behind the end": said("It is noon.") + b"data: [DONE] \n\n",
}


@pytest.mark.parametrize("stream", ENDS.values(), ids=ENDS)
async def test_an_end_is_an_end_however_it_is_said(stream: bytes) -> None:
    response = await answer(stream)
    assert (response.text, response.finish_reason) == ("It is noon.", "stop")


@pytest.mark.parametrize("stream", [said("It is "), said("It is ", finish=""), USAGE])
async def test_a_stream_that_is_cut_without_an_end_is_tried_again(stream: bytes) -> None:
    with pytest.raises(ModelRetry):
        await answer(stream)


async def test_what_stays_open_behind_its_reason_is_read_to_the_reason(
    fail_after: FailAfter,
) -> None:
    stream = SSE + said("It is noon.", finish="stop")
    async with answering(stream, hold=True) as server, fail_after():
        catalog = Catalog(settings(server.url).model_copy(update={"timeout_s": 1.0}))
        _, response = await collect(catalog.get(catalog.default), request("hello"))
        await catalog.close()
        assert server.asked == 1
    assert (response.text, response.finish_reason) == ("It is noon.", "stop")


A, B, C = ('{"path": "a"}', '{"path": "b"}', '{"path": "c"}')
CALLS: dict[str, tuple[bytes, Sequence[str]]] = {
    "whole, one index, new ids": (
        call(A, call_id="1") + call(B, call_id="2") + call(C, call_id="3"),
        (A, B, C),
    ),
    "whole, one index, no ids": (call(A) + call(B) + call(C), (A, B, C)),
    "whole, no index, new ids": (
        call(A, index=None, call_id="1") + call(B, index=None, call_id="2"),
        (A, B),
    ),
    "fragments, the name in each": (
        call(call_id="1") + call('{"path"', call_id="1") + call(': "a', call_id="1") + call('"}'),
        (A,),
    ),
    "fragments, the name and no id in each": (
        call() + call('{"path"') + call(': "a') + call('"}') + call(),
        (A,),
    ),
    "fragments, the name and a new id in each": (
        call(call_id="1") + call('{"path"', call_id="2") + call(': "a"}', call_id="3"),
        (A,),
    ),
    "fragments, a new id in each": (
        call(call_id="1") + call('{"path"', name=None, call_id="2") + call(': "a"}', name=None),
        (A,),
    ),
    "fragments, a new index in each": (
        call(call_id="1")
        + call('{"path"', index=1, call_id="1")
        + call(': "a"}', index=2, name=None, call_id="1"),
        (A,),
    ),
    "mixed fragments of two": (
        call(call_id="1")
        + call(call_id="2", index=1)
        + call('{"path": ', name=None)
        + call(B, name=None, index=1)
        + call('"a"}', name=None),
        (A, B),
    ),
    "two of one id": (call(A, call_id="1") + call(B, call_id="1", index=1), (A, B)),
    "two without arguments": (call(call_id="1") + call(call_id="2"), ("{}", "{}")),
    "arguments that are an object": (call({"path": "a"}, call_id="1"), (A,)),
    "one by OpenAI's older form": (
        event({"function_call": {"name": "read_file", "arguments": '{"path"'}})
        + event({"function_call": {"arguments": ': "a"}'}}),
        (A,),
    ),
}


@pytest.mark.parametrize("end", [event({}, "tool_calls"), DONE, event({}, "") + DONE])
@pytest.mark.parametrize(("stream", "arguments"), CALLS.values(), ids=CALLS)
async def test_calls_are_told_apart(stream: bytes, arguments: Sequence[str], end: bytes) -> None:
    response = await answer(stream + end)
    assert [one.name for one in response.tool_calls] == ["read_file"] * len(arguments)
    assert [one.arguments for one in response.tool_calls] == list(arguments)
    assert len({one.id for one in response.tool_calls}) == len(arguments)
    assert response.finish_reason == "tool_call"


@pytest.mark.parametrize("names", [("read_", "file"), ("read", "read_file"), ("read_file", "")])
async def test_a_name_in_pieces_is_one_name(names: tuple[str, str]) -> None:
    first, second = names
    response = await answer(call(name=first) + call(A, name=second) + event({}, "tool_calls"))
    assert [(one.name, one.arguments) for one in response.tool_calls] == [("read_file", A)]


def counted(prompt: int, completion: int) -> dict[str, int]:
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": 0}


@pytest.mark.parametrize(
    "usages",
    [
        [counted(3000, each) for each in range(1, 61)],
        [counted(2000, 10), counted(3000, 60)],
        [counted(3000, 1), counted(0, 60)],
        [counted(3000, 60), None],
    ],
)
async def test_the_last_usage_counts(usages: Sequence[dict[str, int] | None]) -> None:
    pieces = b"".join(event({"content": "a"}, usage=usage) for usage in usages)
    response = await answer(pieces + event({}, "stop") + DONE)
    assert (response.usage.input_tokens, response.usage.output_tokens) == (3000, 60)


@pytest.mark.parametrize(
    ("halves", "text"),
    [
        (("a\ud83d", "\ude00b"), "a\U0001f600b"),
        (("\ud83d", "", "\ude00"), "\U0001f600"),
        (("\ud83d\ude00\ud83d", "\ude00"), "\U0001f600\U0001f600"),
        (("a\ud83d", "b"), "a\ufffdb"),
        (("a\ud83d",), "a\ufffd"),
    ],
)
async def test_halves_of_a_character_are_joined(halves: Sequence[str], text: str) -> None:
    assert (await answer(said(*halves) + DONE)).text == text


async def test_halves_of_a_character_are_joined_in_arguments_too() -> None:
    stream = call('{"path": "\ud83d') + call('\ude00"}', name=None) + event({}, "tool_calls")
    (found,) = (await answer(stream)).tool_calls
    assert json.loads(found.arguments) == {"path": "\U0001f600"}


def completion(message: dict[str, object], finish: str = "stop") -> dict[str, object]:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return {**WHOLE, "object": "chat.completion", "choices": [choice], "usage": counted(9, 4)}


JSON = SSE.replace(b"text/event-stream", b"application/json; charset=utf-8")


@pytest.mark.parametrize("as_event", [False, True])
async def test_a_whole_completion_is_an_answer(as_event: bool) -> None:
    calls = [{"id": one, "function": {"name": "read_file", "arguments": A}} for one in "12"]
    whole = completion({"content": "It is noon.", "tool_calls": calls})
    body = json.dumps(whole, indent=None if as_event else 2).encode()
    stream, head = (b"data: " + body + b"\n\n", SSE) if as_event else (body, JSON)
    response = await answer(stream, head=head)
    assert response.text == "It is noon."
    assert [one.arguments for one in response.tool_calls] == [A, A]
    assert response.usage.input_tokens == 9


async def test_calls_of_a_whole_completion_are_told_apart_without_ids_and_arguments() -> None:
    calls = [{"function": {"name": "list_dir", "arguments": None}} for _ in "12"]
    response = await answer(json.dumps(completion({"tool_calls": calls})).encode(), head=JSON)
    assert [(one.name, one.arguments) for one in response.tool_calls] == [("list_dir", "{}")] * 2


async def test_a_stream_that_calls_itself_json_is_a_stream() -> None:
    assert (await answer(said("It is noon.") + DONE, head=JSON)).text == "It is noon."


MILLION = 1024 * 1024


LINES = {
    "one line": b"x" * MILLION,
    "comments": (b": still here" + b"." * 4_000 + b"\n\n") * 256,
    "lines of one event": (b"data: " + b"x" * 4_000 + b"\n") * 256,
}


@pytest.mark.parametrize("piece", LINES.values(), ids=LINES)
async def test_what_never_becomes_an_event_is_read_to_a_bound(piece: bytes) -> None:
    read = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal read
        while True:
            read += len(piece)
            yield piece

    with pytest.raises(ValueError, match="without an event"):
        await anext(EventDecoder().aiter_bytes(endless()))
    assert read <= 17 * MILLION


async def test_many_events_may_be_more_than_the_bound_of_one() -> None:
    async def much() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b"data: " + b"x" * MILLION + b"\n\n"

    events = [len(event.data) async for event in EventDecoder().aiter_bytes(much())]
    assert events == [MILLION] * 20
