"""Clients for Gemini's format."""

from collections.abc import Mapping
from functools import partial
from typing import get_args

from google.genai.types import HttpRetryOptions
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.settings import ModelSettings as RequestSettings

from adapters.models.clients.client import Client, PreparedTools, key_text, one_of
from adapters.models.names import GOOGLE_URL
from adapters.models.settings import ModelSettings
from runtime.domain.routes import Effort, Generation


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

    model = _Model(own, provider=via)
    # This library takes the timeout with each request and keeps its own for connecting.
    timeout = RequestSettings(timeout=settings.timeout_s)
    return Client(model, close, partial(_unfit, model), _effort, timeout)


def _effort(effort: Effort) -> RequestSettings:
    return RequestSettings(thinking=effort)


def _unfit(model: _Model, generation: Generation) -> Mapping[str, str]:
    """What Gemini refuses: an effort of a model that does not think, or that has no such level."""
    effort, profile = generation.reasoning_effort, model.profile
    if effort is None:
        return {}
    if not profile.get("supports_thinking", False):
        return {"reasoning_effort": f"cannot be set for {model.model_name}; leave it out"}
    levels = profile.get("google_thinking_levels")
    if levels is not None and effort.upper() not in levels:
        known = one_of([one for one in get_args(Effort) if one.upper() in levels])
        return {"reasoning_effort": f"must be {known} for {model.model_name}"}
    return {}
