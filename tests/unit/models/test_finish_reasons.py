"""Every provider's word for why a response ended, by one table (MDL-2)."""

import pytest
from pydantic_ai.messages import ModelResponse

from adapters.models.finish_reasons import ENDED, REFUSED, finish_of, reason_of
from runtime.ports.model import FinishReason


@pytest.mark.requirement("MDL-2")
@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("stop STOP end_turn stop_sequence eos", "stop"),
        ("length max_tokens MAX_TOKENS model_length model_context_window_exceeded", "length"),
        ("tool_calls tool_use function_call tool-calls", "tool_call"),
        ("content_filter SAFETY RECITATION sensitive guardrail_intervened", "content_filter"),
        ("refusal", "refusal"),
        ("error abort insufficient_system_resource MALFORMED_FUNCTION_CALL", "error"),
        ("abgeschlossen null 7 because", "unknown"),
    ],
)
def test_a_word_has_a_kind(words: str, reason: FinishReason) -> None:
    assert {reason_of(word) for word in words.split()} == {reason}


@pytest.mark.requirement("MDL-2")
def test_a_word_that_is_long_or_odd_is_unknown_and_not_shown() -> None:
    for word in ("x" * 1000, "stop" * 250, "<b>", "\n"):
        found = finish_of(ModelResponse([], provider_details={"finish_reason": word}), calls=False)
        assert found is not None
        assert (found.reason, found.word) == ("unknown", "")


@pytest.mark.requirement("MDL-2")
def test_a_refusal_in_words_is_told_from_a_good_end() -> None:
    details = {"finish_reason": "stop", REFUSED: True}
    found = finish_of(ModelResponse([], provider_details=details), calls=False)
    assert found is not None
    assert found.reason == "refusal"


@pytest.mark.requirement("MDL-1")
def test_an_end_without_a_reason_is_a_good_one_and_no_end_is_none() -> None:
    for calls, reason in ((False, "stop"), (True, "tool_call")):
        found = finish_of(ModelResponse([], provider_details={ENDED: True}), calls=calls)
        assert found is not None
        assert found.reason == reason
    assert finish_of(ModelResponse([]), calls=True) is None
