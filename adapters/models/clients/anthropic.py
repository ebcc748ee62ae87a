"""Clients for Anthropic's format."""

from anthropic import AsyncAnthropic, Timeout
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.providers.anthropic import AnthropicProvider

from adapters.models.clients.client import CONNECT_TIMEOUT_S, Client, key_text
from adapters.models.clients.tools import PreparedTools
from adapters.models.names import ANTHROPIC_URL
from adapters.models.settings import ModelSettings


class _Model(PreparedTools, AnthropicModel):
    """A model of Anthropic's."""


def connect(own: str, settings: ModelSettings) -> Client:
    """A client for Anthropic's messages."""
    client = AsyncAnthropic(
        api_key=key_text(settings.anthropic_api_key),
        base_url=settings.anthropic_base_url or ANTHROPIC_URL,
        max_retries=0,
        timeout=Timeout(settings.timeout_s, connect=CONNECT_TIMEOUT_S),
    )
    via = AnthropicProvider(anthropic_client=client)
    return Client(_Model(own, provider=via), client.close)
