"""What the page is told of a message: a live event. Pure.

The event is a hint; the message itself stands in the outbox, from where the conversation is read,
so that a page that was closed misses nothing.
"""

import json
from typing import Final

from pydantic import JsonValue

from runtime.domain.messages import FilePart, OutboundMessage
from runtime.domain.value import JsonObject

MAX_PARTS: Final = 4_000
"""Characters of parts that travel along; a bus may carry little more (NOTIFY: 8,000 bytes)."""


def message_event(message: OutboundMessage, *, changed: bool = False) -> JsonObject:
    """The live event of a message. `changed`: a card that was shown before looks different now.

    ``parts`` is left out where it is long, and ``complete`` says so. ``to`` is the chat in which it
    stands: a subagent's card belongs to its own session, and is shown in the one of its root.
    """
    parts = [_part(message, place) for place in range(len(message.parts))]
    short = len(json.dumps(parts, ensure_ascii=False)) <= MAX_PARTS
    return {
        "type": "message",
        "session_id": message.session_id,
        "to": message.target.model_dump(mode="json"),
        "run_id": message.run_id,
        "outbox_id": message.outbox_id,
        "final": message.final,
        "changed": changed,
        "complete": short,
        "parts": parts if short else [],
    }


def _part(message: OutboundMessage, place: int) -> JsonValue:
    """A part as it is read outside: a file by where it is downloaded, never by its path."""
    part = message.parts[place]
    if not isinstance(part, FilePart):
        return part.model_dump(mode="json", exclude={"names_commands", "buttons"})
    facts = part.model_dump(mode="json", include={"kind", "name", "media_type", "size_bytes"})
    return {**facts, "url": f"/v1/files/{message.outbox_id}/{place}"}
