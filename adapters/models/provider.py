"""One request to one provider's model, streamed.

No agent loop, no retry, no choice: a request goes out, text comes in, one response ends it. A
stream that breaks is an error of the request, however much text had come.
"""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Final

from pydantic import ValidationError
from pydantic_ai.direct import model_request_stream
from pydantic_ai.exceptions import AgentRunError, UserError
from pydantic_ai.messages import ModelResponse as ProviderResponse
from pydantic_ai.messages import (
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
)
from pydantic_ai.models import StreamedResponse
from pydantic_ai.settings import ModelSettings as RequestSettings
from pydantic_ai.usage import RequestUsage

from adapters.models.clients.client import Client
from adapters.models.faults import classify, host_of
from adapters.models.media_support import taken_by
from adapters.models.names import split
from adapters.models.once import Once
from adapters.models.price_list import cost_usd
from adapters.models.settings import ModelSettings
from adapters.models.translation import to_calls, to_messages, to_parameters
from runtime.domain.errors import ModelRetry
from runtime.domain.routes import Generation
from runtime.domain.runs import Usage
from runtime.domain.tools import ToolCall
from runtime.domain.transcript import CHARACTERS_PER_TOKEN, estimate_tokens, message_tokens
from runtime.ports.model import ModelRequest, ModelResponse, TextChunk

MAX_CHARACTERS: Final = 2_000_000
CHARACTERS_PER_OUTPUT_TOKEN: Final = 16

# What a provider's library raises when a provider, or the way to it, fails: its own errors, broken
# JSON, and the transport's (httpx derives its network errors from none of ours, so the library
# wraps them; what the operating system says may come through bare).
_FAILURES: Final = (AgentRunError, UserError, ValidationError, OSError, ValueError)


def connect(name: str, settings: ModelSettings) -> "ProviderModel":
    """The model with its connections. Raises `ImportError` when its library is missing."""
    return ProviderModel(name, client=_client(name, settings), secrets=settings.secrets)


def _client(name: str, settings: ModelSettings) -> Client:
    provider, own = split(name)
    match provider:
        case "anthropic":
            # Lazy: each provider's library takes tens of megabytes, and one is asked.
            from adapters.models.clients import anthropic

            return anthropic.connect(own, settings)
        case "google":
            # Lazy for the same reason.
            from adapters.models.clients import google

            return google.connect(own, settings)
        case "openai" | "compatible" | "ollama":
            # Lazy for the same reason.
            from adapters.models.clients import openai

            return openai.connect(own, settings, provider)
        case _:
            raise ValueError(f"{name} needs no client")


class ProviderModel:
    """A model of a provider; see `runtime.ports.model.Model`."""

    def __init__(self, name: str, *, client: Client, secrets: tuple[str, ...] = ()) -> None:
        self._name = name
        self._client = client
        self._secrets = secrets
        self._parameters = Once(to_parameters)

    async def respond(
        self, request: ModelRequest
    ) -> AsyncGenerator[TextChunk | ModelResponse, None]:
        """Stream one response. Raises `ModelRetry` or `ModelRejected`.

        Text and arguments are read up to 16 characters for each token that was asked for, and two
        million at most; a response that is longer ends there with ``finish_reason`` "length".
        """
        reading = _Reading(_limit(request))
        opening = self._open(request)
        try:
            async with opening as stream:
                try:
                    async for event in stream:
                        yield TextChunk(reading.take(event))
                        if reading.full:
                            break
                finally:
                    await stream.cancel()
                whole = stream.get()
        except _FAILURES as error:
            # The provider's text may repeat a key, so it does not travel on as a cause.
            host = host_of(self._client.model.base_url)
            raise classify(error, model=self._name, host=host, secrets=self._secrets) from None
        yield self._response(request, reading, whole)

    def unfit(self, generation: Generation) -> Mapping[str, str]:
        """As `runtime.ports.model.Model.unfit`."""
        return self._client.unfit(generation)

    async def close(self) -> None:
        """Give the connections back."""
        await self._client.close()

    def _open(self, request: ModelRequest) -> AbstractAsyncContextManager[StreamedResponse]:
        settings = RequestSettings(max_tokens=request.max_output_tokens, cache=True)
        settings.update(self._client.request)
        settings.update(self._client.settings(request.generation))
        return model_request_stream(
            self._client.model,
            to_messages(request, takes=taken_by(split(self._name)[0])),
            model_settings=settings,
            model_request_parameters=self._parameters(request.tools),
        )

    def _response(
        self, request: ModelRequest, reading: "_Reading", whole: ProviderResponse
    ) -> ModelResponse:
        calls: tuple[ToolCall, ...] = ()
        reason = "length"
        if not reading.full:
            if not _ended(whole):
                raise ModelRetry(f"{self._name}: the stream ended without saying that it was over")
            calls = to_calls(whole.parts, run_id=request.run_id, step=request.step)
            reason = whole.finish_reason or ("tool_call" if calls else "stop")
        return ModelResponse(
            text=reading.text,
            tool_calls=calls,
            usage=self._usage(request, reading, whole.usage),
            model=self._name,
            finish_reason=reason,
        )

    def _usage(self, request: ModelRequest, reading: "_Reading", said: RequestUsage) -> Usage:
        """What the provider counted; an estimate where it counted nothing (CTX-12's measure)."""
        if not said.output_tokens:
            said = RequestUsage(
                input_tokens=said.input_tokens or _input_tokens(request),
                output_tokens=-(-reading.length // CHARACTERS_PER_TOKEN),
                cache_read_tokens=said.cache_read_tokens,
                cache_write_tokens=said.cache_write_tokens,
            )
        provider, own = split(self._name)
        return Usage(
            input_tokens=said.input_tokens,
            output_tokens=said.output_tokens,
            cached_tokens=said.cache_read_tokens,
            cost_usd=cost_usd(said, provider=provider, model=own),
        )


class _Reading:
    """The text of a response as it comes, up to a limit in characters; arguments count too."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pieces: list[str] = []
        self.length = 0

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    @property
    def full(self) -> bool:
        return self.length >= self._limit

    def take(self, event: ModelResponseStreamEvent) -> str:
        """The event's text, as far as it fits."""
        text = ""
        match event:
            case PartStartEvent(part=TextPart(content=content)):
                text = content
            case PartDeltaEvent(delta=TextPartDelta(content_delta=content)):
                text = content
            case PartStartEvent(part=ToolCallPart(args=str(arguments))):
                self.length += len(arguments)
            case PartDeltaEvent(delta=ToolCallPartDelta(args_delta=str(arguments))):
                self.length += len(arguments)
            case _:
                return ""
        text = text[: max(0, self._limit - self.length)]
        self.length += len(text)
        if text:
            self._pieces.append(text)
        return text


def _limit(request: ModelRequest) -> int:
    return min(request.max_output_tokens * CHARACTERS_PER_OUTPUT_TOKEN, MAX_CHARACTERS)


def _ended(whole: ProviderResponse) -> bool:
    """Whether the provider itself said why it stopped; a refusal is such a word.

    The library fills in "stop" for a stream that breaks off between two events; the provider's
    own word stands apart.
    """
    said = bool((whole.provider_details or {}).get("finish_reason"))
    return said or whole.finish_reason == "content_filter"


def _input_tokens(request: ModelRequest) -> int:
    tools = sum(
        estimate_tokens(tool.name + tool.description + json.dumps(tool.parameters))
        for tool in request.tools
    )
    said = sum(message_tokens(message) for message in request.messages)
    said += request.enclosed_tokens
    return estimate_tokens(request.system) + estimate_tokens(request.present) + said + tools
