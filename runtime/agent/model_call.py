"""One response from a model, with retries and fallback (MSG-18).

Retryable failures are tried again up to four times, waiting as long as the provider asked (at
most 60 s) or by doubling; then the next model of the fallback list gets its chance. A refusal is
final at once: repeating a bad key or a bad request helps nobody.
"""

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import structlog

from runtime.agent import turn_spans
from runtime.agent.context_fit import Fit, KnownSizes, fit, newest_turn
from runtime.domain.errors import InvalidInput, ModelError, ModelRejected, ModelRetry
from runtime.domain.runs import Usage
from runtime.domain.transcript import estimate_tokens
from runtime.ports.clock import Clock
from runtime.ports.metrics import NO_OBSERVER, ModelOutcome, Observer
from runtime.ports.model import Model, ModelRequest, ModelResponse, Models, TextChunk
from runtime.ports.tracing import NO_TRACER, Tracer

log = structlog.get_logger(__name__)

RETRIES = 4
FITS = 6
"""Sizes of a request that are tried before it counts as too long."""
SERVER_ERROR = 500
TOO_LONG = "Your message is too long for the model. Send less, or choose one with more room."
MAX_WAIT_S = 60.0
BASE_WAIT_S = 0.5
MAX_TEXT = 400_000
"""Characters of one response that are kept; no chat shows more, and no run should hold more."""

OnText = Callable[[int, str], None]
"""Called with the offset in characters and a piece of text, which is empty where something else of
the response came; text at offset 0 starts anew."""


@dataclass(frozen=True, slots=True)
class ModelCaller:
    """Calls models by name; `jitter` is a source of numbers in [0, 1)."""

    models: Models
    clock: Clock
    jitter: Callable[[], float] = random.random
    observer: Observer = NO_OBSERVER
    tracer: Tracer = NO_TRACER
    refused: "RefusedFiles" = field(default_factory=lambda: RefusedFiles())
    sizes: KnownSizes = field(default_factory=KnownSizes)

    def order(self, chosen: str | None) -> Sequence[str]:
        """The models to try: the session's choice, the default, then the fallback list."""
        wanted = [chosen] if chosen else []
        return list(dict.fromkeys([*wanted, self.models.default, *self.models.fallback]))

    def history_tokens(self, chosen: str | None) -> int | None:
        """What the model that is asked first has room for, None where nobody knows."""
        name = self.order(chosen)[0]
        try:
            size = self.sizes.of(name, self.models.get(name).context_tokens)
        except InvalidInput:
            return None
        return None if size is None else size.history

    async def respond(
        self, request: ModelRequest, *, chosen: str | None, on_text: OnText
    ) -> ModelResponse:
        """Raises `ModelRetry` when every model failed, or `ModelRejected`."""
        last = ModelRetry("no model is configured")
        for name in self.order(chosen):
            try:
                model = self.models.get(name)
            except InvalidInput as error:
                # A session may have chosen a model that is no longer configured.
                log.warning("model_unknown", model=name, reason=str(error))
                continue
            fitting = await _fitting(name, model, request)
            for attempt in range(RETRIES + 1):
                try:
                    response = sound(await self._fitted(name, model, fitting, on_text))
                    if response.finish_reason != "error" or attempt:
                        return response
                    # Its provider broke it off: asked once more, then taken as far as it came.
                    raise ModelRetry(
                        f"the response ended with {response.finish_word or 'an error'}",
                        cause="cut",
                    )
                except ModelRetry as error:
                    last = error
                    last.model = name
                    # An answer, if not the one that was hoped for: nobody hangs here.
                    on_text(0, "")
                    log.warning(
                        "model_retry",
                        model=name,
                        attempt=attempt,
                        run_id=request.run_id,
                        cause=error.cause,
                        reason=error.reason,
                    )
                if attempt < RETRIES:
                    await self.clock.sleep(self._wait(attempt, last.after_s))
            if last.status == SERVER_ERROR:
                # Some servers fail so at what they cannot read, each time. It may be an outage as
                # well, which must cost the conversation nothing: the next turn asks with all of it.
                alone = await self._alone(name, model, fitting, on_text)
                if alone is not None:
                    return sound(replace(alone, alone=False))
        raise last

    async def _fitted(
        self, name: str, model: Model, request: ModelRequest, on_text: OnText
    ) -> ModelResponse:
        """What the model cannot read at once is left out, what its provider refuses in older turns
        as well: no refusal may make a conversation unusable (MDL-5)."""
        size = self.sizes.of(name, model.context_tokens)
        asked = Fit(request) if size is None else fit(request, size)
        for _ in range(FITS):
            try:
                response = await self._showing(name, model, asked.request, on_text)
            except ModelRejected as error:
                if error.cause != "too_long":
                    alone = None
                    if error.content:
                        alone = await self._alone(name, model, asked.request, on_text)
                    if alone is None:
                        raise
                    return alone
                size = self.sizes.learn(name, asked.request, limit=error.limit, asked=error.asked)
                log.warning("context_size", model=name, tokens=size.tokens, run_id=request.run_id)
                smaller = fit(request, size)
                if not smaller.is_less_than(asked):
                    raise
                asked = smaller
                on_text(0, "")
            else:
                return replace(response, left_out=asked.left_out)
        raise ModelRejected(f"{name}: no size fits", TOO_LONG, content=True, cause="too_long")

    async def _alone(
        self, name: str, model: Model, request: ModelRequest, on_text: OnText
    ) -> ModelResponse | None:
        """The answer to the newest turn without what came before it; None where that is refused
        too, or there is nothing older."""
        newest = newest_turn(request)
        if newest is None:
            return None
        on_text(0, "")
        try:
            response = await self._showing(name, model, newest, on_text)
        except ModelError:
            return None
        log.warning("history_refused", model=name, run_id=request.run_id)
        return replace(response, alone=True)

    async def _showing(
        self, name: str, model: Model, request: ModelRequest, on_text: OnText
    ) -> ModelResponse:
        """A model that takes no pictures, or not these, is asked once more without (MSG-19).

        The newest is left out first: what stood before it was taken, as a rule, and one broken
        picture must not cost the model the sight of the others.
        """
        asked = tried = self.refused.without(name, request)
        while True:
            try:
                response = await self._traced(name, model, tried, on_text)
            except ModelRejected as error:
                if not error.content or not tried.enclosed:
                    raise
                log.warning("files_refused", model=name, run_id=asked.run_id, reason=error.reason)
                tried = _without_newest(asked) if tried is asked else replace(asked, enclosed={})
            else:
                # Only now it is known that these files were what it would not take.
                self.refused.note(name, asked.enclosed.keys() - tried.enclosed.keys())
                return response

    async def _traced(
        self, name: str, model: Model, request: ModelRequest, on_text: OnText
    ) -> ModelResponse:
        facts = turn_spans.chat_facts(name, request)
        with self.tracer.span("chat", request.run_id, name, facts) as span:
            turn_spans.ask(span, request)
            response = await self._observed(name, model, request, on_text)
            turn_spans.answer(span, response)
            return response

    async def _observed(
        self, name: str, model: Model, request: ModelRequest, on_text: OnText
    ) -> ModelResponse:
        outcome: ModelOutcome = "stopped"
        began = self.clock.monotonic()
        try:
            response = await _stream(model, request, on_text)
            outcome = "answered"
        except ModelRetry:
            outcome = "failed"
            raise
        except ModelRejected:
            outcome = "rejected"
            raise
        finally:
            self.observer.asked(name, outcome, self.clock.monotonic() - began)
        self.observer.used(name, response.usage)
        return response

    def _wait(self, attempt: int, asked: float | None) -> float:
        if asked is not None:
            return min(max(asked, 0.0), MAX_WAIT_S)
        return float(min(BASE_WAIT_S * 2**attempt * (1 + self.jitter() / 2), MAX_WAIT_S))


