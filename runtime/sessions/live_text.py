"""What a running step has written so far, so that a reader who missed a piece can ask for all.

Text deltas are not durable: they carry (run, step, offset). The worker that runs the step answers
`SNAPSHOT` signals by publishing the whole text once more, as a delta of offset 0 (MSG-21).
"""

from runtime.domain.events import Activity, TextDelta
from runtime.domain.messages import ChatAddress
from runtime.domain.value import JsonObject
from runtime.ports.bus import LIVE, Bus
from runtime.ports.clock import Clock

SNAPSHOT = "snapshot"
"""A reader has a gap; data: {run_id}."""


class LiveStep:
    """Publishes one run's text and activity; keeps the running step's text and nothing older.

    Everything that is told of it is progress; `moved` is when the last was, by `clock` (SUB-21).
    """

    def __init__(
        self, bus: Bus, clock: Clock, *, session_id: str, run_id: str, target: ChatAddress
    ) -> None:
        self._bus = bus
        self._clock = clock
        self.moved = clock.monotonic()
        self._target = target.model_dump(mode="json")
        self._session_id = session_id
        self._run_id = run_id
        self._step = 0
        self._pieces: list[str] = []
        self._state = ("", "")

    @property
    def text(self) -> str:
        """The running step's text so far."""
        return "".join(self._pieces)

    def begin(self, step: int) -> None:
        """A new step: its text starts empty."""
        self.moved = self._clock.monotonic()
        self._step = step
        self._pieces = []

    def write(self, offset: int, text: str) -> None:
        """Add a piece; offset 0 drops what a broken stream had written. An empty one says that
        something else of the response came."""
        self.moved = self._clock.monotonic()
        if not text:
            return
        if offset == 0:
            self._pieces = []
        self._pieces.append(text)
        self._publish_text(offset, text)

    def repeat(self) -> None:
        """Publish what the run does, and the whole text of the running step, again."""
        if self._state[0]:
            self._publish_activity()
        self._publish_text(0, self.text)

    def activity(self, state: str, detail: str = "") -> None:
        """Say what the run does now."""
        self.moved = self._clock.monotonic()
        self._state = (state, detail)
        self._publish_activity()

    def anew(self) -> None:
        """The run gave an answer and goes on: what is shown of it is closed, the next begins."""
        self.activity("done")
        self.activity("thinking")

    def output(self, text: str) -> None:
        """A tool printed something; empty where it is not shown any more."""
        self.moved = self._clock.monotonic()
        if text:
            self.activity("output", text)

    def _publish_activity(self) -> None:
        state, detail = self._state
        signal = Activity(
            session_id=self._session_id,
            run_id=self._run_id,
            step=self._step,
            state=state,
            detail=detail,
        )
        self._bus.publish(
            LIVE,
            {"type": "activity", "target": self._target, **signal.model_dump(mode="json")},
        )

    def _publish_text(self, offset: int, text: str) -> None:
        delta = TextDelta(
            session_id=self._session_id,
            run_id=self._run_id,
            step=self._step,
            offset=offset,
            text=text,
        )
        # Where a text begins it says for which chat, so that its deliverer can follow it.
        place: JsonObject = {} if offset else {"target": self._target}
        self._bus.publish(LIVE, {"type": "delta", **place, **delta.model_dump(mode="json")})
