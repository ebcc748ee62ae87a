"""What a response cost, from the price list that is installed; nothing is downloaded."""

from decimal import Decimal
from typing import Final

from pydantic_ai.usage import RequestUsage

from adapters.models.names import Provider
from runtime.domain.runs import Usage

_PRICED: Final[dict[Provider, str]] = {
    "openai": "openai",
    "anthropic": "anthropic",
    "google": "google",
}


def cost_usd(usage: RequestUsage, *, provider: Provider, model: str) -> float | None:
    """US dollars, or None where the price is unknown. A model on the own machine costs nothing."""
    if provider == "ollama":
        return 0.0
    if provider not in _PRICED:
        return None
    try:
        # Its price list is two megabytes of Python, wanted only where a response has come.
        from genai_prices import calc_price

        price: Decimal = calc_price(
            usage, model_ref=model, provider_id=_PRICED[provider]
        ).total_price
    except (ImportError, LookupError):
        return None
    return float(price)


def tokens_cost_usd(usage: Usage, *, provider: Provider, model: str) -> float | None:
    """As `cost_usd`, of tokens that are not a provider's answer yet."""
    asked = RequestUsage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cached_tokens,
    )
    return cost_usd(asked, provider=provider, model=model)
