"""What a session was told, as far as its window goes; and the sessions above a child (POL-10).

A child hears of people by its parent alone: what looks like a person's message there is what a
model wrote. So what people said is found in the sessions above it.
"""

from collections.abc import Sequence

from runtime.domain.transcript import AssistantMessage, TranscriptMessage, UserMessage
from runtime.store import Connection, agents, lanes, transcripts

Heard = Sequence[TranscriptMessage]


def heard(conn: Connection, session_id: str) -> Sequence[Heard]:
    """What is in the windows of a session and of all above it, nearest first."""
    child = agents.find(conn, session_id) is not None
    return [as_heard(_window(conn, session_id), child=child), *above(conn, session_id)]


def above(conn: Connection, session_id: str) -> Sequence[Heard]:
    """What is in the windows of the sessions above a child, nearest first."""
    found: list[Heard] = []
    agent = agents.find(conn, session_id)
    while agent is not None:
        parent = agents.find(conn, agent.parent_id)
        found.append(as_heard(_window(conn, agent.parent_id), child=parent is not None))
        agent = parent
    return found


def as_heard(messages: Heard, *, child: bool) -> Heard:
    """The messages of a session; what was said to a child counts as said by a model."""
    if not child:
        return messages
    return [
        AssistantMessage(text=one.text) if isinstance(one, UserMessage) else one for one in messages
    ]


def _window(conn: Connection, session_id: str) -> Heard:
    transcript, first = lanes.window(conn, session_id)
    lines = transcripts.since(conn, session_id, transcript=transcript, first=first)
    return [line.message for line in lines]
