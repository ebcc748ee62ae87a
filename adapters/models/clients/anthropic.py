"""Clients for Anthropic's format."""

from collections.abc import Mapping
from functools import partial
from typing import Final, Literal

from anthropic import AsyncAnthropic, Timeout
from pydantic_ai.models.anthropic import AnthropicModel, AnthropicModelSettings
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.settings import ModelSettings as RequestSettings

from adapters.models.clients.client import CONNECT_TIMEOUT_S, Client, PreparedTools, key_text
from adapters.models.names import ANTHROPIC_URL
from adapters.models.settings import ModelSettings
from runtime.domain.routes import Effort, Generation

_EFFORTS: Final[dict[Effort, Literal["low", "medium", "high"]]] = {
    "low": "low",
    "medium": "medium",
    "high": "high",
}
"""Anthropic knows no smaller one than low."""


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
    model = _Model(own, provider=AnthropicProvider(anthropic_client=client))
    return Client(model, client.close, partial(_unfit, model), _effort)


def _effort(effort: Effort) -> RequestSettings:
    return AnthropicModelSettings(anthropic_effort=_EFFORTS[effort])


def _unfit(model: _Model, generation: Generation) -> Mapping[str, str]:
    """What Anthropic refuses: the newer models all sampling, and every model more than 1 or both
    kinds at once (https://docs.claude.com/en/api/messages)."""
    profile, found = model.profile, dict[str, str]()
    if profile.get("anthropic_disallows_sampling_settings", False):
        rule = f"cannot be set for {model.model_name}; leave it out"
        found = {name: rule for name in ("temperature", "top_p") if name in generation.given}
    elif generation.temperature is not None and generation.temperature > 1:
        found["temperature"] = "must be at most 1 for models of Anthropic"
    elif {"temperature", "top_p"} <= set(generation.given):
        found["top_p"] = "cannot be set together with temperature for models of Anthropic"
    effort = generation.reasoning_effort
    if effort is None:
        return found
    if not profile.get("anthropic_supports_effort", False):
        found["reasoning_effort"] = f"cannot be set for {model.model_name}; leave it out"
    elif effort not in _EFFORTS:
        found["reasoning_effort"] = "must be low, medium or high for models of Anthropic"
    return found
