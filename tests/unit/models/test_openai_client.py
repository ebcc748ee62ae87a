"""What is sent to OpenAI's format, and what the sending of it costs."""

import json
from typing import Any

import pytest
from openai import AsyncOpenAI, omit
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam
from pydantic import SecretStr
from pydantic_ai.models.openai import OpenAIChatModel

from adapters.models.clients.openai import connect
from adapters.models.provider import ProviderModel
from adapters.models.settings import ModelSettings
from runtime.domain.errors import ModelRetry
from tests.unit.models.counting import counted
from tests.unit.models.raw import SSE, answering
from tests.unit.models.samples import request
from tests.wire.openai import ModelServer

FIELDS = "openai/_models.py"
WALK = "openai/_utils/_transform.py"
MESSAGES: list[ChatCompletionMessageParam] = [
    {"role": "user", "content": f"message {number}"} for number in range(200)
]
TOOLS: list[ChatCompletionToolParam] = [
    {"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}
]


async def ask(client: AsyncOpenAI, **fields: Any) -> list[str]:
    """The text of an answer, piece by piece."""
    stream = await client.chat.completions.create(
        model="scripted",
        messages=MESSAGES,
        tools=TOOLS,
        seed=omit,
        max_tokens=7,
        stream=True,
        extra_headers={"x-more": "yes"},
        extra_query={"api-version": "7"},
        extra_body={"top_k": 1},
        **fields,
    )
    return [chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices]


def event(delta: object, **fields: object) -> bytes:
    """An event of a stream with this delta."""
    whole = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    choice = {"index": 0, "delta": delta, "finish_reason": None}
    return f"data: {json.dumps({**whole, 'choices': [choice], **fields})}\n\n".encode()


USUAL = {
    "text": event({"role": "assistant", "content": "Hello"}),
    "a call": event(
        {
            "tool_calls": [
                {
                    "index": 0,
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "read", "arguments": "{"},
                }
            ]
        }
    ),
    "reasoning": event({"reasoning_content": "Hm.", "reasoning_details": [{"text": "Hm."}]}),
    "usage": event({}, usage={"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}),
}
ODD = {
    "no id": event({"content": "Hello"}, id=None),
    "no delta": event(None),
    "no choices": event({}, choices=None),
    "an unknown reason": event(
        {}, choices=[{"index": 0, "delta": {}, "finish_reason": "because", "extra": [1]}]
    ),
    "text in parts": event({"content": [{"type": "text", "text": "Hello"}]}),
    "a call without its kind": event({"tool_calls": [{"index": "first", "function": {}}]}),
}


@pytest.mark.parametrize("name", [*USUAL, *ODD])
async def test_a_piece_is_what_the_library_would_make_of_it(name: str) -> None:
    async with answering(SSE + (USUAL | ODD)[name] + b"data: [DONE]\n\n") as server:
        settings = ModelSettings(openai_base_url=server.url)
        ours = connect("scripted", settings, "compatible")
        assert isinstance(ours.model, OpenAIChatModel)
        library = AsyncOpenAI(api_key="sk-test", base_url=server.url, max_retries=0)
        pieces, made = [], []
        for client in (library, ours.model.client):
            with counted(FIELDS) as called:
                stream = await client.chat.completions.create(
                    model="scripted", messages=MESSAGES, stream=True
                )
                pieces.append([piece.model_dump(warnings=False) async for piece in stream])
            made.append(called.count("construct_type"))
        await ours.close()
        await library.close()

    assert pieces[0] == pieces[1]
    assert len(pieces[1]) == 1
    assert made[0], f"{FIELDS} is not where the library makes a piece any more"
    assert bool(made[1]) == (name in ODD), "only what is odd is made field by field"


async def test_a_piece_that_is_no_object_is_worth_another_try() -> None:
    async with answering(SSE + b"data: [1]\n\ndata: [DONE]\n\n") as server:
        settings = ModelSettings(openai_base_url=server.url, compatible_model="m")
        model = ProviderModel("compatible:m", client=connect("m", settings, "compatible"))
        with pytest.raises(ModelRetry):
            async for _ in model.respond(request("hello")):
                pass
        await model.close()


async def test_the_library_walks_through_nothing_that_it_sends() -> None:
    """The walk changed nothing and held the event loop for longer than all else in a turn."""
    async with ModelServer().running() as server:
        settings = ModelSettings(openai_api_key=SecretStr("sk-test"), openai_base_url=server.url)
        ours = connect("scripted", settings, "openai")
        assert isinstance(ours.model, OpenAIChatModel)
        library = AsyncOpenAI(api_key="sk-test", base_url=server.url, max_retries=0)
        answers, walks = [], []
        for client in (library, ours.model.client):
            with counted(WALK) as called:
                answers.append(await ask(client, timeout=9.0))
            walks.append(len(called))
        await ours.close()
        await library.close()

    assert walks[0] > 1000, f"{WALK} is not where the library walks any more"
    assert walks[1] == 0
    assert answers[0] == answers[1]
    assert server.prompts[0].body == server.prompts[1].body
    headers = [{**prompt.headers, "user-agent": "any"} for prompt in server.prompts]
    assert headers[0] == headers[1]
    assert headers[1]["x-more"] == "yes"
    assert server.prompts[0].query == server.prompts[1].query == "api-version=7"
