"""What the page is told of a message: a live event. Pure.

The event is a hint; the message itself stands in the outbox, from where the conversation is read,
so that a page that was closed misses nothing.
"""

from typing import Final

from runtime.domain.messages import OutboundMessage
from runtime.domain.value import JsonObject

MAX_PARTS: Final = 4_000
"""Characters of parts that travel along; a bus may carry little more (NOTIFY: 8,000 bytes)."""


def message_event(message: OutboundMessage, *, changed: bool = False) -> JsonObject:
    """The live event of a message. `changed`: a card that was shown before looks different now.

    ``parts`` is left out where it is long, and ``complete`` says so.
    """
    dumped = message.model_dump(mode="json", include={"parts"})
    short = len(message.model_dump_json(include={"parts"})) <= MAX_PARTS
    return {
        "type": "message",
        "session_id": message.session_id,
        "run_id": message.run_id,
        "outbox_id": message.outbox_id,
        "final": message.final,
        "changed": changed,
        "complete": short,
        "parts": dumped["parts"] if short else [],
    }
