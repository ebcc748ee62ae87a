"""Requests and tools for the tests of models."""

from collections.abc import Sequence
from contextlib import aclosing

from runtime.domain.tools import ToolSpec
from runtime.domain.transcript import TranscriptMessage, UserMessage
from runtime.domain.value import JsonObject
from runtime.ports.model import Model, ModelRequest, ModelResponse, TextChunk


def tool(name: str, *arguments: str) -> ToolSpec:
    """A tool whose arguments are all strings; it takes no others."""
    properties: JsonObject = {argument: {"type": "string"} for argument in arguments}
    parameters: JsonObject = {"type": "object", "properties": properties}
    return ToolSpec(name=name, description=name, parameters=parameters)


READ_FILE = tool("read_file", "path")
LIST_DIR = tool("list_dir", "path")


def request(
    *said: str | TranscriptMessage,
    tools: Sequence[ToolSpec] = (READ_FILE, LIST_DIR),
    max_output_tokens: int = 1_000,
    system: str = "You are a test.",
    present: str = "It is noon.",
    step: int = 0,
) -> ModelRequest:
    """A request whose strings are what the person said."""
    return ModelRequest(
        system=system,
        messages=tuple(UserMessage(text=one) if isinstance(one, str) else one for one in said),
        present=present,
        tools=tuple(tools),
        max_output_tokens=max_output_tokens,
        run_id="run_test",
        step=step,
    )


async def collect(model: Model, asked: ModelRequest) -> tuple[list[str], ModelResponse]:
    """The text in chunks and the response, which must be the stream's last item and its only
    response."""
    chunks: list[str] = []
    responses: list[ModelResponse] = []
    async with aclosing(model.respond(asked)) as stream:  # type: ignore[type-var]  # a generator
        async for item in stream:
            assert not responses, "something came after the response"
            if isinstance(item, TextChunk):
                chunks += [item.text] if item.text else []
            else:
                responses.append(item)
    assert len(responses) == 1
    return chunks, responses[0]
