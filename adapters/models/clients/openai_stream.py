"""OpenAI's stream of chat completions as servers of other makes send it (MDL-1).

Each rule stands for servers that were met: an end that is `[DONE]` alone, a last piece whose delta
is null, calls that share an index, usage that is repeated and grows, a refusal beside no content, a
whole completion in place of a stream. They are put right piece by piece before the library reads
them, at the place that it has for that.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from openai import APIError, AsyncStream
from openai._streaming import ServerSentEvent, SSEDecoder
from openai.types.chat import ChatCompletionChunk
from openai.types.chat.chat_completion_chunk import (
    Choice,
    ChoiceDelta,
    ChoiceDeltaToolCall,
    ChoiceDeltaToolCallFunction,
)
from pydantic_ai.models.openai import OpenAIStreamedResponse
from pydantic_ai.usage import RequestUsage

from adapters.models.clients.call_fragments import CallFragments
from adapters.models.faults import NotAModelServer
from adapters.models.finish_reasons import ENDED, REFUSED
from adapters.models.thoughts import KEPT, kept_fields

LAST_WAIT_S: Final = 5.0
"""How long the usage may take behind a finish reason, where a server leaves the stream open."""
_MOST_BYTES: Final = 16 * 1024 * 1024
"""Of a completion that comes whole, and of one event of a stream."""

Item = TypeVar("Item")


class EventDecoder(SSEDecoder):
    """The SDK's decoder, for events of at most 16 MB: what has no end would fill the memory."""

    async def aiter_bytes(self, iterator: AsyncIterator[bytes]) -> AsyncIterator[ServerSentEvent]:
        """As the SDK's. Raises `ValueError` where so much comes without an event."""
        unread = 0

        async def bounded() -> AsyncIterator[bytes]:
            nonlocal unread
            async for piece in iterator:
                unread += len(piece)
                if unread > _MOST_BYTES:
                    raise ValueError(f"{_MOST_BYTES:,} bytes came without an event")
                yield piece

        async for event in super().aiter_bytes(bounded()):
            unread = 0
            yield event


class EventStream(AsyncStream[Item]):
    """The SDK's stream, which also tells whether `[DONE]` came, and takes a whole completion."""

    done = False

    @property
    def last_wait_s(self) -> float:
        """How long to wait for what comes behind a finish reason: never longer than for bytes."""
        bounds = self.response.request.extensions.get("timeout", {})
        return min(LAST_WAIT_S, bounds.get("read") or LAST_WAIT_S)

    async def _iter_events(self) -> AsyncIterator[ServerSentEvent]:
        events = super()._iter_events()
        kind = self.response.headers.get("content-type", "").lower()
        if "html" in kind:
            raise NotAModelServer("a web page came in place of an answer")
        if "json" in kind:
            events = self._whole()
        async for event in events:
            if event.data.startswith("[DONE]"):
                self.done = True
            yield event

    async def _whole(self) -> AsyncIterator[ServerSentEvent]:
        """The only event of an answer that is no stream; what is none, is read as one."""
        body = bytearray()
        async for piece in self.response.aiter_bytes():
            body += piece
            if len(body) > _MOST_BYTES:
                raise ValueError(f"the answer is larger than {_MOST_BYTES:,} bytes")
        text = bytes(body)
        if text.lstrip()[:1] == b"{":
            _check_whole(text)
            yield ServerSentEvent(data=text.decode("utf-8", "replace"))
            yield ServerSentEvent(data="[DONE]")
            return
        async for event in self._decoder.aiter_bytes(_once(text)):
            yield event


def _check_whole(text: bytes) -> None:
    """Raises `NotAModelServer` for a JSON object that speaks of no completion, and of no error in
    the form in which model servers tell of theirs."""
    try:
        said = json.loads(text)
    except ValueError:
        return
    error = said.get("error") if isinstance(said, dict) else None
    if isinstance(said, dict) and not said.get("choices") and not isinstance(error, dict):
        words = error if isinstance(error, str) else text[:200].decode("utf-8", "replace")
        raise NotAModelServer(f"no completion came: {words[:200]}")


async def _once(body: bytes) -> AsyncIterator[bytes]:
    yield body


