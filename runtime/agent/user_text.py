"""What people said, as the model is to see it: fenced, dated, and who they are."""

from collections.abc import Sequence
from typing import Final

from runtime.agent.context import late_mark
from runtime.domain.fence import fence
from runtime.domain.people import Trust
from runtime.domain.transcript import TranscriptMessage, UserMessage
from runtime.sessions.transcripts import Line

PASSED_ON: Final = {"forwarded": "forwarded by", "inline_bot": "written by a bot for"}


def fenced(message: TranscriptMessage, *, group: bool) -> TranscriptMessage:
    """What a member without trust said in a `group`, and what anybody passed on anywhere, marked as
    data for the model (TOOL-11)."""
    if not isinstance(message, UserMessage) or not message.text:
        return message
    if message.authorship != "own":
        source = f"{PASSED_ON[message.authorship]} {message.name}"
    elif group and message.trust in (Trust.GUEST, Trust.BOT):
        source = f"{message.name} ({message.trust})"
    else:
        return message
    return message.model_copy(update={"text": fence(message.text, source)})


def dated(message: TranscriptMessage, zone: str) -> TranscriptMessage:
    """What arrived long after it was sent, with its time (MSG-17)."""
    if not isinstance(message, UserMessage) or message.late_ms is None:
        return message
    return message.model_copy(
        update={"text": f"{late_mark(message.late_ms, zone)}\n{message.text}"}
    )


def people_in(lines: Sequence[Line]) -> tuple[str, ...]:
    """The names of those who spoke lately."""
    names = {
        line.message.name: None
        for line in lines[-50:]
        if isinstance(line.message, UserMessage) and line.message.name
    }
    return tuple(names)
