"""Clients for OpenAI's format: OpenAI itself, compatible servers, Ollama."""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from openai import AsyncOpenAI, Timeout
from openai.resources.chat import AsyncChat, AsyncCompletions
from openai.types.chat import ChatCompletionMessageParam
from pydantic_ai.models.ollama import OllamaModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers import Provider
from pydantic_ai.providers.ollama import OllamaProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

from adapters.models.clients.client import CONNECT_TIMEOUT_S, NO_KEY, Client, key_text
from adapters.models.clients.tools import PreparedTools
from adapters.models.names import OPENAI_URL
from adapters.models.settings import ModelSettings


class _Completions(AsyncCompletions):
    """Sends the messages as they are.

    The SDK walks through every field of every message, once for each kind that it could be, and
    changes none: 84 ms of the event loop for 200 messages. What is in `extra_body` it leaves alone.
    """

    async def create(
        self,
        *,
        messages: Iterable[ChatCompletionMessageParam],
        extra_body: object = None,
        **others: Any,
    ) -> Any:
        more = extra_body if isinstance(extra_body, Mapping) else {}
        return await super().create(
            messages=(), extra_body={"messages": list(messages), **more}, **others
        )


class _Chat(AsyncChat):
    @cached_property
    def completions(self) -> _Completions:
        return _Completions(self._client)


class _Client(AsyncOpenAI):
    @cached_property
    def chat(self) -> _Chat:
        return _Chat(self)


class _Model(PreparedTools, OpenAIChatModel):
    """A model of OpenAI's or of a server that speaks its format."""


class _OllamaModel(PreparedTools, OllamaModel):
    """A model of Ollama's."""


def connect(own: str, settings: ModelSettings, provider: str) -> Client:
    """A client for OpenAI itself, a server that speaks its format, or Ollama's."""
    local = provider == "ollama"
    base = f"{(settings.ollama_url or '').rstrip('/')}/v1" if local else settings.openai_base_url
    client = _Client(
        api_key=NO_KEY if local else key_text(settings.openai_api_key),
        base_url=base or OPENAI_URL,
        max_retries=0,
        timeout=Timeout(settings.timeout_s, connect=CONNECT_TIMEOUT_S),
    )
    if local:
        return Client(
            _OllamaModel(own, provider=OllamaProvider(openai_client=client)), client.close
        )
    via: Provider[AsyncOpenAI] = OpenAIProvider(openai_client=client)
    if provider == "compatible":
        via = OpenAICompatibleProvider("compatible", openai_client=client)
    return Client(_Model(own, provider=via), client.close)
