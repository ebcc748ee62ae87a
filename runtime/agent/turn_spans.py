"""What a turn, a call of a model and a call of a tool say of themselves to a tracer. Pure.

Names are those of OpenTelemetry's conventions for generative AI. Ids, counts and names of tools and
models are facts; what anybody said is content, which is only put together where it is wanted.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Final

from runtime.domain.tools import ToolResult
from runtime.domain.transcript import (
    AssistantMessage,
    NoticeMessage,
    ToolMessage,
    TranscriptMessage,
    UserMessage,
)
from runtime.domain.value import JsonObject
from runtime.ports import tracing
from runtime.ports.model import ModelRequest, ModelResponse
from runtime.ports.tracing import Span, Value
from runtime.sessions.calls import CallRow
from runtime.sessions.runs import Run

_PROVIDERS: Final = {"google": "gcp.gemini", "gemini": "gcp.gemini"}
"""Where a provider's name here is not the one of the conventions."""


def turn_facts(run: Run) -> Mapping[str, Value]:
    """Of a turn, as it begins."""
    return {
        tracing.RUN: run.id,
        tracing.CONVERSATION: run.session_id,
        tracing.AGENT: "main",
        tracing.ATTEMPT: run.attempt,
        tracing.STEP: run.step,
    }


def chat_facts(name: str, request: ModelRequest) -> Mapping[str, Value]:
    """Of a call of the model `name` (``provider:model``)."""
    provider, _, model = name.partition(":")
    return {
        tracing.RUN: request.run_id,
        tracing.STEP: request.step,
        tracing.PROVIDER: _PROVIDERS.get(provider, provider),
        tracing.REQUEST_MODEL: model or name,
        tracing.MAX_TOKENS: request.max_output_tokens,
    }


def tool_facts(row: CallRow, name: str) -> Mapping[str, Value]:
    """Of a call of the tool `name`: a model may write any name, so it is the registry's."""
    return {
        tracing.RUN: row.run_id,
        tracing.STEP: row.step,
        tracing.TOOL: name,
        tracing.TOOL_CALL: row.call.id,
    }


def ask(span: Span, request: ModelRequest) -> None:
    """What a model is asked, as content."""
    span.content(tracing.SYSTEM, lambda: request.system)
    span.content(tracing.INPUT, lambda: _json([_message(one) for one in request.messages]))


def answer(span: Span, response: ModelResponse) -> None:
    """What a model answered: its cost as facts, its words as content."""
    usage = response.usage
    span.note(tracing.RESPONSE_MODEL, response.model.partition(":")[2] or response.model)
    span.note(tracing.INPUT_TOKENS, usage.input_tokens)
    span.note(tracing.OUTPUT_TOKENS, usage.output_tokens)
    span.note(tracing.CACHED_TOKENS, usage.cached_tokens)
    if usage.cost_usd is not None:
        span.note(tracing.COST, usage.cost_usd)
    if response.finish_reason:
        span.note(tracing.FINISH_REASON, response.finish_reason)
    said = AssistantMessage(text=response.text, tool_calls=response.tool_calls)
    span.content(tracing.OUTPUT, lambda: _json([_message(said)]))


def executed(span: Span, row: CallRow, result: ToolResult) -> None:
    """How a call of a tool ended."""
    span.note(tracing.OUTCOME, result.status)
    span.content(tracing.ARGUMENTS, lambda: row.call.arguments)
    span.content(tracing.RESULT, lambda: result.content)
    if result.status not in ("ok", "denied"):
        span.failed(result.status)


def _message(message: TranscriptMessage) -> JsonObject:
    role = "system" if isinstance(message, NoticeMessage) else message.role
    parts: list[JsonObject] = []
    if isinstance(message, ToolMessage):
        parts = [
            {"type": "tool_call_response", "id": one.call_id, "response": one.content}
            for one in message.results
        ]
    elif message.text:
        parts = [{"type": "text", "content": message.text}]
    if isinstance(message, AssistantMessage):
        parts += [
            {"type": "tool_call", "id": one.id, "name": one.name, "arguments": one.arguments}
            for one in message.tool_calls
        ]
    found: JsonObject = {"role": role, "parts": list(parts)}
    if isinstance(message, UserMessage) and message.name:
        found["name"] = message.name
    return found


def _json(messages: Sequence[JsonObject]) -> str:
    return json.dumps(messages, ensure_ascii=False)
