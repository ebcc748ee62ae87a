"""What is sent to OpenAI's format, and what the sending of it costs."""

import json
from typing import Any

import pytest
from openai import APIConnectionError, APITimeoutError, AsyncOpenAI, omit
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

POOL = "httpcore2/_async/connection_pool.py"
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


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
BROKEN = {
    "nothing": b"",
    "no HTTP": b"Hello.\r\n\r\n",
    "a piece of a head": b"HTTP/1.1 200 OK\r\nContent-",
    "a piece of a body": HEAD + b"5\r\ndata",
    "a body that is no body": HEAD + b"what?\r\n",
    "what is not packed": HEAD.replace(b"\r\n", b"\r\nContent-Encoding: gzip\r\n", 1)
    + b"3\r\nabc\r\n",
    "a way in a circle": b"HTTP/1.1 307 There\r\nLocation: /v1\r\nContent-Length: 0\r\n\r\n",
}


async def fault(client: AsyncOpenAI) -> type[Exception]:
    """What asking raises."""
    with pytest.raises(APIConnectionError) as caught:
        await ask(client)
    return caught.type


@pytest.mark.parametrize("name", [*BROKEN, "nobody", "a wrong scheme"])
async def test_a_broken_answer_is_what_it_is_with_the_usual_client(name: str) -> None:
    async with answering(BROKEN.get(name, b"")) as server:
        url = server.url
        if name == "a wrong scheme":
            url = url.replace("http", "ftp")
        elif name == "nobody":
            async with answering(b"") as gone:
                url = gone.url
        ours = connect("m", ModelSettings(openai_base_url=url, compatible_model="m"), "compatible")
        assert isinstance(ours.model, OpenAIChatModel)
        library = AsyncOpenAI(api_key="sk-test", base_url=url, max_retries=0)
        found = [await fault(client) for client in (library, ours.model.client)]
        await ours.close()
        await library.close()
    assert found == [APIConnectionError, APIConnectionError], "and no timeout"


async def test_a_silent_server_is_a_timeout() -> None:
    async with answering(b"", hold=True) as server:
        settings = ModelSettings(openai_base_url=server.url, timeout_s=0.05)
        ours = connect("m", settings, "compatible")
        assert isinstance(ours.model, OpenAIChatModel)
        assert await fault(ours.model.client) is APITimeoutError
        await ours.close()


async def test_idle_connections_are_not_gone_through() -> None:
    async with ModelServer().running() as server:
        settings = ModelSettings(openai_api_key=SecretStr("sk-test"), openai_base_url=server.url)
        ours = connect("scripted", settings, "openai")
        assert isinstance(ours.model, OpenAIChatModel)
        library = AsyncOpenAI(api_key="sk-test", base_url=server.url, max_retries=0)
        passes = []
        for client in (library, ours.model.client):
            with counted(POOL) as called:
                await ask(client)
            passes.append(called.count("_assign_requests_to_connections"))
        await ours.close()
        await library.close()
    assert passes[0], f"{POOL} is not the usual client's any more"
    assert passes[1] == 0


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
