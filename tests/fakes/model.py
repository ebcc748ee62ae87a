"""A model that says what the test wrote down, and stops where the test wants to look.

Held honest by ``tests/contract/models``: it streams and fails as a provider's model does.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from adapters.models.call_ids import call_id
from runtime.domain.errors import InvalidInput, ModelError
from runtime.domain.routes import Generation
from runtime.domain.runs import Usage
from runtime.domain.tools import ToolCall
from runtime.ports.model import Feature, FinishReason, Model, ModelRequest, ModelResponse, TextChunk

DEFAULT_NAME: Final = "scripted:model"
USAGE: Final = Usage(input_tokens=100, output_tokens=10, cost_usd=0.001)


@dataclass(slots=True)
class Gate:
    """Holds a stream: `reached` is set when it gets there, and it goes on when `open` is."""

    reached: asyncio.Event = field(default_factory=asyncio.Event)
    open: asyncio.Event = field(default_factory=asyncio.Event)

    async def wait(self) -> None:
        """Pass, as soon as the test opens the gate."""
        self.reached.set()
        await self.open.wait()


@dataclass(frozen=True, slots=True)
class Said:
    """One response. ``calls`` are (tool, JSON text of arguments); ids are made from run and step.

    The stream waits at ``before`` before anything comes, and at ``middle`` after the chunk number
    ``at``. ``error`` ends it, behind the first ``at`` chunks, or before all text where ``at`` is 0.
    """

    text: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    chunk: int = 8
    before: Gate | None = None
    middle: Gate | None = None
    at: int = 0
    error: ModelError | None = None
    usage: Usage = USAGE
    finish_reason: FinishReason | None = None
    thoughts: str = ""
    missing: frozenset[Feature] = frozenset()

    @property
    def chunks(self) -> tuple[str, ...]:
        """The text in pieces of ``chunk`` characters."""
        return tuple(
            self.text[start : start + self.chunk] for start in range(0, len(self.text), self.chunk)
        )


Script = Sequence[Said | str | ModelError] | Callable[[ModelRequest], Said | str | ModelError]


class ScriptedModel:
    """`Model` from a list, which must be long enough, or from a function of the request.

    ``requests`` holds every request, ``closed`` counts streams that were closed before their end.
    Of a generation it takes all fields but those that are ``refused``.
    """

    def __init__(
        self,
        script: Script = (),
        *,
        name: str = DEFAULT_NAME,
        context_tokens: int = 100_000,
        refused: Collection[str] = (),
    ) -> None:
        self._script = script
        self._name = name
        self._context_tokens = context_tokens
        self.refused = refused
        self.requests: list[ModelRequest] = []
        self.closed = 0

    @property
    def name(self) -> str:
        return self._name

    @property
    def context_tokens(self) -> int:
        return self._context_tokens

    async def unfit(self, generation: Generation) -> Mapping[str, str]:
        """As `Model.unfit`: what was said to be `refused`."""
        return {name: "cannot be set here" for name in generation.given if name in self.refused}

    async def respond(
        self, request: ModelRequest
    ) -> AsyncGenerator[TextChunk | ModelResponse, None]:
        """As `Model.respond`. Fails the test when the script is at its end."""
        self.requests.append(request)
        said = self._next(request)
        done = False
        try:
            if said.before is not None:
                await said.before.wait()
            for number, text in enumerate(said.chunks):
                if number == said.at and said.error is not None:
                    break
                yield TextChunk(text)
                if number + 1 == said.at and said.middle is not None:
                    await said.middle.wait()
            done = True
            if said.error is not None:
                raise said.error
            yield self._response(request, said)
        finally:
            self.closed += not done

    def _next(self, request: ModelRequest) -> Said:
        if callable(self._script):
            said = self._script(request)
        else:
            place = len(self.requests) - 1
            assert place < len(self._script), (
                f"the script has {len(self._script)} responses, this is request {place + 1}"
            )
            said = self._script[place]
        if isinstance(said, str):
            return Said(said)
        return Said(error=said) if isinstance(said, ModelError) else said

    def _response(self, request: ModelRequest, said: Said) -> ModelResponse:
        calls = tuple(
            ToolCall(
                id=call_id(request.run_id, request.step, place), name=name, arguments=arguments
            )
            for place, (name, arguments) in enumerate(said.calls)
        )
        return ModelResponse(
            text=said.text,
            tool_calls=calls,
            usage=said.usage,
            model=self._name,
            finish_reason=said.finish_reason or ("tool_call" if calls else "stop"),
            thoughts=said.thoughts,
            missing=said.missing,
        )


class ScriptedModels:
    """`Models` over given models; the first is the default."""

    def __init__(self, *models: Model, fallback: Sequence[str] = ()) -> None:
        self._models = {model.name: model for model in models or (ScriptedModel(),)}
        self._fallback = tuple(fallback)

    @property
    def default(self) -> str:
        return next(iter(self._models))

    @property
    def fallback(self) -> tuple[str, ...]:
        return self._fallback

    def get(self, name: str) -> Model:
        """Raises `InvalidInput` for a name that was not given."""
        if name not in self._models:
            raise InvalidInput(
                "model", f"{name!r} is no model; there are {', '.join(self.names())}"
            )
        return self._models[name]

    def names(self) -> tuple[str, ...]:
        return tuple(self._models)
