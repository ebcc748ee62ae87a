"""Requests that a server refuses are sent in a plainer form, and that form is kept (MDL-4)."""

import base64
import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from adapters.models.request_forms import KEPT_S, USUAL, Carried, Form, KnownForm, plainer
from runtime.domain.errors import ModelRejected
from runtime.domain.files import ReceivedFile
from runtime.domain.routes import Generation
from runtime.domain.tools import ToolCall, ToolResult
from runtime.domain.transcript import (
    AssistantMessage,
    NoticeMessage,
    ToolMessage,
)
from runtime.ports.model import ModelRequest
from tests.unit.models.raw import SSE, Body, answering, openai_chunk, refusal
from tests.unit.models.samples import collect, request
from tests.unit.models.test_provider import model_at

pytestmark = pytest.mark.requirement("MDL-4")
FINE = SSE + openai_chunk("Hello.", "stop") + b"data: [DONE]\n\n"
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
Refuses = Callable[[Body], bool]


def with_picture() -> ModelRequest:
    """A request that encloses a picture."""
    file = ReceivedFile(
        input_id="in_1",
        place=0,
        state="kept",
        name="cat.png",
        path="inbox/cat.png",
        media_type="image/png",
        size_bytes=len(PNG),
        digest="d1",
        width=1,
        height=1,
        shown=True,
    )
    told = NoticeMessage(text="A picture came.", file=file)
    return replace(request("what is this?", told), enclosed={"d1": PNG})


def has_picture(body: Body) -> bool:
    return "image_url" in json.dumps(body["messages"])


def any_null(body: Body) -> bool:
    return any(message.get("content", "") is None for message in body["messages"])


def called() -> ModelRequest:
    """A request behind a call without words."""
    call = ToolCall(id="c1", name="read_file", arguments='{"path": "a"}')
    result = ToolResult(call_id="c1", name="read_file", status="ok", content="of a")
    said = AssistantMessage(tool_calls=(call,))
    return request("look", said, ToolMessage(results=(result,)), "and now?")


ROWS: dict[str, tuple[ModelRequest, Refuses, int, object]] = {
    "the usage of a stream": (
        request("hi"),
        lambda body: "stream_options" in body,
        422,
        {"detail": [{"loc": ["body", "stream_options"], "msg": "Extra inputs not permitted"}]},
    ),
    "tools": (
        request("hi"),
        lambda body: "tools" in body,
        400,
        {"error": {"message": "llama3:latest does not support tools"}},
    ),
    "tools, without a flag": (
        request("hi"),
        lambda body: "tools" in body,
        500,
        {"error": {"message": "tools param requires --jinja flag", "code": 500}},
    ),
    "tools, behind a router": (
        request("hi"),
        lambda body: "tools" in body,
        404,
        {"error": {"message": "No endpoints found that support tool use", "code": 404}},
    ),
    "tool choice": (
        request("hi"),
        lambda body: "tools" in body,
        400,
        {"message": '"auto" tool choice requires --enable-auto-tool-choice to be set'},
    ),
    "pictures": (
        with_picture(),
        has_picture,
        500,
        {"error": {"message": "image input is not supported - hint: you may need the mmproj"}},
    ),
    "pictures, behind a router": (
        with_picture(),
        has_picture,
        404,
        {"error": {"message": "No endpoints found that support image input", "code": 404}},
    ),
    "sampling": (
        replace(request("hi"), generation=Generation(temperature=0.4, top_p=0.5)),
        lambda body: "temperature" in body or "top_p" in body,
        400,
        {"error": {"message": "Unsupported value: 'temperature'", "param": "temperature"}},
    ),
    "effort": (
        replace(request("hi"), generation=Generation(reasoning_effort="low")),
        lambda body: "reasoning_effort" in body,
        400,
        {"error": {"message": "Unrecognized request argument supplied: reasoning_effort"}},
    ),
    "the name of the limit": (
        request("hi"),
        lambda body: "max_completion_tokens" in body,
        422,
        {"detail": "max_completion_tokens: extra fields not permitted"},
    ),
    "a limit that is too high": (
        request("hi"),
        lambda body: body.get("max_completion_tokens", body.get("max_tokens")) > 512,
        400,
        {"error": {"message": "max_tokens is too large. This model supports at most 512 tokens"}},
    ),
    "instructions of their own": (
        request("hi"),
        lambda body: body["messages"][0]["role"] != "user",
        400,
        {"error": {"message": "System role not supported"}},
    ),
    "null": (
        called(),
        any_null,
        400,
        {"error": {"message": "messages[2].content must be a string"}},
    ),
    "streaming": (
        request("hi"),
        lambda body: bool(body.get("stream")),
        400,
        {"error": {"message": "streaming is not supported by this deployment"}},
    ),
}
WHOLE = json.dumps(
    {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": "Hello."},
            }
        ],
    }
)


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
async def test_what_is_refused_is_left_out_once_and_from_then_on(
    row: tuple[ModelRequest, Refuses, int, object],
) -> None:
    asked, refuses, status, error = row

    def answer(body: Body) -> bytes:
        if refuses(body):
            return refusal(status, error)
        return FINE if body.get("stream") else refusal(200, WHOLE)

    async with answering(answer) as server, model_at(server.url, "compatible") as model:
        _, response = await collect(model, asked)
        assert response.text == "Hello."
        assert server.asked == 2, "it is asked once more"
        assert refuses(server.bodies[0])
        await collect(model, asked)
        assert server.asked == 3, "and then as it takes it"


