"""What a call to a configured model costs, by its name and its tokens."""

from adapters.models.names import split
from runtime.domain.errors import InvalidInput
from runtime.domain.runs import Usage


def price_of(model: str, usage: Usage) -> float | None:
    """US dollars of `usage`, or None where the price is unknown (MSG-20)."""
    try:
        provider, name = split(model)
    except InvalidInput:
        return None
    if provider == "offline":
        return 0.0
    # Lazy: the price list comes with the providers' library, which only money limits need here.
    from adapters.models.price_list import tokens_cost_usd

    return tokens_cost_usd(usage, provider=provider, model=name)
