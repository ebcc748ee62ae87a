"""The model: one request in, a stream of text and one response out."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol

from runtime.domain.runs import Usage
from runtime.domain.tools import ToolCall, ToolSpec
from runtime.domain.transcript import TranscriptMessage


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """Everything the model sees.

    ``system`` and ``messages`` but for the newest turn are byte-stable between turns (CTX-3);
    ``present`` changes every turn and is put with the newest turn. ``run_id`` and ``step`` are
    for logs and for deterministic fakes, never sent.
    """

    system: str
    messages: tuple[TranscriptMessage, ...]
    present: str
    tools: tuple[ToolSpec, ...]
    max_output_tokens: int
    run_id: str
    step: int


@dataclass(frozen=True, slots=True)
class TextChunk:
    """A piece of the response's text, as it arrives."""

    text: str


@dataclass(frozen=True, slots=True)
class ModelResponse:
    """The whole response; always the stream's last item."""

    text: str
    tool_calls: tuple[ToolCall, ...]
    usage: Usage
    model: str
    finish_reason: str = "stop"


class Model(Protocol):
    """One model of one provider."""

    @property
    def name(self) -> str:
        """``provider:name``, as configured."""
        ...

    @property
    def context_tokens(self) -> int:
        """The size of the context window in tokens."""
        ...

    def respond(self, request: ModelRequest) -> AsyncIterator[TextChunk | ModelResponse]:
        """Stream a response; closing the iterator ends the request at once.

        Raises `ModelRetry` or `ModelRejected`.
        """
        ...


class Models(Protocol):
    """The configured models by name."""

    @property
    def default(self) -> str: ...

    @property
    def fallback(self) -> tuple[str, ...]: ...

    def get(self, name: str) -> Model:
        """Raises `InvalidInput` for a name that no provider knows."""
        ...

    def names(self) -> tuple[str, ...]:
        """What `/model` offers."""
        ...