async def test_a_person_can_be_told_of_what_the_model_lacks() -> None:
    def answer(body: Body) -> bytes:
        if has_picture(body):
            return refusal(400, {"error": {"message": "this model has no vision support"}})
        if "tools" in body:
            return refusal(400, {"error": {"message": "does not support tools"}})
        return FINE

    async with answering(answer) as server, model_at(server.url, "compatible") as model:
        _, response = await collect(model, with_picture())
        assert (response.missing, server.asked) == ({"pictures", "tools"}, 3)
        _, response = await collect(model, request("hi", tools=()))
        assert response.missing == frozenset(), "of what was not in it nothing is said"


async def test_calls_and_results_are_words_for_a_model_without_tools() -> None:
    def answer(body: Body) -> bytes:
        if "tools" in body:
            return refusal(400, {"error": {"message": "does not support tools"}})
        return FINE

    async with answering(answer) as server, model_at(server.url, "compatible") as model:
        await collect(model, called())
    last = server.bodies[-1]
    assert {message["role"] for message in last["messages"]} == {"system", "user", "assistant"}
    assert "read_file" in json.dumps(last["messages"])
    assert "of a" in json.dumps(last["messages"])


async def test_a_plainer_form_that_fails_too_says_both() -> None:
    def answer(body: Body) -> bytes:
        if "stream_options" in body:
            return refusal(400, {"error": {"message": "stream_options is unknown"}})
        return refusal(400, {"error": {"message": "the moon is wrong"}})

    async with answering(answer) as server, model_at(server.url, "compatible") as model:
        with pytest.raises(ModelRejected) as caught:
            await collect(model, request("hi"))
        assert server.asked == 2
        for words in ("stream_options is unknown", "in a plainer form", "the moon is wrong"):
            assert words in caught.value.reason
        with pytest.raises(ModelRejected):
            await collect(model, request("hi"))
        assert server.asked == 4, "a form that did not work is not kept"


async def test_what_names_no_form_is_asked_once() -> None:
    wrong = refusal(400, {"error": {"message": "the moon is wrong"}})
    async with answering(wrong) as server, model_at(server.url, "compatible") as model:
        with pytest.raises(ModelRejected):
            await collect(model, request("hi"))
        assert server.asked == 1


async def test_words_alone_are_one_text_and_a_list_stands_only_beside_a_picture() -> None:
    async with answering(FINE) as server, model_at(server.url, "compatible") as model:
        await collect(model, called())
        await collect(model, with_picture())
    words, picture = server.bodies
    assert not [one for one in words["messages"] if isinstance(one["content"], list)]
    assert "It is noon." in words["messages"][-1]["content"]
    (shown,) = [one["content"] for one in picture["messages"] if isinstance(one["content"], list)]
    assert {part["type"] for part in shown} == {"text", "image_url"}


def test_a_form_is_kept_for_a_while_and_then_tried_anew() -> None:
    now = 0.0
    known = KnownForm(lambda: now)
    plain = replace(USUAL, tools=False)
    assert known.keep(plain)
    assert not known.keep(plain)
    now = KEPT_S - 1
    assert known.current == plain
    now = KEPT_S
    assert known.current == USUAL


@pytest.mark.parametrize(
    ("said", "carried"),
    [
        ("tools are not supported", Carried()),
        ("image input is not supported", Carried(tools=True)),
        ("temperature is not supported", Carried()),
        ("reasoning_content is not permitted", Carried()),
        ("your account is not supported", Carried(tools=True, pictures=True)),
    ],
)
def test_nothing_is_taken_for_the_cause_that_was_not_in_the_request(
    said: str, carried: Carried
) -> None:
    assert plainer(USUAL, 400, said, carried) is None


@pytest.mark.parametrize("status", [401, 402, 403, 429, 503])
def test_what_says_nothing_of_the_form_changes_none(status: int) -> None:
    assert plainer(USUAL, status, "does not support tools", Carried(tools=True)) is None


def test_each_step_is_plainer_than_the_one_before() -> None:
    form: Form | None = USUAL
    seen = []
    every = Carried(*[True] * 6)
    text = "max_tokens max_completion_tokens image tools reasoning temperature unsupported"
    while form is not None:
        assert form not in seen
        seen.append(form)
        form = plainer(form, 400, text, every)
    assert len(seen) > 4
