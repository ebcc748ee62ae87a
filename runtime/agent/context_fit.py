"""Making a request fit into what a model can read (MDL-5). Pure.

Sizes are in tokens by the estimate of CTX-12. What does not fit is left out from the oldest on; the
newest turn stays, and where it alone is too large its longest texts are shortened, with a mark.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from runtime.domain.transcript import (
    AssistantMessage,
    NoticeMessage,
    ToolMessage,
    TranscriptMessage,
    UserMessage,
    estimate_tokens,
    message_tokens,
)
from runtime.ports.model import ModelRequest
from runtime.sessions.window import fitted

SHORTEST: Final = 400
"""Characters below which no text is shortened."""
_CUT: Final = "\n[{left:,} characters were left out here: they do not fit into the model]\n"
_OUTPUT_SHARE: Final = 4
_MARGIN: Final = 0.9
_MOST_OF_A_TOOL: Final = 4_000
_STEP: Final = 0.6


@dataclass(frozen=True, slots=True)
class Size:
    """What a model can read. `tokens` are the provider's, for prompt and answer together; `ratio`
    is how many of them one token of the estimate was, the last time that it said so."""

    tokens: int
    ratio: float = 1.0

    def output(self, wanted: int) -> int:
        """The longest answer to ask for, where `wanted` are wanted."""
        return max(1, min(wanted, self.tokens // _OUTPUT_SHARE))

    def room(self, wanted: int) -> int:
        """Tokens of a prompt by the estimate."""
        return max(1, int((self.tokens - self.output(wanted)) / self.ratio))

    @property
    def history(self) -> int:
        """Tokens that the conversation may take by the estimate: half, because instructions, tools
        and the answer need the rest."""
        return max(1, int(self.tokens / self.ratio / 2))


@dataclass(slots=True)
class KnownSizes:
    """What is known of models by name: what they said of themselves when something was too long."""

    _learnt: dict[str, Size] = field(default_factory=dict)

    def of(self, model: str, configured: int | None) -> Size | None:
        """The size of a model, None where nobody knows."""
        learnt = self._learnt.get(model)
        if configured is None:
            return learnt
        if learnt is None:
            return Size(configured)
        return replace(learnt, tokens=min(configured, learnt.tokens))

    def learn(self, model: str, request: ModelRequest, *, limit: int, asked: int) -> Size:
        """What follows from the refusal of a request as too long. `limit` and `asked` are what the
        provider said, 0 where it did not: then less is taken to fit each time."""
        estimate = max(1, request_tokens(request))
        before = self._learnt.get(model, Size(0))
        ratio = before.ratio
        if asked:
            ratio = max(1.0, asked / estimate) / _MARGIN
        elif limit and limit == before.tokens:
            # It was heeded, so the estimate is too small.
            ratio = before.ratio / _STEP
        tokens = limit or int((estimate * _STEP + request.max_output_tokens) * ratio)
        self._learnt[model] = Size(tokens, ratio)
        return self._learnt[model]


@dataclass(frozen=True, slots=True)
class Fit:
    """A request that fits as far as it can, and how many messages were left out or shortened."""

    request: ModelRequest
    left_out: int = 0

    def is_less_than(self, other: "Fit") -> bool:
        """Whether it asks for less than another: of the prompt, or of the answer."""
        mine = request_tokens(self.request) + self.request.max_output_tokens
        return mine < request_tokens(other.request) + other.request.max_output_tokens


def request_tokens(request: ModelRequest) -> int:
    """What a prompt costs."""
    return _fixed_tokens(request) + sum(message_tokens(one) for one in request.messages)


def fit(request: ModelRequest, size: Size) -> Fit:
    """The request as it fits into a model of a size."""
    output = size.output(request.max_output_tokens)
    room = size.room(request.max_output_tokens)
    if output != request.max_output_tokens:
        request = replace(request, max_output_tokens=output)
    if _rough_tokens(request) <= room or request_tokens(request) <= room:
        return Fit(request)
    left = room - _fixed_tokens(request)
    messages = request.messages[_start(request.messages, left) :]
    left_out = len(request.messages) - len(messages)
    blanked = fitted(messages, max_tokens=left)
    shortened = _shortened(blanked, left)
    changed = sum(a is not b for a, b in zip(messages, shortened, strict=True))
    return Fit(replace(request, messages=shortened), left_out + changed)


def newest_turn(request: ModelRequest) -> ModelRequest | None:
    """The request with nothing but its newest turn; None where there is nothing older."""
    places = _turns(request.messages)
    if not places or places[-1] == 0:
        return None
    return replace(request, messages=request.messages[places[-1] :])


def _rough_tokens(request: ModelRequest) -> int:
    """More than a prompt costs, found without a look at the tools."""
    said = len(request.system) + len(request.present)
    history = sum(message_tokens(one) for one in request.messages) + request.enclosed_tokens
    return said + history + _MOST_OF_A_TOOL * len(request.tools)


def _fixed_tokens(request: ModelRequest) -> int:
    tools = sum(
        estimate_tokens(tool.name + tool.description + json.dumps(tool.parameters))
        for tool in request.tools
    )
    said = estimate_tokens(request.system) + estimate_tokens(request.present)
    return said + tools + request.enclosed_tokens


def _start(messages: Sequence[TranscriptMessage], room: int) -> int:
    """Where what is kept begins: in front of a turn, so that it fits; at the newest at last."""
    tokens = sum(message_tokens(one) for one in messages)
    places = _turns(messages)
    start = 0
    for place in places:
        tokens -= sum(message_tokens(one) for one in messages[start:place])
        start = place
        if tokens <= room:
            return start
    return places[-1] if places else 0


def _turns(messages: Sequence[TranscriptMessage]) -> list[int]:
    """Where turns begin: at a person's message behind an answer."""
    places = []
    open_calls = talking = False
    for place, message in enumerate(messages):
        if isinstance(message, UserMessage) and not open_calls and not talking:
            places.append(place)
        if isinstance(message, AssistantMessage):
            open_calls, talking = bool(message.tool_calls), False
        elif isinstance(message, UserMessage | ToolMessage):
            open_calls = open_calls and not isinstance(message, ToolMessage)
            talking = True
    return places


