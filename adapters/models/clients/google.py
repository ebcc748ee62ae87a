"""Clients for Gemini's format."""

from google.genai.types import HttpRetryOptions
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.settings import ModelSettings as RequestSettings

from adapters.models.clients.client import Client, key_text
from adapters.models.clients.tools import PreparedTools
from adapters.models.names import GOOGLE_URL
from adapters.models.settings import ModelSettings


class _Model(PreparedTools, GoogleModel):
    """A model of Gemini's."""


def connect(own: str, settings: ModelSettings) -> Client:
    """A client for the Gemini API."""
    via = GoogleProvider(
        api_key=key_text(settings.gemini_api_key),
        base_url=settings.gemini_base_url or GOOGLE_URL,
        retry_options=HttpRetryOptions(attempts=1),
    )

    async def close() -> None:
        # The provider gives back its connections when its last user leaves.
        async with via:
            via.client.close()

    # This library takes the timeout with each request and keeps its own for connecting.
    return Client(_Model(own, provider=via), close, RequestSettings(timeout=settings.timeout_s))
