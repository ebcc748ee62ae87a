"""What a session was told, as far as its window goes, and the sessions above it (POL-10).

A session below another hears of people by that one alone: what looks like a person's message there
is what a model wrote. So what people said is found in the sessions above it.
"""

from collections.abc import Sequence

from runtime.domain.transcript import AssistantMessage, TranscriptMessage, UserMessage
from runtime.sessions import lanes, transcripts
from runtime.store import Connection

Heard = Sequence[TranscriptMessage]


def heard(conn: Connection, session_id: str) -> Sequence[Heard]:
    """What is in the windows of a session and of all above it, nearest first."""
    below = lanes.parent_of(conn, session_id) is not None
    return [as_heard(_window(conn, session_id), below=below), *above(conn, session_id)]


def above(conn: Connection, session_id: str) -> Sequence[Heard]:
    """What is in the windows of the sessions above one, nearest first."""
    found: list[Heard] = []
    parent = lanes.parent_of(conn, session_id)
    while parent is not None:
        above_it = lanes.parent_of(conn, parent)
        found.append(as_heard(_window(conn, parent), below=above_it is not None))
        parent = above_it
    return found


def as_heard(messages: Heard, *, below: bool) -> Heard:
    """The messages of a session; what was said to one `below` another is a model's words."""
    if not below:
        return messages
    return [
        AssistantMessage(text=one.text) if isinstance(one, UserMessage) else one for one in messages
    ]


def _window(conn: Connection, session_id: str) -> Heard:
    transcript, first = lanes.window(conn, session_id)
    lines = transcripts.since(conn, session_id, transcript=transcript, first=first)
    return [line.message for line in lines]
