"""Values that rows hold as JSON, read as leniently as two versions on one database need.

While a deployment is upgraded a row may have been written by the next version, whose values have
fields that this one does not know: they are passed over. What arrives from outside is read
strictly; what the gateway itself wrote is not a place to find typing errors.
"""

import json
from typing import TypeVar

from pydantic import BaseModel

from runtime.domain.transcript import TRANSCRIPT_MESSAGE, AssistantMessage, TranscriptMessage

M = TypeVar("M", bound=BaseModel)


def kept(model: type[M], payload: str) -> M:
    """The value that a row holds. Raises pydantic's ValidationError for one that is no `model`."""
    return model.model_validate_json(payload, extra="ignore")


def kept_message(payload: str) -> TranscriptMessage:
    """A message of a transcript; raises as `kept`."""
    return TRANSCRIPT_MESSAGE.validate_json(payload, extra="ignore")


def message_payload(message: TranscriptMessage) -> str:
    """What a row holds of a message. A model's thoughts stand only here."""
    text = message.model_dump_json()
    if isinstance(message, AssistantMessage) and message.thoughts:
        return f'{text[:-1]},"thoughts":{json.dumps(message.thoughts, ensure_ascii=False)}}}'
    return text


def quoted(text: str) -> str:
    """A text as it stands in JSON that we wrote, to look for it there."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