def _shortened(messages: Sequence[TranscriptMessage], room: int) -> tuple[TranscriptMessage, ...]:
    kept = list(messages)
    tokens = sum(message_tokens(one) for one in kept)
    while tokens > room:
        place = max(range(len(kept)), key=lambda at: _longest(kept[at]), default=None)
        if place is None or _longest(kept[place]) <= SHORTEST:
            break
        before = kept[place]
        kept[place] = _halved(before)
        tokens += message_tokens(kept[place]) - message_tokens(before)
    return tuple(kept)


def _texts(message: TranscriptMessage) -> tuple[str, ...]:
    if isinstance(message, ToolMessage):
        return tuple(result.content for result in message.results)
    return (message.text,)


def _longest(message: TranscriptMessage) -> int:
    return max(map(len, _texts(message)), default=0)


def _halved(message: TranscriptMessage) -> TranscriptMessage:
    if isinstance(message, ToolMessage):
        longest = _longest(message)
        return message.model_copy(
            update={
                "results": tuple(
                    one.model_copy(update={"content": _cut(one.content, longest // 2)})
                    if len(one.content) == longest
                    else one
                    for one in message.results
                )
            }
        )
    assert isinstance(message, UserMessage | AssistantMessage | NoticeMessage)
    return message.model_copy(update={"text": _cut(message.text, len(message.text) // 2)})


def _cut(text: str, length: int) -> str:
    """The beginning and the end of a text, in about so many characters."""
    head = max(1, length * 2 // 3 - len(_CUT))
    tail = max(1, length // 3 - len(_CUT) // 2)
    mark = _CUT.format(left=len(text) - head - tail)
    return f"{text[:head]}{mark}{text[len(text) - tail :]}"
