"""What one reader of the event stream gets to see, in order and without silent holes. Pure.

Text deltas carry an offset in their step's text. A reader that joins in the middle, or from whom
the bus dropped something, has a hole: then the running step is asked to publish its text once
more, and nothing of that step is passed on until it comes.

A page gets the text as HTML instead: of the blocks that changed since it was last told, so that
what stands already stays where it is.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from runtime.domain.events import Event
from runtime.domain.value import JsonObject


@dataclass(frozen=True, slots=True)
class Filter:
    """What a reader wants. `kinds` are whole kinds (``run.completed``) or their first word.

    `chat` is where the session stands: messages to it are wanted from whichever session they are,
    because subagents ask there (APR-7). `html` wants ``prose`` events in the place of ``delta``.
    """

    session_id: str | None = None
    run_id: str | None = None
    kinds: frozenset[str] = frozenset()
    chat: JsonObject | None = None
    html: bool = False

    def wants_kind(self, kind: str) -> bool:
        """Whether an event of this kind is asked for."""
        return not self.kinds or kind in self.kinds or kind.partition(".")[0] in self.kinds

    def wants_event(self, event: Event) -> bool:
        """Whether a durable event is of the session and the run that are asked for."""
        return self.session_id in (None, event.session_id) and self.run_id in (None, event.run_id)

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


PROSE_PAUSE_S: Final = 0.05
SLOWER_BY: Final = 100_000
"""Characters for which the pause is a second longer: a long text is shown in larger pieces, since
all of it is read anew each time."""
Render = Callable[[str], Sequence[str]]


@dataclass(slots=True)
class _Growing:
    """The text of a step. `shown` are the blocks that the reader has; `told` says that it knows of
    the text at all, `changed` that more of it came."""

    session_id: str
    step: int
    pieces: list[str]
    shown: Sequence[str] = ()
    told: bool = False
    changed: bool = True

    @property
    def text(self) -> str:
        if len(self.pieces) > 1:
            self.pieces = ["".join(self.pieces)]
        return self.pieces[0]


@dataclass(slots=True)
class Prose:
    """Running texts as one reader sees them, by run: blocks of HTML. `growing` renders a text of
    which more will come, `whole` one that is complete."""

    growing: Render
    whole: Render
    texts: dict[str, _Growing] = field(default_factory=dict)

    def take(self, data: JsonObject) -> None:
        """A delta that follows on what was taken (`Texts`), or the text of a step once more."""
        run, text, step = str(data["run_id"]), str(data["text"]), _number(data, "step")
        known = self.texts.get(run)
        if known is None or known.step != step:
            self.texts[run] = _Growing(str(data["session_id"]), step, [text])
            return
        known.changed = True
        known.pieces = [text] if _number(data, "offset") == 0 else [*known.pieces, text]

    def news(self) -> list[JsonObject]:
        """What readers are to be told of texts that grew."""
        grown = [run for run, text in self.texts.items() if text.changed]
        return [event for run in grown if (event := self._event(run, self.growing)) is not None]

    def end(self, run: str) -> JsonObject | None:
        """A run's text is complete; None where all of it is shown already."""
        event = self._event(run, self.whole) if run in self.texts else None
        self.texts.pop(run, None)
        return event

    def pause_s(self) -> float | None:
        """How long to wait for more before anything is told; None where there is nothing."""
        sizes = [len(text.text) for text in self.texts.values() if text.changed]
        return PROSE_PAUSE_S + max(sizes) / SLOWER_BY if sizes else None

    def _event(self, run: str, render: Render) -> JsonObject | None:
        text = self.texts[run]
        blocks = render(text.text)
        same = 0
        for old, new in zip(text.shown, blocks, strict=False):
            if old != new:
                break
            same += 1
        if text.told and same == len(blocks) == len(text.shown):
            text.changed = False
            return None
        since = same if text.told else 0
        text.shown, text.told, text.changed = blocks, True, False
        return {
            "type": "prose",
            "session_id": text.session_id,
            "run_id": run,
            "step": text.step,
            "since": since,
            "blocks": list(blocks[since:]),
        }


def _number(data: JsonObject, name: str) -> int:
    found = data[name]
    return found if isinstance(found, int) else -1


def durable(event: Event) -> bytes:
    """An event with its position as id, so that a reader goes on behind it (WHATWG HTML, SSE)."""
    text = event.model_dump_json()
    return f"id: {event.position}\nevent: {event.kind}\ndata: {text}\n\n".encode()


def live(kind: str, data: JsonObject, *, position: int | None = None) -> bytes:
    """An event that is not kept; only `position` gives it an id."""
    head = "" if position is None else f"id: {position}\n"
    return f"{head}event: {kind}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


HEARTBEAT = b": heartbeat\n\n"
RETRY = b"retry: 1000\n\n"
