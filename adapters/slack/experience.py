"""Which of Slack's two experiences an application has, known by the events that arrive (SLK-9).

In the agent view each root message of the direct chat is a thread; in the assistant view threads
are opened beside a channel. An application may have neither. What a person looks at comes from
outside: it is words of anybody, cut to a bound, and the engine fences it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from runtime.domain.json_fields import object_of, objects_of, text_of
from runtime.domain.printable import printable_name
from runtime.domain.value import JsonObject

Experience = Literal["agent", "assistant"]
VIEWS: Final[Mapping[Experience, str]] = {"agent": "agent view", "assistant": "assistant view"}
"""What Slack calls them."""
ASSISTANT_VIEW_ENDS: Final = "February 2027"
"""When Slack ends the assistant view, also for applications that have it."""
ASSISTANT_ROOT: Final = "assistant_app_thread"
"""The subtype of the message that an assistant thread begins with."""
_AGENT_EVENTS: Final = frozenset(
    {"agent_session_stopped", "agent_session_title_changed", "app_context_changed"}
)
_ASSISTANT_EVENTS: Final = frozenset(
    {"assistant_thread_context_changed", "assistant_thread_started"}
)
_MOST_ENTITIES: Final = 5
_MOST_ID: Final = 80
_KINDS: Final = {
    "slack#/types/channel_id": "channel",
    "slack#/types/canvas_id": "canvas",
    "slack#/types/list_id": "list",
}


@dataclass(frozen=True, slots=True)
class Viewed:
    """One thing that a person looks at: `kind` is channel, canvas, list or message. `id` names it
    in Slack; of a message it is the channel, and `ts` the message."""

    kind: str
    id: str
    ts: str = ""


def experience_of(event: JsonObject) -> Experience | None:
    """What an event proves of the application that hears it; None where it proves nothing.

    Slack adds a context, if only an empty one, to direct messages and to openings of the
    application in the agent view alone.
    """
    kind = text_of(event, "type")
    if kind in _AGENT_EVENTS:
        return "agent"
    if kind in _ASSISTANT_EVENTS:
        return "assistant"
    if kind in ("message", "app_home_opened") and _context_of(event) is not None:
        return "agent"
    return None


def viewed_in(event: JsonObject) -> tuple[Viewed, ...]:
    """What its writer looks at, the most relevant first and at most five things."""
    entities = objects_of(_context_of(event) or {}, "entities")
    return tuple(_viewed(entities[:_MOST_ENTITIES]))


def description_of(viewed: tuple[Viewed, ...], names: dict[str, str]) -> str:
    """The lines for the model. `names` has the channels whose name the person may know."""
    lines = []
    for each in viewed:
        name = names.get(each.id, "")
        shown = f"#{name} ({each.id})" if name else each.id
        lines.append(f"message {each.ts} in {shown}" if each.ts else f"{each.kind} {shown}")
    return "\n".join(lines)


def _context_of(event: JsonObject) -> JsonObject | None:
    for key in ("app_context", "context"):
        if isinstance(event.get(key), dict):
            return object_of(event, key)
    return None


def _viewed(entities: list[JsonObject]) -> Iterator[Viewed]:
    for entity in entities:
        kind, value = text_of(entity, "type"), object_of(entity, "value")
        if kind == "slack#/types/message_context":
            chat = text_of(value, "channel_id") or text_of(value, "channel")
            if chat:
                yield Viewed("message", _safe(chat), _safe(text_of(value, "message_ts")))
        elif text_of(entity, "value"):
            yield Viewed(_KINDS.get(kind, "item"), _safe(text_of(entity, "value")))


def _safe(identifier: str) -> str:
    return printable_name(identifier, _MOST_ID)