def with_deltas(data: object) -> object:
    """The data of a piece; the choices of a whole completion become those of a stream's piece."""
    choices = data.get("choices") if isinstance(data, dict) else None
    if not isinstance(data, dict) or not isinstance(choices, list):
        return data
    if not any(isinstance(choice, dict) and choice.get("message") for choice in choices):
        return data
    return {**data, "choices": [_with_delta(choice) for choice in choices]}


def _with_delta(choice: object) -> object:
    if not isinstance(choice, dict) or choice.get("delta"):
        return choice
    message = choice.get("message")
    if not isinstance(message, dict):
        return choice
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        numbered = [
            {**call, "index": at} if isinstance(call, dict) else call
            for at, call in enumerate(calls)
        ]
        message = {**message, "tool_calls": numbered}
    return {**choice, "delta": message}


@dataclass
class StreamedAnswer(OpenAIStreamedResponse):
    """The library's response over pieces that were put right."""

    _fragments: CallFragments = field(default_factory=CallFragments, init=False)
    _kept: dict[str, object] = field(default_factory=dict[str, object], init=False)

    def __post_init__(self) -> None:
        # Thoughts between tags are parted from the text by `thought_tags`: the library knows a tag
        # only where it is a piece of its own. Text is never empty, so these are found nowhere.
        self._model_profile = {**self._model_profile, "thinking_tags": ("", "")}

    async def _validate_response(self) -> AsyncIterator[ChatCompletionChunk]:
        """The library's hook: the pieces as it expects them."""
        pieces = aiter(self._response)
        while (piece := await self._next(pieces)) is not None:
            for choice in piece.choices or ():
                self._put_right(choice)
            yield piece
        if self._events.done:
            self._note(ENDED)
        if self._kept:
            self._note(KEPT, self._kept)

    @property
    def _events(self) -> EventStream[ChatCompletionChunk]:
        source = self._response.source
        assert isinstance(source, EventStream)
        return source

    async def _next(self, pieces: AsyncIterator[ChatCompletionChunk]) -> ChatCompletionChunk | None:
        """The next piece, None behind the last. What breaks behind a finish reason breaks nothing:
        all was said."""
        if not self._has_finish_reason:
            return await anext(pieces, None)
        try:
            async with asyncio.timeout(self._events.last_wait_s):
                return await anext(pieces, None)
        except (TimeoutError, APIError):
            return None

    def _put_right(self, choice: Choice) -> None:
        # The SDK makes whatever came, so none of its types can be relied on here.
        delta: Any = choice.delta
        if not isinstance(delta, ChoiceDelta):
            choice.delta = delta = ChoiceDelta()
        if delta.model_extra:
            kept_fields(delta.model_extra, self._kept)
        if delta.refusal:
            self._note(REFUSED)
            delta.content = f"{delta.content or ''}{delta.refusal}"
            delta.refusal = None
        if delta.function_call and not delta.tool_calls:
            function = delta.function_call
            named = ChoiceDeltaToolCallFunction.construct(
                name=function.name, arguments=function.arguments
            )
            delta.tool_calls = [ChoiceDeltaToolCall.construct(index=0, function=named)]
        if delta.tool_calls:
            delta.tool_calls = [one for one in delta.tool_calls if self._placed(one)]

    def _placed(self, call: Any) -> bool:
        """Whether it is a call's fragment, which then knows its place."""
        if not isinstance(call, ChoiceDeltaToolCall):
            return False
        function = call.function
        index = call.index if isinstance(call.index, int | str) else None
        place = self._fragments.place(
            index=index,
            identifier=call.id if isinstance(call.id, str) else None,
            name=function.name if function is not None else None,
            arguments=function.arguments if function is not None else None,
        )
        call.index, call.id = place.number, place.id
        if function is not None:
            function.name = place.name
        return True

    def _note(self, name: str, value: object = True) -> None:
        self.provider_details = {**(self.provider_details or {}), name: value}

    def _add_usage(
        self,
        usage: RequestUsage,
        *,
        reported: bool,
        cumulative: bool = False,  # noqa: ARG002 - every server's is; the library asks a setting
    ) -> None:
        """The last usage counts: servers that repeat it count from the beginning each time. What
        the last one leaves out stays as it was."""
        if not reported:
            return
        usage.input_tokens = usage.input_tokens or self._usage.input_tokens
        usage.output_tokens = usage.output_tokens or self._usage.output_tokens
        super()._add_usage(usage, reported=True, cumulative=True)