class RefusedFiles:
    """Which files a model would not take, by digest, so that it is not asked with them each time.

    Bounded, and forgotten when the process ends.
    """

    def __init__(self, limit: int = 4096) -> None:
        self._limit = limit
        self._files: dict[tuple[str, str], None] = {}

    def note(self, model: str, digests: Iterable[str]) -> None:
        """The files without which a request passed."""
        self._files.update(dict.fromkeys((model, digest) for digest in digests))
        while len(self._files) > self._limit:
            del self._files[next(iter(self._files))]

    def without(self, model: str, request: ModelRequest) -> ModelRequest:
        """The request, with what the model takes of its files."""
        left = {
            digest: content
            for digest, content in request.enclosed.items()
            if (model, digest) not in self._files
        }
        return request if len(left) == len(request.enclosed) else replace(request, enclosed=left)


async def _fitting(name: str, model: Model, request: ModelRequest) -> ModelRequest:
    """The request with what the model can take of its generation: that was set for the model of the
    session, and a fallback must not fail because of it. Raises `ModelRejected`."""
    unfit = await model.unfit(request.generation)
    if not unfit:
        return request
    log.warning("generation_left_out", model=name, run_id=request.run_id, fields=sorted(unfit))
    return replace(request, generation=request.generation.without(unfit))


def _without_newest(request: ModelRequest) -> ModelRequest:
    """The request without its last file: they stand in the order in which they came."""
    *older, _ = request.enclosed.items()
    return replace(request, enclosed=dict(older))


async def _stream(model: Model, request: ModelRequest, on_text: OnText) -> ModelResponse:
    offset, pieces = 0, list[str]()
    stream = model.respond(request)
    try:
        async for item in stream:
            if isinstance(item, ModelResponse):
                return item
            if isinstance(item, TextChunk):
                if item.anew:
                    offset, pieces = 0, []
                on_text(offset, item.text)
                offset += len(item.text)
                pieces.append(item.text)
            if offset > MAX_TEXT:
                return _cut("".join(pieces), model)
    finally:
        close = getattr(stream, "aclose", None)
        if close is not None:
            await close()
    raise ModelRetry("the stream ended without a response")


def _cut(text: str, model: Model) -> ModelResponse:
    kept = f"{text[:MAX_TEXT]}\n\n(The rest was cut: it passed {MAX_TEXT:,} characters.)"
    usage = Usage(output_tokens=estimate_tokens(text))
    return ModelResponse(kept, (), usage, model.name, finish_reason="cut")


def sound(response: ModelResponse) -> ModelResponse:
    """The response in characters that every store can keep: no lone surrogates, no NUL."""
    calls = tuple(
        call.model_copy(update={"name": _clean(call.name), "arguments": _clean(call.arguments)})
        for call in response.tool_calls
    )
    return replace(response, text=_clean(response.text), tool_calls=calls)


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")
