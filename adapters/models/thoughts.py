"""What a provider wants back with a message of its model: thoughts, signatures, encrypted items
(MDL-3). Pure.

It is kept beside the message as JSON text of ours, as it came, and given to the model that made it
at the address that it came from; to no other one, for that would refuse or misuse it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic_ai.messages import (
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
)

from runtime.domain.transcript import AssistantMessage

FIELDS: Final = ("reasoning_details", "thinking_blocks", "extra_content")
"""Fields of a message in OpenAI's format that the library does not know, and servers want back."""
KEPT: Final = "gatehouse_kept"
"""Name of those fields in the details of the library's response."""
MAX_CHARACTERS: Final = 400_000


@dataclass(frozen=True, slots=True)
class Origin:
    """Who made thoughts: the model by its full name, asked at an address (host and port)."""

    model: str
    host: str


@dataclass(frozen=True, slots=True)
class GivenBack:
    """A message's parts with what belongs to them; `provider` and `details` are the response's."""

    parts: Sequence[ModelResponsePart]
    provider: str | None
    details: dict[str, object] | None


def kept_thoughts(response: ModelResponse, origin: Origin) -> str:
    """What of a response must be given back, as text to keep; empty where nothing must."""
    parts: list[dict[str, object]] = []
    calls = 0
    for part in response.parts:
        if isinstance(part, ThinkingPart):
            parts.append(_fields(part, "id", "content", "signature") | {"kind": "thinking"})
        elif isinstance(part, ToolCallPart):
            parts.append(_fields(part) | {"kind": "call", "number": calls})
            calls += 1
        elif isinstance(part, TextPart):
            parts.append(_fields(part) | {"kind": "text"})
    fields = (response.provider_details or {}).get(KEPT)
    if not fields and not any(part["kind"] == "thinking" or "details" in part for part in parts):
        return ""
    kept = {"host": origin.host, "provider": response.provider_name, "parts": parts}
    if fields:
        kept["fields"] = fields
    try:
        text = json.dumps(kept, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError):
        return ""
    return text if len(text) <= MAX_CHARACTERS else ""


def given_back(
    message: AssistantMessage, said: Sequence[ModelResponsePart], origin: Origin
) -> GivenBack | None:
    """The parts of a message that was `said`, with what `origin` gave along with them; None where
    that is nothing, or was another's."""
    if not message.thoughts or message.model != origin.model:
        return None
    try:
        kept = json.loads(message.thoughts)
    except ValueError:
        return None
    if not isinstance(kept, dict) or kept.get("host") != origin.host:
        return None
    texts = [part for part in said if isinstance(part, TextPart)]
    calls = [part for part in said if isinstance(part, ToolCallPart)]
    parts: list[ModelResponsePart] = []
    for one in kept.get("parts", ()):
        match one.get("kind"):
            case "thinking":
                parts.append(_thinking(one))
            case "text" if texts:
                parts.append(_with_details(texts.pop(0), one))
            case "call" if one.get("number", 0) < len(calls):
                parts.append(_with_details(calls[one["number"]], one))
    held = {id(part) for part in parts}
    parts += [part for part in said if id(part) not in held and part not in parts]
    fields = kept.get("fields")
    return GivenBack(parts, kept.get("provider"), {KEPT: fields} if fields else None)


def kept_fields(delta: Mapping[str, object], into: dict[str, object]) -> None:
    """Add what a piece of a stream holds of `FIELDS`; lists go on, others are replaced."""
    for name in FIELDS:
        value = delta.get(name)
        if isinstance(value, list):
            before = into.get(name)
            into[name] = _merged([*(before if isinstance(before, list) else ()), *value])
        elif value:
            into[name] = value


def _merged(details: list[object]) -> list[object]:
    """Details of which a stream brings each in pieces, every one whole."""
    merged: list[object] = []
    for one in details:
        last = merged[-1] if merged else None
        if isinstance(one, dict) and isinstance(last, dict) and _goes_on(last, one):
            texts = {
                name: f"{last.get(name) or ''}{one[name]}"
                for name in ("text", "summary", "thinking")
                if isinstance(one.get(name), str)
            }
            known = {name: value for name, value in one.items() if value is not None}
            merged[-1] = {**last, **known, **texts}
        else:
            merged.append(one)
    return merged


def _goes_on(last: dict[str, object], one: dict[str, object]) -> bool:
    """Whether a detail is the next piece of the one before it."""
    if one.get("data") or one.get("type") != last.get("type") or last.get("signature"):
        return False
    return one.get("index") == last.get("index") and one.get("id") in (None, last.get("id"))


def _fields(part: ThinkingPart | TextPart | ToolCallPart, *names: str) -> dict[str, object]:
    found = {name: value for name in names if (value := getattr(part, name)) is not None}
    if part.provider_details:
        found["details"] = part.provider_details
    if part.provider_name:
        found["by"] = part.provider_name
    return found


def _thinking(one: Mapping[str, object]) -> ThinkingPart:
    part = ThinkingPart(str(one.get("content") or ""))
    for name, key in (("id", "id"), ("signature", "signature"), ("provider_name", "by")):
        value = one.get(key)
        if isinstance(value, str):
            setattr(part, name, value)
    details = one.get("details")
    part.provider_details = details if isinstance(details, dict) else None
    return part


def _with_details(
    part: TextPart | ToolCallPart, one: Mapping[str, object]
) -> TextPart | ToolCallPart:
    details, by = one.get("details"), one.get("by")
    if isinstance(details, dict) and isinstance(by, str):
        part.provider_details, part.provider_name = details, by
    return part
