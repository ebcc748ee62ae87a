"""One request to one provider's model, streamed.

No agent loop, no retry, no choice: a request goes out, text comes in, one response ends it. A
stream that breaks is an error of the request, however much text had come.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import fields
from typing import Final

import structlog
from pydantic import ValidationError
from pydantic_ai.direct import model_request_stream
from pydantic_ai.exceptions import AgentRunError, ModelHTTPError, UserError
from pydantic_ai.messages import ModelResponse as ProviderResponse
from pydantic_ai.messages import (
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ToolCallPart,
    ToolCallPartDelta,
)
from pydantic_ai.models import StreamedResponse
from pydantic_ai.settings import ModelSettings as RequestSettings
from pydantic_ai.usage import RequestUsage

from adapters.models.clients.client import Client
from adapters.models.faults import cause_of, classify, host_of
from adapters.models.finish_reasons import Finish, finish_of
from adapters.models.media_support import taken_by
from adapters.models.names import split
from adapters.models.once import Once
from adapters.models.price_list import cost_usd
from adapters.models.request_forms import MOST_STEPS, USUAL, Carried, Form, KnownForm, plainer
from adapters.models.settings import ModelSettings
from adapters.models.thought_tags import Shown, ThoughtFilter, thinks_first
from adapters.models.thoughts import Origin, kept_thoughts
from adapters.models.translation import joined, to_calls, to_messages, to_parameters
from runtime.domain.errors import ModelRetry
from runtime.domain.routes import Generation
from runtime.domain.runs import Usage
from runtime.domain.tools import ToolCall
from runtime.domain.transcript import (
    CHARACTERS_PER_TOKEN,
    AssistantMessage,
    TranscriptMessage,
    estimate_tokens,
    message_tokens,
)
from runtime.ports.model import Feature, ModelRequest, ModelResponse, TextChunk

log = structlog.get_logger(__name__)

MAX_CHARACTERS: Final = 2_000_000
CHARACTERS_PER_OUTPUT_TOKEN: Final = 16

# What a provider's library raises when a provider, or the way to it, fails: its own errors, broken
# JSON, and the transport's (httpx derives its network errors from none of ours, so the library
# wraps them; what the operating system says may come through bare).
_FAILURES: Final = (AgentRunError, UserError, ValidationError, OSError, ValueError)


_NO_FORM: Final = frozenset({"too_long", "filter", "key", "credit", "busy"})
"""Causes that no other form of a request mends."""


def connect(name: str, settings: ModelSettings) -> "ProviderModel":
    """The model with its connections. Raises `ImportError` when its library is missing."""
    client = _client(name, settings)
    return ProviderModel(
        name, client=client, secrets=settings.secrets, timeout_s=settings.timeout_s
    )


def _client(name: str, settings: ModelSettings) -> Client:
    provider, own = split(name)
    match provider:
        case "anthropic":
            # Lazy: each provider's library takes tens of megabytes, and one is asked.
            from adapters.models.clients import anthropic

            return anthropic.connect(own, settings)
        case "google":
            # Lazy for the same reason.
            from adapters.models.clients import google

            return google.connect(own, settings)
        case "openai" | "compatible" | "ollama":
            # Lazy for the same reason.
            from adapters.models.clients import openai

            return openai.connect(own, settings, provider)
        case _:
            raise ValueError(f"{name} needs no client")


class ProviderModel:
    """A model of a provider; see `runtime.ports.model.Model`."""

    def __init__(
        self,
        name: str,
        *,
        client: Client,
        secrets: tuple[str, ...] = (),
        timeout_s: float = 0.0,
    ) -> None:
        self._name = name
        self._client = client
        self._secrets = secrets
        self._timeout_s = timeout_s
        self._parameters = Once(to_parameters)
        self._form = KnownForm(lambda: asyncio.get_running_loop().time())
        self._thinks_first = thinks_first(name)
        self._grows = not client.may_think_aloud
        self._origin = Origin(name, host_of(client.model.base_url))

    async def respond(
        self, request: ModelRequest
    ) -> AsyncGenerator[TextChunk | ModelResponse, None]:
        """Stream one response. Raises `ModelRetry` or `ModelRejected`.

        Text and arguments are read up to 16 characters for each token that was asked for, and two
        million at most; a response that is longer ends there with ``finish_reason`` "length".
        A server that refuses the form of the request is asked again in a plainer one (MDL-4).
        """
        form = self._form.current
        refused: list[str] = []
        while True:
            hold = self._thinks_first or not self._grows
            reading = _Reading(_limit(request), hold=hold)
            try:
                async for chunk in self._pieces(request, form, reading):
                    yield chunk
            except _FAILURES as error:
                next_form = None if reading.length else self._plainer(request, form, error)
                # The provider's text may repeat a key, so it does not travel on as a cause.
                failure = classify(
                    error,
                    model=self._name,
                    host=self._origin.host,
                    secrets=self._secrets,
                    timeout_s=self._timeout_s,
                )
                if next_form is None or len(refused) == MOST_STEPS:
                    failure.reason = "; in a plainer form: ".join([*refused, failure.reason])
                    raise failure from None
                refused.append(failure.reason)
                form = next_form
            else:
                break
        # Only what was refused here: others may have learnt more meanwhile.
        if refused and self._form.keep(form):
            log.warning("model_form", model=self._name, form=_differs(form), refused=refused)
        self._thinks_first = self._thinks_first or reading.closed_alone
        # Whether it thinks aloud is seen from a whole text.
        self._grows = self._grows or bool(reading.text)
        yield self._response(request, form, reading)

    def unfit(self, generation: Generation) -> Mapping[str, str]:
        """As `runtime.ports.model.Model.unfit`."""
        return self._client.unfit(generation)

    async def close(self) -> None:
        """Give the connections back."""
        await self._client.close()

    async def _pieces(
        self, request: ModelRequest, form: Form, reading: "_Reading"
    ) -> AsyncGenerator[TextChunk, None]:
        """The text of one request as it comes; what the library made of it is `reading.whole`."""
        async with self._open(request, form) as stream:
            try:
                async for event in stream:
                    yield reading.take(event)
                    if reading.full:
                        reading.stopped = True
                        break
            finally:
                await stream.cancel()
            reading.whole = stream.get()
            cut = reading.stopped or reading.whole.finish_reason == "length"
            yield reading.finish(cut=cut and self._thinks_first)

    def _open(
        self, request: ModelRequest, form: Form
    ) -> AbstractAsyncContextManager[StreamedResponse]:
        settings = RequestSettings(max_tokens=request.max_output_tokens, cache=True)
        settings.update(self._client.request)
        settings.update(self._client.settings(request.generation, form))
        return model_request_stream(
            self._client.model,
            to_messages(
                request,
                takes=taken_by(split(self._name)[0]),
                form=form,
                origin=self._origin,
            ),
            model_settings=settings,
            model_request_parameters=self._parameters(request.tools if form.tools else ()),
        )

    def _plainer(self, request: ModelRequest, form: Form, error: Exception) -> Form | None:
        """The form to ask in instead, where a refusal is one of the form."""
        if not isinstance(error, ModelHTTPError) or cause_of(error) in _NO_FORM:
            return None
        generation = request.generation
        carried = Carried(
            tools=bool(request.tools) and form.tools,
            pictures=bool(request.enclosed) and form.pictures,
            sampling=form.sampling
            and (generation.temperature is not None or generation.top_p is not None),
            effort=form.effort and generation.reasoning_effort is not None,
            thoughts=form.thoughts != "none" and any(map(_has_thoughts, request.messages)),
            system=form.system and bool(request.system.strip()),
        )
        return plainer(form, error.status_code, f"{error} {error.body or ''}", carried)

    def _missing(self, request: ModelRequest, form: Form) -> frozenset[Feature]:
        """What of the request the model was asked without."""
        held: dict[Feature, bool] = {
            "pictures": bool(request.enclosed),
            "tools": bool(request.tools),
        }
        return frozenset(name for name in form.missing if held[name])

    def _response(self, request: ModelRequest, form: Form, reading: "_Reading") -> ModelResponse:
        whole = reading.whole
        calls: tuple[ToolCall, ...] = ()
        finish: Finish | None = Finish("length")
        if not (reading.stopped or reading.full):
            calls = to_calls(whole.parts, run_id=request.run_id, step=request.step)
            finish = finish_of(whole, calls=bool(calls))
        if finish is None:
            reason = f"{self._name}: the stream ended without saying that it was over"
            raise ModelRetry(reason, model=self._name, host=self._origin.host, cause="cut")
        return ModelResponse(
            text=reading.text,
            tool_calls=calls,
            usage=self._usage(request, reading, whole.usage),
            model=self._name,
            finish_reason=finish.reason,
            finish_word=finish.word,
            thoughts=kept_thoughts(whole, self._origin),
            missing=self._missing(request, form),
        )

    def _usage(self, request: ModelRequest, reading: "_Reading", said: RequestUsage) -> Usage:
        """What the provider counted; an estimate where it counted nothing (CTX-12's measure)."""
        if not said.output_tokens:
            said = RequestUsage(
                input_tokens=said.input_tokens or _input_tokens(request),
                output_tokens=-(-reading.length // CHARACTERS_PER_TOKEN),
                cache_read_tokens=said.cache_read_tokens,
                cache_write_tokens=said.cache_write_tokens,
            )
        provider, own = split(self._name)
        return Usage(
            input_tokens=said.input_tokens,
            output_tokens=said.output_tokens,
            cached_tokens=said.cache_read_tokens,
            cost_usd=cost_usd(said, provider=provider, model=own),
        )


class _Reading:
    """The text of a response as it comes, up to a limit in characters; arguments count too.
    `stopped` says that no more was read because of it."""

    def __init__(self, limit: int, *, hold: bool = False) -> None:
        self._limit = limit
        self._pieces: list[str] = []
        self._half = ""
        self._tags = ThoughtFilter(hold=hold)
        self.length = 0
        self.stopped = False
        self.whole = ProviderResponse([])

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    @property
    def full(self) -> bool:
        return self.length + self._tags.waiting >= self._limit

    @property
    def closed_alone(self) -> bool:
        """Whether the model thinks first and says only where that ends."""
        return self._tags.closed_alone

    def take(self, event: ModelResponseStreamEvent) -> TextChunk:
        """The event's text, as far as it fits."""
        text = ""
        match event:
            case PartStartEvent(part=TextPart(content=content)):
                text = content
            case PartDeltaEvent(delta=TextPartDelta(content_delta=content)):
                text = content
            case PartStartEvent(part=ThinkingPart()):
                self._tags.release()
            case PartStartEvent(part=ToolCallPart(args=str(arguments))):
                self.length += len(arguments)
            case PartDeltaEvent(delta=ToolCallPartDelta(args_delta=str(arguments))):
                self.length += len(arguments)
            case _:
                return TextChunk("")
        return self._keep(self._tags.take(self._whole(text)))

    def finish(self, *, cut: bool = False) -> TextChunk:
        """The text that waited for more, as far as it fits; `cut` is as in `ThoughtFilter`."""
        half, self._half = self._half, ""
        first, last = self._tags.take(joined(half)), self._tags.finish(cut=cut)
        text = last.text if last.anew else first.text + last.text
        return self._keep(Shown(text, anew=first.anew or last.anew))

    def _whole(self, text: str) -> str:
        """The text without half a character at its end, which waits for the other half."""
        text = self._half + text
        self._half = text[-1] if "\ud800" <= text[-1:] <= "\udbff" else ""
        return joined(text[:-1] if self._half else text)

    def _keep(self, shown: Shown) -> TextChunk:
        text = shown.text[: max(0, self._limit - self.length)]
        self.length += len(text)
        if shown.anew:
            self._pieces.clear()
        if text:
            self._pieces.append(text)
        return TextChunk(text, shown.anew)


def _has_thoughts(message: TranscriptMessage) -> bool:
    return isinstance(message, AssistantMessage) and bool(message.thoughts)


def _differs(form: Form) -> dict[str, object]:
    """What of a form is not as usual, for the log."""
    return {
        one.name: value
        for one in fields(form)
        if (value := getattr(form, one.name)) != getattr(USUAL, one.name)
    }


def _limit(request: ModelRequest) -> int:
    return min(request.max_output_tokens * CHARACTERS_PER_OUTPUT_TOKEN, MAX_CHARACTERS)


def _input_tokens(request: ModelRequest) -> int:
    tools = sum(
        estimate_tokens(tool.name + tool.description + json.dumps(tool.parameters))
        for tool in request.tools
    )
    said = sum(message_tokens(message) for message in request.messages)
    said += request.enclosed_tokens
    return estimate_tokens(request.system) + estimate_tokens(request.present) + said + tools
