"""What is sent to OpenAI's format, and what the sending of it costs."""

from typing import Any

from openai import AsyncOpenAI, omit
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam
from pydantic import SecretStr
from pydantic_ai.models.openai import OpenAIChatModel

from adapters.models.clients.openai import connect
from adapters.models.settings import ModelSettings
from tests.unit.models.counting import counted
from tests.wire.openai import ModelServer

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
