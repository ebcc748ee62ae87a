"""What is sent to OpenAI's format, and what the sending of it costs."""

from openai.types.chat import ChatCompletionMessageParam
from pydantic import SecretStr
from pydantic_ai.models.openai import OpenAIChatModel

from adapters.models.clients.openai import connect
from adapters.models.settings import ModelSettings
from tests.unit.models.counting import counted
from tests.wire.openai import ModelServer

WALK = "openai/_utils/_transform.py"


async def test_the_library_does_not_walk_through_the_messages_that_it_sends() -> None:
    """The walk changed nothing and held the event loop for longer than all else in a turn."""
    said: list[ChatCompletionMessageParam] = [
        {"role": "user", "content": f"message {number}"} for number in range(200)
    ]
    walks = []
    async with ModelServer().running() as server:
        settings = ModelSettings(openai_api_key=SecretStr("sk-test"), openai_base_url=server.url)
        client = connect("scripted", settings, "openai")
        assert isinstance(client.model, OpenAIChatModel)
        completions = client.model.client.chat.completions
        # The first request fills the library's caches.
        for messages in (said[:1], said[:1], said):
            with counted(WALK) as found:
                stream = await completions.create(
                    model="scripted", messages=messages, stream=True, extra_body={"top_k": 1}
                )
            await stream.close()
            walks.append(found)
        await client.close()
    assert [prompt.body["messages"] for prompt in server.prompts] == [said[:1], said[:1], said]
    assert [prompt.body["top_k"] for prompt in server.prompts] == [1, 1, 1]
    assert walks[1], f"{WALK} is not where the library walks any more"
    assert len(walks[2]) == len(walks[1])
