"""The transcript: a session's messages with tool calls and results, in our own envelope.

Providers' message formats stay inside ``adapters.models``; what is stored is this.
"""

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from runtime.domain.files import ReceivedFile
from runtime.domain.messages import Attachment, Authorship
from runtime.domain.people import Trust
from runtime.domain.tools import ToolCall, ToolResult
from runtime.domain.value import Value

CHARACTERS_PER_TOKEN = 4


class UserMessage(Value):
    """What a person said, as it enters the model's context. ``late_ms``: when they said it, where
    that was long before it arrived (MSG-17). ``authorship``: whose words they are (TOOL-11).
    ``by_model``: a model wrote them, and had itself asked them later; they give no address
    (POL-10)."""

    role: Literal["user"] = "user"
    text: str
    name: str = ""
    trust: Trust = Trust.OWNER
    attachments: tuple[Attachment, ...] = ()
    input_id: str | None = None
    late_ms: int | None = None
    authorship: Authorship = "own"
    by_model: bool = False


class AssistantMessage(Value):
    """What the model said in one step. ``partial`` marks text that was cut by a stop.

    ``thoughts`` is what the provider wants back with it, as `adapters.models` wrote it: for the
    ``model`` that had them alone, and no part of what is shown, exported or searched (MDL-3).
    ``refused``: the provider refused what its run was about, so no prompt holds it (MDL-5).
    """

    role: Literal["assistant"] = "assistant"
    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    model: str = ""
    partial: bool = False
    refused: bool = False
    thoughts: str = Field(default="", exclude=True, repr=False)


class ToolMessage(Value):
    """The results of one step's calls, in the order of the calls."""

    role: Literal["tool"] = "tool"
    results: tuple[ToolResult, ...]


class NoticeMessage(Value):
    """Something the machinery tells the model: a restart, a limit, a dropped part of history.

    With ``file`` it tells what became of a file that came with a message before it. ``untrusted``
    marks that it quotes what content from outside may have led to. A message of another agent may
    have ``attachments``, and is then named by its ``input_id``.
    """

    role: Literal["notice"] = "notice"
    text: str
    file: ReceivedFile | None = None
    attachments: tuple[Attachment, ...] = ()
    input_id: str | None = None
    untrusted: bool = False


TranscriptMessage = Annotated[
    UserMessage | AssistantMessage | ToolMessage | NoticeMessage, Field(discriminator="role")
]
TRANSCRIPT_MESSAGE: TypeAdapter[TranscriptMessage] = TypeAdapter(TranscriptMessage)


def has_untrusted(message: TranscriptMessage) -> bool:
    """Whether a message holds content from outside, which counts as words that a person passed on:
    whoever is given it has read it."""
    if isinstance(message, UserMessage):
        return message.authorship != "own"
    if isinstance(message, NoticeMessage):
        return message.untrusted
    return isinstance(message, ToolMessage) and any(one.untrusted for one in message.results)


def estimate_tokens(text: str) -> int:
    """Tokens of a text, counted as characters / 4, rounded up (CTX-12)."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def message_tokens(message: TranscriptMessage) -> int:
    """What a message costs in the window, by the same estimate."""
    match message:
        case AssistantMessage():
            calls = sum(estimate_tokens(call.name + call.arguments) for call in message.tool_calls)
            # They go back with calls, as a rule.
            thoughts = estimate_tokens(message.thoughts) if message.tool_calls else 0
            return estimate_tokens(message.text) + calls + thoughts + 4
        case ToolMessage():
            return sum(estimate_tokens(result.content) + 4 for result in message.results)
        case _:
            return estimate_tokens(message.text) + 4
