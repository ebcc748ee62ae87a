"""Prices by a model's configured name."""

from adapters.models.price_list import price_of
from runtime.domain.runs import Usage


def test_a_known_model_has_a_price_that_grows_with_its_tokens() -> None:
    small = price_of("openai:gpt-4o", Usage(input_tokens=1_000, output_tokens=100))
    large = price_of("openai:gpt-4o", Usage(input_tokens=2_000, output_tokens=200))
    assert small is not None
    assert large is not None
    assert 0 < small < large


def test_a_model_on_this_machine_is_free_and_an_unknown_one_has_no_price() -> None:
    usage = Usage(input_tokens=1_000)
    assert price_of("ollama:anything", usage) == 0.0
    assert price_of("offline:offline", usage) == 0.0
    assert price_of("openai:no-such-model-of-anybody", usage) is None
    assert price_of("scripted:model", usage) is None
