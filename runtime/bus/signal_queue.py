"""Signals that wait to be sent to the other replicas: bounded, and text that waits is joined.

Consecutive text deltas of one step become one while they wait, up to a length that fits a small
payload, so that a fast stream does not flood the server; longer deltas are cut, each piece with
its own offset. A session's signals keep their order; a joined delta may pass the signals of other
sessions. When the queue is full the oldest give way, and the numbering shows it.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Final

import structlog
from pydantic import ValidationError

from runtime.bus.signal_format import MAX_SIGNAL_BYTES, Encoder, to_json
from runtime.domain.events import TextDelta
from runtime.ports.bus import LIVE, Signal

log = structlog.get_logger(__name__)

TEXT_CHARS: Final = 2_000
"""Most characters of a delta that is sent: up to three bytes each fit PostgreSQL's 8,000."""
MAX_WAITING: Final = 4_096
MAX_WAITING_CHARS: Final = 4_000_000


@dataclass(slots=True)
class _Whole:
    """A signal as it will be sent; without a body it only takes a number, so that it is missed."""

    body: str

    @property
    def size(self) -> int:
        return len(self.body)


@dataclass(slots=True)
class _Text:
    """A delta that may still grow."""

    first: TextDelta
    pieces: list[str] = field(default_factory=list)
    size: int = 0

    def add(self, text: str) -> None:
        self.pieces.append(text)
        self.size += len(text)

    def continues(self, delta: TextDelta) -> bool:
        """Whether `delta` begins where this one ends, and both are short enough together."""
        return (
            (delta.run_id, delta.step) == (self.first.run_id, self.first.step)
            and delta.offset == self.first.offset + self.size
            and self.size + len(delta.text) <= TEXT_CHARS
        )

    @property
    def body(self) -> str:
        delta = self.first.model_copy(update={"text": "".join(self.pieces)})
        return to_json(Signal(topic=LIVE, data={"type": "delta", **delta.model_dump(mode="json")}))


class Outgoing:
    """The queue of one replica. `dropped` counts what was lost here since it was last set to 0."""

    def __init__(
        self, encoder: Encoder, *, limit: int = MAX_WAITING, limit_chars: int = MAX_WAITING_CHARS
    ) -> None:
        self.dropped = 0
        self._encoder = encoder
        self._limit = limit
        self._limit_chars = limit_chars
        self._chars = 0
        self._waiting: deque[_Whole | _Text] = deque()
        self._growing: dict[str, _Text] = {}
        """Session -> the waiting delta that its next one may join."""

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, signal: Signal) -> None:
        """Let a signal wait; may drop the oldest that do."""
        delta = _delta_of(signal)
        if delta is not None:
            for start in range(0, max(len(delta.text), 1), TEXT_CHARS):
                text = delta.text[start : start + TEXT_CHARS]
                self._put_text(
                    delta.model_copy(update={"offset": delta.offset + start, "text": text})
                )
        else:
            self._put_whole(signal)
        while len(self._waiting) > self._limit or self._chars > self._limit_chars:
            self._pop()
            self._encoder.skip()
            self.dropped += 1

    def take(self, *, max_bytes: int, most: int) -> list[str]:
        """Payloads of the oldest signals; as many signals as make about `most` of them."""
        payloads: list[str] = []
        while self._waiting and len(payloads) < most:
            if body := self._pop().body:
                payloads += self._encoder.encode(body, max_bytes)
            else:
                self._encoder.skip()
        return payloads

    def _put_text(self, delta: TextDelta) -> None:
        growing = self._growing.get(delta.session_id)
        if growing is None or not growing.continues(delta):
            growing = self._growing[delta.session_id] = _Text(delta)
            self._waiting.append(growing)
        growing.add(delta.text)
        self._chars += len(delta.text)

    def _put_whole(self, signal: Signal) -> None:
        self._growing.pop(str(signal.data.get("session_id")), None)
        body = to_json(signal)
        if len(body.encode()) > MAX_SIGNAL_BYTES:
            log.warning("signal_too_long", topic=signal.topic, characters=len(body))
            self.dropped += 1
            body = ""
        self._waiting.append(_Whole(body))
        self._chars += len(body)

    def _pop(self) -> _Whole | _Text:
        entry = self._waiting.popleft()
        self._chars -= entry.size
        if isinstance(entry, _Text) and self._growing.get(entry.first.session_id) is entry:
            del self._growing[entry.first.session_id]
        return entry


def _delta_of(signal: Signal) -> TextDelta | None:
    if signal.topic != LIVE or signal.data.get("type") != "delta":
        return None
    try:
        return TextDelta.model_validate(
            {name: value for name, value in signal.data.items() if name != "type"}
        )
    except ValidationError:
        return None
