"""The model that needs no provider: it follows plain sentences and says so (OPS-4).

Deterministic: the same request gives the same response, ids included. It has no network, no clock
and no memory of its own; everything that it knows stands in the request.
"""

import json
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from adapters.models import names, offline_answers, offline_batches
from adapters.models.call_ids import call_id
from adapters.models.names import OFFLINE
from adapters.models.offline_sentences import Step, understand
from adapters.models.settings import ModelSettings
from runtime.domain.files import ReceivedFile
from runtime.domain.routes import Generation
from runtime.domain.runs import Usage
from runtime.domain.tools import CALL_TOOL, ToolCall, ToolResult
from runtime.domain.transcript import (
    CHARACTERS_PER_TOKEN,
    AssistantMessage,
    NoticeMessage,
    ToolMessage,
    TranscriptMessage,
    UserMessage,
    estimate_tokens,
    message_tokens,
)
from runtime.ports.model import FinishReason, ModelRequest, ModelResponse, TextChunk

_WORD: Final = re.compile(r"\s*\S+\s*")
# Content from outside is data: a sentence in it is nobody's wish (TOOL-11).
_UNTRUSTED: Final = re.compile(r"<untrusted\b.*?(?:</untrusted\b[^>]*>|\Z)", re.DOTALL)


class OfflineModel:
    """`Model` without a provider."""

    name = OFFLINE
    context_tokens = names.context_tokens(OFFLINE, ModelSettings())

    async def respond(
        self, request: ModelRequest
    ) -> AsyncGenerator[TextChunk | ModelResponse, None]:
        """As `Model.respond`; never raises. Text comes word by word, without waiting."""
        text, calls = _reply(request)
        limit = request.max_output_tokens * CHARACTERS_PER_TOKEN
        reason: FinishReason = "tool_call" if calls else "length" if len(text) > limit else "stop"
        text = text[:limit]
        for word in _WORD.findall(text):
            yield TextChunk(word)
        yield ModelResponse(
            text=text,
            tool_calls=calls,
            usage=_usage(request, text, calls),
            model=OFFLINE,
            finish_reason=reason,
        )

    async def unfit(self, generation: Generation) -> Mapping[str, str]:
        """As `Model.unfit`: the length of a response is all that can be set."""
        given = set(generation.given) - {"max_output_tokens"}
        rule = f"cannot be set for {OFFLINE}, which follows fixed rules; leave it out"
        return dict.fromkeys(sorted(given), rule)


