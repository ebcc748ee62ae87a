"""What the engine tells of its work as it happens, for whoever counts it (OPS-8).

The engine knows no metrics library. It calls an `Observer`, which must return at once, raise
nothing and keep nothing that grows with the number of sessions, people or messages.
"""

from typing import Final, Literal

from runtime.domain.decisions import Verdict
from runtime.domain.runs import RunState, Usage

ModelOutcome = Literal["answered", "failed", "rejected", "stopped"]
"""``failed`` is tried again or passed on to the next model; ``stopped`` was cut off by someone."""
DeliveryResult = Literal["sent", "retry", "dead", "unknown", "orphaned"]
"""``orphaned``: a half text may stand in the chat; its message goes out whole beside it."""
UNKNOWN_TOOL: Final = "unknown"
"""The tool of a call that no tool has the name of: a model may write any name."""


class Observer:
    """Hears of each thing once it has happened; this one makes nothing of it. Times are seconds."""

    def accepted(self, channel: str, disposition: str) -> None:
        """A message was decided about; `disposition` as in `Accepted`."""

    def started(self, waited: float) -> None:
        """A run began, `waited` after the first message that it answers was accepted."""

    def stepped(self, took: float) -> None:
        """A step ended: from its request to the model until its results, or the run's end, were
        durable. One that waits for a person is none until it goes on."""

    def ended(self, state: RunState) -> None:
        """A run ended while it was at work in this process."""

    def asked(self, model: str, outcome: ModelOutcome, took: float) -> None:
        """A call of a model ended."""

    def used(self, model: str, usage: Usage) -> None:
        """What a model's response cost."""

    def decided(self, tool: str, verdict: Verdict) -> None:
        """A call that a model made was decided about, and the decision is durable."""

    def called(self, tool: str, status: str, took: float) -> None:
        """A tool ran; `status` as in `ToolResult`."""

    def delivered(self, channel: str, result: DeliveryResult) -> None:
        """An attempt to deliver a message came to `result`."""

    def replied(self, channel: str, took: float) -> None:
        """A run's reply was posted, `took` after the run's first message was accepted."""

    def wrote(self, unit: str, took: float, *, kept: bool) -> None:
        """A unit of work ended, `took` after it was handed to the store."""

    def committed(self) -> None:
        """The store committed a transaction of one unit or more. Called from any thread."""


NO_OBSERVER: Final = Observer()
