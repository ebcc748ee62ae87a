"""The way into the engine for adapters: `runtime.intake` implements it."""

from typing import Literal, Protocol

from runtime.domain.messages import ButtonPress, InboundMessage
from runtime.domain.value import Value

Disposition = Literal["queued", "command", "answer", "duplicate", "pairing", "dropped"]


class Accepted(Value):
    """What became of a message; when this is returned it is durable.

    ``reason`` is for logs: why a message was dropped. The ids are set where they exist.
    """

    disposition: Disposition
    session_id: str | None = None
    input_id: str | None = None
    run_id: str | None = None
    reason: str = ""


class Pressed(Value):
    """What became of a press; ``text`` is shown to the person who pressed, and to nobody else."""

    accepted: bool
    text: str


class Gatehouse(Protocol):
    """Everything an adapter may ask of the engine."""

    async def accept(self, message: InboundMessage) -> Accepted:
        """Store the message, or apply it; only then acknowledge it to the platform (MSG-1).

        Raises `StoreUnavailable`: do not acknowledge, the platform will deliver again.
        """
        ...

    async def press(self, press: ButtonPress) -> Pressed:
        """Answer an approval or a question by button. Raises `StoreUnavailable`."""
        ...
