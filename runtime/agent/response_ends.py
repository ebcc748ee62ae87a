"""What follows from how a response ended (MDL-2): what the person reads behind it, and what the
model is told where its calls did not run. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from runtime.domain.tools import ToolCall
from runtime.domain.transcript import AssistantMessage, TranscriptMessage
from runtime.ports.model import Feature, FinishReason, ModelResponse

CUT_CALLS: Final = 2
"""Responses whose call was cut, one after another, before the run ends."""

_GOOD: Final[frozenset[FinishReason]] = frozenset({"stop", "tool_call", "refusal", "cut"})

_BEHIND_TEXT: Final[dict[FinishReason, str]] = {
    "length": "(This was cut at the length limit; ask me to go on.)",
    "content_filter": "(The provider's content filter ended this answer here.)",
    "error": "(The provider ended this answer with an error, so it may be incomplete.)",
    "unknown": "(The provider ended this answer for a reason that I do not know{word}, so it "
    "may be incomplete.)",
}
_WITHOUT_TEXT: Final[dict[FinishReason, str]] = {
    "length": "The model used up its limit of {limit:,} tokens before it answered. Ask for less at "
    "once, or let the operator raise `agents.max_output_tokens`.",
    "content_filter": "The provider's content filter stopped the answer. Ask in other words.",
    "refusal": "The model refused to answer. Ask in other words.",
    "error": "The provider ended the answer with an error. Please ask again.",
    "unknown": "The provider ended the answer for a reason that I do not know{word}. Please ask "
    "again.",
}
_CUT: Final[dict[FinishReason, str]] = {
    "length": "at the limit of {limit:,} tokens for one response. Write less at once: several "
    "smaller calls, each well below the limit",
    "content_filter": "by the provider's content filter. Go on without what it may have stopped",
    "error": "by an error of the provider. Try again",
    "unknown": "for an unknown reason{word}. Try again",
}


@dataclass(frozen=True, slots=True)
class ResponseEnd:
    """How a response ended, with the `limit` in tokens that it was asked for with."""

    reason: FinishReason
    word: str
    limit: int

    @property
    def good(self) -> bool:
        """Whether the response is whole."""
        return self.reason in _GOOD

    def shown(self, text: str) -> str:
        """A response's text as the person reads it: with why it ended, where that was no good end;
        empty where a response is empty without a reason."""
        table = _BEHIND_TEXT if text.strip() else _WITHOUT_TEXT
        note = self._filled(table.get(self.reason, ""))
        return "\n\n".join(part for part in (text if text.strip() else "", note) if part)

    def told(self, calls: Sequence[ToolCall]) -> str:
        """What the model is told of its calls that did not run."""
        names = ", ".join(dict.fromkeys(call.name for call in calls))
        why = self._filled(_CUT[self.reason])
        return f"Your last response was cut {why}. It was calling {names}; nothing of it has run."

    def _filled(self, text: str) -> str:
        word = f" ({self.word})" if self.word else ""
        return text.format(limit=self.limit, word=word)


_MISSING: Final[dict[Feature, str]] = {
    "pictures": "({model} cannot see pictures, so it answered without them. The command `model` "
    "lists other models.)",
    "tools": "({model} cannot use tools: it reads no files, runs no commands and looks nothing up. "
    "The command `model` lists other models.)",
}
_LEFT_OUT: Final = (
    "(This conversation has more than fits into {model}, so I left older parts out. The command "
    "`new` begins a fresh one.)"
)
_ALONE: Final = (
    "(The provider of {model} refused something in what we said before, so I answered without it "
    "and leave it out from now on.)"
)


def notes_of(response: ModelResponse, said: Iterable[TranscriptMessage]) -> Sequence[str]:
    """What a person is to know of how the model was asked, each once in a conversation: what was
    `said` in it before is not said again."""
    notes = [_MISSING[feature] for feature in sorted(response.missing)]
    if response.alone:
        notes.append(_ALONE)
    elif response.left_out:
        notes.append(_LEFT_OUT)
    if not notes:
        return ()
    before = [one.text for one in said if isinstance(one, AssistantMessage)]
    filled = [note.format(model=response.model) for note in notes]
    return [note for note in filled if not any(note in text for text in before)]


def end_of(response: ModelResponse, limit: int) -> ResponseEnd:
    """The end of a response to a request for at most `limit` tokens."""
    return ResponseEnd(response.finish_reason, response.finish_word, limit)
