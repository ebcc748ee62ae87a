"""The way into the engine for adapters: `runtime.intake` implements it."""

from typing import Literal, Protocol

from runtime.domain.messages import (
    ApprovalPart,
    Button,
    ButtonPress,
    ChatAddress,
    Deletion,
    InboundMessage,
    Move,
    QuestionPart,
)
from runtime.domain.people import Sender
from runtime.domain.request_keys import RequestKey
from runtime.domain.value import Value

Disposition = Literal[
    "queued", "command", "answer", "duplicate", "pairing", "noted", "full", "limited", "dropped"
]
"""``noted``: an edit or a deletion that the next run is told of. ``full``: as much waits there as
may, so it was not taken, and its sender is told. ``limited``: so it is beyond a limit (POL-8)."""
Applied = Literal["command", "answer"]
"""What is done with at once, and has no run of its own."""


class Accepted(Value):
    """What became of a message; when this is returned it is durable.

    ``reason`` is for logs: why a message was dropped. The ids are set where they exist. Those of a
    duplicate are what its sender was told first; ``applied`` says what it was then.
    """

    disposition: Disposition
    session_id: str | None = None
    input_id: str | None = None
    run_id: str | None = None
    reason: str = ""
    applied: Applied | None = None


class Pressed(Value):
    """What became of a press; ``text`` is shown to the person who pressed, and to nobody else."""

    accepted: bool
    text: str


class HomeSession(Value):
    """A conversation on a person's home page; ``state`` is its run's, or ``idle``."""

    session_id: str
    title: str
    address: ChatAddress
    state: str
    updated_at_ms: int


class HomeItem(Value):
    """A thing of a person's own on their home page, under a `heading`, with its buttons. ``text``
    is shown as it stands."""

    heading: str
    text: str
    buttons: tuple[Button, ...] = ()


class Home(Value):
    """What a platform's home page shows one person: newest sessions first, at most 20 of each.
    ``items`` are further things of theirs, those of one heading together.

    ``cards`` are open ones that this person may answer. ``known`` is false for strangers, who see
    nothing else.
    """

    known: bool
    sessions: tuple[HomeSession, ...] = ()
    cards: tuple[ApprovalPart | QuestionPart, ...] = ()
    items: tuple[HomeItem, ...] = ()


class Gatehouse(Protocol):
    """Everything an adapter may ask of the engine."""

    async def accept(
        self,
        message: InboundMessage,
        *,
        session_id: str | None = None,
        key: RequestKey | None = None,
    ) -> Accepted:
        """Store the message, or apply it; only then acknowledge it to the platform (MSG-1).

        With `key`, what becomes of it is kept in the same unit; a later message under the key is a
        duplicate of it. Raises `Conflict` for a key that came with another request.
        With `session_id`, the message is for that session and for no other. Raises `NotFound` where
        that session is gone and `Conflict` where it has ended; nothing of the message is kept then.
        Raises `StoreUnavailable`: do not acknowledge, the platform will deliver again.
        """
        ...

    async def press(self, press: ButtonPress) -> Pressed:
        """Answer a card, or say a command, by button. Raises `StoreUnavailable`."""
        ...

    async def revise(self, message: InboundMessage) -> Accepted:
        """A message was edited: `message` is its new form, with ``edited_at`` set (SLK-2, TEL-2).

        An input that has not run yet is updated; afterwards the edit is noted for the next run; one
        that was never taken is ignored, but where it now mentions the bot it is accepted as new.
        Raises `StoreUnavailable`.
        """
        ...

    async def withdraw(self, deletion: Deletion) -> Accepted:
        """A message was deleted: an input that has not run yet never does, afterwards it is noted.

        Raises `StoreUnavailable`.
        """
        ...

    async def move(self, move: Move) -> None:
        """A chat has a new id: its sessions, and what waits to be sent there, go with it.

        Safe to repeat. Raises `StoreUnavailable`.
        """
        ...

    async def home(self, *, channel: str, account: str, sender: Sender) -> Home:
        """What the home page of one person shows. Raises `StoreUnavailable`."""
        ...
