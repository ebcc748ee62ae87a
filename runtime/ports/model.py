"""The model: one request in, a stream of text and one response out."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from runtime.domain.files import ReceivedFile
from runtime.domain.routes import AS_IT_IS, Generation
from runtime.domain.runs import Usage
from runtime.domain.tools import ToolCall, ToolSpec
from runtime.domain.transcript import NoticeMessage, TranscriptMessage


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """Everything the model sees.

    ``system`` and ``messages`` but for the newest turn are byte-stable between turns (CTX-3);
    ``present`` changes every turn and is put with the newest turn. ``run_id`` and ``step`` are
    for logs and for deterministic fakes, never sent. ``enclosed`` holds, by digest, the content of
    those files of ``messages`` that may be shown themselves; each provider shows what it can.
    Of ``generation`` everything is sent but its bound on tokens, which is in
    ``max_output_tokens``.
    """

    system: str
    messages: tuple[TranscriptMessage, ...]
    present: str
    tools: tuple[ToolSpec, ...]
    max_output_tokens: int
    run_id: str
    step: int
    enclosed: Mapping[str, bytes] = field(default_factory=dict)
    generation: Generation = AS_IT_IS

    @property
    def enclosed_tokens(self) -> int:
        """What the enclosed files cost, by estimate."""
        return sum(file.tokens for file in self.files if file.digest in self.enclosed)

    @property
    def files(self) -> tuple[ReceivedFile, ...]:
        """The files that are told of, each once, in order."""
        found = (one.file for one in self.messages if isinstance(one, NoticeMessage))
        return tuple({file.digest or file.line: file for file in found if file}.values())


@dataclass(frozen=True, slots=True)
class TextChunk:
    """A piece of the response's text, as it arrives; empty where something else of the response
    did, so that whoever watches knows that the model is at work (SUB-21). `anew`: what came before
    it was no part of the answer."""

    text: str
    anew: bool = False


FinishReason = Literal[
    "stop", "length", "tool_call", "content_filter", "refusal", "error", "unknown", "cut"
]
"""Why a response ended, whatever the provider calls it (MDL-2). Of these only "stop", "tool_call"
and "refusal" are good ends; "cut" is the gateway's own, for a text that nobody could read."""


Feature = Literal["pictures", "tools"]
"""What a model may lack, so that it was asked without (MDL-4)."""


@dataclass(frozen=True, slots=True)
class ModelResponse:
    """The whole response; always the stream's last item. `finish_word` is what the provider calls
    the reason why it ended, empty where it is nothing that can be shown. `thoughts` are for nobody
    but the model that had them, see `AssistantMessage`; `missing` is what the request held and the
    model does not take. `left_out` counts the messages that did not fit or were shortened, `alone`
    says that the provider took the newest turn only without what came before it."""

    text: str
    tool_calls: tuple[ToolCall, ...]
    usage: Usage
    model: str
    finish_reason: FinishReason = "stop"
    finish_word: str = ""
    thoughts: str = ""
    missing: frozenset[Feature] = frozenset()
    left_out: int = 0
    alone: bool = False


class Model(Protocol):
    """One model of one provider."""

    @property
    def name(self) -> str:
        """``provider:name``, as configured."""
        ...

    @property
    def context_tokens(self) -> int | None:
        """The size of the context window in tokens, None where nobody knows."""
        ...

    def respond(self, request: ModelRequest) -> AsyncIterator[TextChunk | ModelResponse]:
        """Stream a response; closing the iterator ends the request at once.

        Raises `ModelRetry` or `ModelRejected`.
        """
        ...

    async def unfit(self, generation: Generation) -> Mapping[str, str]:
        """What of it this model cannot take, by field, each with the rule; nothing is asked of the
        provider. Raises `ModelRejected` where the provider's library is missing."""
        ...


@dataclass(frozen=True, slots=True)
class ModelListing:
    """What `/model` may choose. Of `unlisted` providers, which keep no list, any name may be right;
    `silent` says why another's list could not be read, `missing` what has to be set for it."""

    names: tuple[str, ...]
    unlisted: tuple[str, ...] = ()
    silent: Mapping[str, str] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)


class ModelLists(Protocol):
    """What the providers offer, by their own lists."""

    async def listing(self) -> ModelListing:
        """What may be chosen now; takes seconds at most, and never raises."""
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
        """The models that are ready without asking a provider."""
        ...
