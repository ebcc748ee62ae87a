"""What a response cost, from the price list that is installed; nothing is downloaded."""

from types import SimpleNamespace
from typing import Final

from adapters.models.names import Provider, split
from runtime.domain.errors import InvalidInput
from runtime.domain.runs import Usage

_FREE: Final = frozenset({"ollama", "offline"})
"""What runs on the own machine costs nothing."""
_PRICED: Final = frozenset({"openai", "anthropic", "google"})
"""Providers that the list knows by the same names."""


def cost_usd(usage: object, *, provider: Provider, model: str) -> float | None:
    """US dollars, or None where the price is unknown. The list reads what `usage` has of
    ``input_tokens``, ``output_tokens``, ``cache_read_tokens`` and ``cache_write_tokens``."""
    if provider in _FREE:
        return 0.0
    if provider not in _PRICED:
        return None
    try:
        # Its price list is two megabytes of Python, wanted only where money is counted.
        from genai_prices import calc_price

        return float(calc_price(usage, model_ref=model, provider_id=provider).total_price)
    except (ImportError, LookupError):
        return None


def price_of(model: str, usage: Usage) -> float | None:
    """US dollars of `usage` of a configured model, or None where the price is unknown (MSG-20)."""
    try:
        provider, name = split(model)
    except InvalidInput:
        return None
    counted = SimpleNamespace(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cached_tokens,
    )
    return cost_usd(counted, provider=provider, model=name)