@dataclass(frozen=True, slots=True)
class _Turn:
    """The newest turn: what was asked, and what has been called for it so far."""

    asked: str
    notices: tuple[str, ...] = ()
    rounds: tuple[AssistantMessage, ...] = ()
    results: tuple[ToolResult, ...] = ()
    files: tuple[ReceivedFile, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether a call gave no result, or not the one that was wanted."""
        good = {result.call_id for result in self.results if result.status == "ok"}
        return any(call.id not in good for call in self.calls)

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(call for message in self.rounds for call in message.tool_calls)


def _reply(request: ModelRequest) -> tuple[str, tuple[ToolCall, ...]]:
    messages = _plain(request.messages)
    turn = _turn(messages)
    if not turn.asked and turn.notices:
        return offline_answers.noticed(turn.notices, _needed(messages)), ()
    if turn.notices and offline_batches.is_last(turn.asked):
        return offline_batches.together(turn.notices), ()
    text, calls = _done(request, turn) if turn.asked.strip() or not turn.files else ("", ())
    if turn.files and not calls:
        # In one sentence, before anything else: who sent a file sees that it came.
        text = f"{offline_answers.received(turn.files)}\n\n{text}".strip()
    return text, calls


def _done(request: ModelRequest, turn: _Turn) -> tuple[str, tuple[ToolCall, ...]]:
    wish = _UNTRUSTED.sub(" ", turn.asked)
    steps = understand(wish)
    done = len(turn.rounds)
    offered = _offered(request)
    said = offline_answers.report(turn.calls, {one.call_id: one for one in turn.results})
    left = steps[done:]
    if done and turn.failed:
        return (f"{said}\n\n{offline_answers.left_undone(left)}" if left else said), ()
    if not left and not done and (news := offline_answers.news(turn.notices)):
        return news, ()
    if not left:
        return said or offline_answers.about(turn.asked, wish=wish, tools=offered), ()
    missing = [wanted for wanted in left[0].calls if wanted.tool not in offered]
    if missing:
        refusal = offline_answers.not_offered(missing)
        return (f"{said}\n\n{refusal}" if said else refusal), ()
    return "", _calls(left[0], request)


def _calls(step: Step, request: ModelRequest) -> tuple[ToolCall, ...]:
    """Agents get names that are the call's own, because a tree takes no name twice."""
    calls = []
    for place, wanted in enumerate(step.calls):
        identifier = call_id(request.run_id, request.step, place)
        arguments = offline_batches.named(wanted.arguments, identifier[-5:])
        call = ToolCall(id=identifier, name=wanted.tool, arguments=arguments)
        calls.append(_made(call, request))
    return tuple(calls)


def _needed(messages: Sequence[TranscriptMessage]) -> frozenset[str]:
    calls = [one.tool_calls for one in messages if isinstance(one, AssistantMessage)]
    return offline_batches.needed([call for several in calls for call in several])


def _turn(messages: Sequence[TranscriptMessage]) -> _Turn:
    """What came since the last answer; messages that came together are one wish.

    A message that came while the tools were running begins the turn anew.
    """
    start = 0
    for index, message in enumerate(messages):
        if isinstance(message, AssistantMessage) and not message.tool_calls:
            start = index + 1
    since = messages[start:]
    users = [index for index, one in enumerate(since) if isinstance(one, UserMessage)]
    last = users[-1] if users else -1
    first = last
    while first > 0 and isinstance(since[first - 1], UserMessage | NoticeMessage):
        first -= 1
    asked = [one.text for one in since[max(first, 0) : last + 1] if isinstance(one, UserMessage)]
    after = since[last + 1 :]
    return _Turn(
        asked="\n".join(asked),
        notices=tuple(
            one.text for one in after if isinstance(one, NoticeMessage) and one.file is None
        ),
        files=tuple(
            one.file
            for one in since[max(first, 0) :]
            if isinstance(one, NoticeMessage) and one.file is not None
        ),
        rounds=tuple(one for one in after if isinstance(one, AssistantMessage)),
        results=tuple(
            result for one in after if isinstance(one, ToolMessage) for result in one.results
        ),
    )


def _usage(request: ModelRequest, text: str, calls: Sequence[ToolCall]) -> Usage:
    said = sum(message_tokens(message) for message in request.messages)
    called = sum(estimate_tokens(call.name + call.arguments) for call in calls)
    return Usage(
        input_tokens=estimate_tokens(request.system + request.present) + said,
        output_tokens=estimate_tokens(text) + called,
        cost_usd=0.0,
    )


def _offered(request: ModelRequest) -> tuple[str, ...]:
    """The names of all tools that a request offers, also of those that ``call_tool`` calls."""
    return (*(tool.name for tool in request.tools), *_by_name(request))


def _plain(messages: Sequence[TranscriptMessage]) -> list[TranscriptMessage]:
    """The messages, with each call of ``call_tool`` as the call that it means."""
    return [
        one.model_copy(update={"tool_calls": tuple(_meant(call) for call in one.tool_calls)})
        if isinstance(one, AssistantMessage) and one.tool_calls
        else one
        for one in messages
    ]


def _made(call: ToolCall, request: ModelRequest) -> ToolCall:
    """A call as the request lets it be made."""
    if call.name not in _by_name(request):
        return call
    arguments = json.dumps({"tool": call.name, "arguments": json.loads(call.arguments)})
    return call.model_copy(update={"name": CALL_TOOL, "arguments": arguments})


def _by_name(request: ModelRequest) -> tuple[str, ...]:
    for tool in request.tools:
        if tool.name == CALL_TOOL:
            found: JsonValue = tool.parameters
            for step in ("properties", "tool", "enum"):
                found = found.get(step) if isinstance(found, dict) else None
            return tuple(str(name) for name in found) if isinstance(found, list) else ()
    return ()


def _meant(call: ToolCall) -> ToolCall:
    if call.name != CALL_TOOL:
        return call
    found = json.loads(call.arguments)
    name, arguments = found["tool"], json.dumps(found.get("arguments", {}))
    return call.model_copy(update={"name": name, "arguments": arguments})
