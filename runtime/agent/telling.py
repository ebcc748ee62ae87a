"""How what was said reaches the model: fenced where its author is not trusted, dated where late."""

from collections.abc import Sequence

from runtime.agent.context import late_mark
from runtime.domain.fence import fence
from runtime.domain.people import Trust
from runtime.domain.transcript import TranscriptMessage, UserMessage
from runtime.store.transcripts import Line


def fenced(message: TranscriptMessage) -> TranscriptMessage:
    """What a member without trust said in a group, marked as data for the model (TOOL-11)."""
    if not isinstance(message, UserMessage) or message.trust not in (Trust.GUEST, Trust.BOT):
        return message
    source = f"{message.name} ({message.trust})"
    return message.model_copy(update={"text": fence(message.text, source)})


def dated(message: TranscriptMessage, zone: str) -> TranscriptMessage:
    """What arrived long after it was sent, with its time (MSG-17)."""
    if not isinstance(message, UserMessage) or message.late_ms is None:
        return message
    return message.model_copy(
        update={"text": f"{late_mark(message.late_ms, zone)}\n{message.text}"}
    )


def people(lines: Sequence[Line]) -> tuple[str, ...]:
    """The names of those who spoke lately, in order."""
    names = {
        line.message.name: None
        for line in lines[-50:]
        if isinstance(line.message, UserMessage) and line.message.name
    }
    return tuple(names)
