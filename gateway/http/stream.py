"""What one reader of the event stream gets to see, in order and without silent holes. Pure.

Text deltas carry an offset in their step's text. A reader that joins in the middle, or from whom
the bus dropped something, has a hole: then the running step is asked to publish its text once
more, and nothing of that step is passed on until it comes.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from runtime.domain.value import JsonObject
from runtime.views.models import EventView


@dataclass(frozen=True, slots=True)
class Filter:
    """What a reader wants. `kinds` are whole kinds (``run.completed``) or their first word.

    `chat` is where the session stands: messages to it are wanted from whichever session they are,
    because subagents ask there (APR-7).
    """

    session_id: str | None = None
    run_id: str | None = None
    kinds: frozenset[str] = frozenset()
    chat: JsonObject | None = None

    def wants_kind(self, kind: str) -> bool:
        """Whether an event of this kind is asked for."""
        return not self.kinds or kind in self.kinds or kind.partition(".")[0] in self.kinds

    def wants_live(self, data: Mapping[str, object]) -> bool:
        """Whether a live event is."""
        return (
            self.wants_kind(str(data.get("type")))
            and (self.session_id in (None, data.get("session_id")) or self._said_here(data))
            and self.run_id in (None, data.get("run_id"))
        )

    def _said_here(self, data: Mapping[str, object]) -> bool:
        return self.chat is not None and data.get("to") == self.chat


@dataclass(slots=True)
class Texts:
    """How far each running step's text has been passed on, by run."""

    reached: dict[str, tuple[int, int]] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)

    def take(self, data: JsonObject) -> bool:
        """Whether a delta follows on what was passed on; if not, `missing` is to be asked for."""
        run, step, offset = str(data["run_id"]), _number(data, "step"), _number(data, "offset")
        text = str(data["text"])
        if offset == 0:
            self.reached[run] = (step, len(text))
            self.asked.discard(run)
            return True
        if self.reached.get(run) != (step, offset):
            return False
        self.reached[run] = (step, offset + len(text))
        return True

    def missing(self, run: str) -> bool:
        """Whether the text of a run must be asked for now; False while it has been asked."""
        self.reached.pop(run, None)
        if run in self.asked:
            return False
        self.asked.add(run)
        return True

    def lost(self) -> None:
        """Something was dropped: nothing that was reached holds any more."""
        self.reached.clear()
        self.asked.clear()

    def ended(self, run: str) -> None:
        """A run is over."""
        self.reached.pop(run, None)
        self.asked.discard(run)


def _number(data: JsonObject, name: str) -> int:
    found = data[name]
    return found if isinstance(found, int) else -1


def durable(event: EventView) -> bytes:
    """An event with its position as id, so that a reader goes on behind it (WHATWG HTML, SSE)."""
    text = event.model_dump_json()
    return f"id: {event.position}\nevent: {event.kind}\ndata: {text}\n\n".encode()


def live(kind: str, data: JsonObject, *, position: int | None = None) -> bytes:
    """An event that is not kept; only `position` gives it an id."""
    head = "" if position is None else f"id: {position}\n"
    return f"{head}event: {kind}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


HEARTBEAT = b": heartbeat\n\n"
RETRY = b"retry: 1000\n\n"
