"""Clients for OpenAI's format: OpenAI itself, compatible servers, Ollama."""

from typing import Final

from openai import AsyncOpenAI, Timeout
from pydantic_ai.models.ollama import OllamaModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers import Provider
from pydantic_ai.providers.ollama import OllamaProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

from adapters.models.clients.client import CONNECT_TIMEOUT_S, NO_KEY, Client, key_text
from adapters.models.settings import ModelSettings

OPENAI_URL: Final = "https://api.openai.com/v1"


def connect(own: str, settings: ModelSettings, provider: str) -> Client:
    """A client for OpenAI itself, a server that speaks its format, or Ollama's."""
    local = provider == "ollama"
    base = f"{(settings.ollama_url or '').rstrip('/')}/v1" if local else settings.openai_base_url
    client = AsyncOpenAI(
        api_key=NO_KEY if local else key_text(settings.openai_api_key),
        base_url=base or OPENAI_URL,
        max_retries=0,
        timeout=Timeout(settings.timeout_s, connect=CONNECT_TIMEOUT_S),
    )
    if local:
        return Client(OllamaModel(own, provider=OllamaProvider(openai_client=client)), client.close)
    via: Provider[AsyncOpenAI] = OpenAIProvider(openai_client=client)
    if provider == "compatible":
        via = OpenAICompatibleProvider("compatible", openai_client=client)
    return Client(OpenAIChatModel(own, provider=via), client.close)
