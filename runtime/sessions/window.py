"""The history window: a bounded tail of the transcript whose start moves rarely.

A start that moved with every turn would change the prompt's prefix each time and make provider
caches useless (CTX-3); so the window grows to its limit and is then cut to half at once. The cut
falls in front of a person's message, never between a tool call and its result.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from runtime.domain.transcript import (
    AssistantMessage,
    NoticeMessage,
    ToolMessage,
    TranscriptMessage,
    UserMessage,
    message_tokens,
)
from runtime.sessions.transcripts import Line

MAX_MESSAGES = 200
BLANK_ABOVE = 200
"""Characters of a tool result that are never worth dropping."""


REFUSED: Final = "A message was left out here, because the model's provider refused it."


def window_start(
    lines: Sequence[Line], *, max_tokens: int, max_messages: int = MAX_MESSAGES
) -> int:
    """The index at which the window of a turn starts: 0 while everything fits."""
    tokens = sum(line.tokens for line in lines)
    if tokens <= max_tokens and len(lines) <= max_messages:
        return 0
    least = 0
    while least < len(lines) and (
        tokens > max_tokens // 2 or len(lines) - least > max_messages // 2
    ):
        tokens -= lines[least].tokens
        least += 1
    places = _cuts(lines)
    # The newest turn stays whole even where it alone is over the budget.
    newest = places[-1] if places else 0
    return next((place for place in places if place >= least), newest)


def _cuts(lines: Sequence[Line]) -> list[int]:
    """Where a window may start: at a person's message, unless calls before it await results.

    What was said to a run at work belongs to its turn, so no window starts there (MSG-5), unless
    the run had given an answer just before.
    """
    places = []
    waiting = answered = False
    for place, line in enumerate(lines):
        message = line.message
        if isinstance(message, AssistantMessage):
            waiting = bool(message.tool_calls)
        elif isinstance(message, ToolMessage):
            waiting = False
        elif isinstance(message, UserMessage) and (line.step == 0 or answered) and not waiting:
            places.append(place)
        answered = _is_answer(message)
    return places


def without_refused(lines: Sequence[Line], run_id: str) -> Sequence[Line]:
    """The lines without what earlier runs than `run_id` were about that a provider refused: one
    notice stands in place of each (MDL-5)."""
    refused = {
        line.run_id
        for line in lines
        if isinstance(line.message, AssistantMessage) and line.message.refused
    } - {run_id}
    if not refused:
        return lines
    kept: list[Line] = []
    told: set[str | None] = set()
    for line in lines:
        if line.run_id not in refused:
            kept.append(line)
        elif line.run_id not in told:
            told.add(line.run_id)
            kept.append(replace(line, message=NoticeMessage(text=REFUSED)))
    return kept


def since_answer(lines: Sequence[Line], run_id: str) -> Sequence[Line]:
    """A run's lines behind the last answer that it gave and went on from; else all of them."""
    own = [line for line in lines if line.run_id == run_id]
    answers = [place for place, line in enumerate(own, start=1) if _is_answer(line.message)]
    return own[answers[-1] :] if answers else own


def _is_answer(message: TranscriptMessage) -> bool:
    if not isinstance(message, AssistantMessage):
        return False
    return not message.tool_calls and not message.partial


def fitted(
    messages: Sequence[TranscriptMessage], *, max_tokens: int
) -> tuple[TranscriptMessage, ...]:
    """The messages with the oldest tool results blanked until all fit into `max_tokens`.

    For the one case that `window_start` cannot help: a single turn that is over the budget by what
    its own tools gave. The newest results always stay whole.
    """
    tokens = sum(message_tokens(message) for message in messages)
    if tokens <= max_tokens:
        return tuple(messages)
    kept = list(messages)
    results = [place for place, message in enumerate(kept) if isinstance(message, ToolMessage)]
    for place in results[:-1]:
        message = kept[place]
        if isinstance(message, ToolMessage) and tokens > max_tokens:
            blank = _blanked(message)
            tokens += message_tokens(blank) - message_tokens(message)
            kept[place] = blank
    return tuple(kept)


def _blanked(message: ToolMessage) -> ToolMessage:
    return ToolMessage(
        results=tuple(
            result.model_copy(
                update={
                    "content": f"[{len(result.content):,} characters were dropped to make room"
                    + (f"; all of it is in {path}]" if (path := result.whole_output_path) else "]")
                }
            )
            if len(result.content) > BLANK_ABOVE
            else result
            for result in message.results
        )
    )


@dataclass(frozen=True, slots=True)
class Window:
    """What a worker remembers of one session: lines of one transcript up to its end, as it was
    after so many turns were `undone` in the session (MSG-22)."""

    transcript: int
    lines: tuple[Line, ...]
    undone: int = 0

    @property
    def last(self) -> int:
        """The highest sequence number held, 0 when empty."""
        return self.lines[-1].seq if self.lines else 0


class WindowCache:
    """Windows of recently active sessions, so that a turn reads only what is new to it.

    Rows of a transcript never change, so a remembered prefix is right until a turn in it is taken
    back; another replica's appended rows are read like anybody's. Bounded in sessions; reading it
    from the store's thread is safe, because values are immutable.
    """

    def __init__(self, limit: int = 512) -> None:
        self._limit = limit
        self._windows: OrderedDict[str, Window] = OrderedDict()

    def get(self, session_id: str, transcript: int, undone: int = 0) -> Window:
        """What is remembered, or an empty window."""
        found = self._windows.get(session_id)
        if found is None or (found.transcript, found.undone) != (transcript, undone):
            return Window(transcript, (), undone)
        return found

    def put(self, session_id: str, window: Window) -> None:
        """Remember a session's window; the least recently stored one is forgotten."""
        self._windows[session_id] = window
        self._windows.move_to_end(session_id)
        while len(self._windows) > self._limit:
            self._windows.popitem(last=False)
