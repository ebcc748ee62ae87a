"""Why a response ended: one table of every provider's words (MDL-2). Pure.

Sources, read on 2026-11-28: OpenAI "Chat completions", Anthropic "Stop reasons", Gemini
"FinishReason", Mistral, Zhipu, DeepSeek, vLLM and OpenRouter API references. A word that stands
nowhere here is `unknown`: it is never taken for a good end.
"""

import re
from dataclasses import dataclass
from typing import Final

from pydantic_ai.messages import ModelResponse

from runtime.ports.model import FinishReason

ENDED: Final = "gatehouse_ended"
REFUSED: Final = "gatehouse_refused"
"""Names in the details of the library's response: `[DONE]` came, and the model refused in words."""

_WORDS: Final[dict[FinishReason, str]] = {
    "stop": "stop end_turn stop_sequence eos eos_token end eos_reached complete completed done "
    "finished finish success normal",
    "length": "length max_tokens max_length max_output_tokens max_completion_tokens model_length "
    "model_context_window_exceeded context_length_exceeded context_window_exceeded token_limit "
    "max_tokens_reached incomplete",
    "tool_call": "tool_calls tool_call tool_use tools function_call function_calls function",
    "content_filter": "content_filter content_filtered content_filtering safety recitation "
    "blocklist prohibited_content spii image_safety language guardrail_intervened guardrails "
    "sensitive moderation blocked content_moderation violation",
    "refusal": "refusal refused",
    "error": "error abort aborted cancelled canceled insufficient_system_resource network_error "
    "timeout server_error internal_error internal_server_error engine_overloaded overloaded "
    "malformed_function_call unexpected_tool_call too_many_tool_calls malformed_response "
    "other no_image pause_turn error_toxic error_limit failed failure unknown_error",
}
_REASONS: Final[dict[str, FinishReason]] = {
    word: reason for reason, words in _WORDS.items() for word in words.split()
}
_SHOWN: Final = re.compile(r"[A-Za-z][\w. -]{0,39}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Finish:
    """Why a response ended, and the provider's own word for it where it is short and plain."""

    reason: FinishReason
    word: str = ""


def finish_of(whole: ModelResponse, *, calls: bool) -> Finish | None:
    """How the provider said that its response ended, None where it did not say that it had.

    The library fills in a reason where none was given, so the provider's own word counts. `[DONE]`
    without one is a good end: all was sent.
    """
    details = whole.provider_details or {}
    refused = bool(details.get(REFUSED))
    word = str(details.get("finish_reason") or "")
    if not word and whole.finish_reason == "content_filter":
        word = "content_filter"
    if not word and not details.get(ENDED):
        return None
    reason = reason_of(word) if word else "stop"
    if refused and reason in ("stop", "content_filter"):
        reason = "refusal"
    elif calls and reason == "stop":
        reason = "tool_call"
    return Finish(reason, word if _SHOWN.fullmatch(word) else "")


def reason_of(word: str) -> FinishReason:
    """What a provider's word stands for, however it is written."""
    return _REASONS.get(re.sub(r"[^a-z0-9]+", "_", word[:80].lower()).strip("_"), "unknown")
