"""What the terminal shows and may do, as Protocols: `gateway.cli` brings them to life over HTTP."""

from collections.abc import Callable, Sequence
from typing import Literal, Protocol

Decision = Literal["once", "session", "deny"]


class Call(Protocol):
    """One tool call of a step."""

    @property
    def name(self) -> str: ...

    @property
    def arguments(self) -> str: ...

    @property
    def state(self) -> str:
        """How far it came, or how it ended."""
        ...


class Card(Protocol):
    """An approval or a question; open while `outcome` is empty and `open` is true."""

    @property
    def request_id(self) -> str: ...

    @property
    def code(self) -> str: ...

    @property
    def kind(self) -> str:
        """``approval`` or ``question``."""
        ...

    @property
    def open(self) -> bool: ...

    @property
    def tool(self) -> str: ...

    @property
    def arguments(self) -> str: ...

    @property
    def reason(self) -> str: ...

    @property
    def risk(self) -> str:
        """One sentence on how risky it is; empty where nobody judged it."""

    @property
    def question(self) -> str: ...

    @property
    def options(self) -> Sequence[str]: ...

    @property
    def choices(self) -> Sequence[str]: ...

    @property
    def outcome(self) -> str: ...


class Entry(Protocol):
    """One thing that was said; `kind` is user, assistant, notice, system, file or card."""

    @property
    def key(self) -> str: ...

    @property
    def kind(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def text(self) -> str: ...

    @property
    def calls(self) -> Sequence[Call]: ...

    @property
    def card(self) -> Card | None: ...

    @property
    def waiting(self) -> bool:
        """Whether it has not been read by a run yet."""
        ...

    @property
    def undone(self) -> bool:
        """Whether its turn was taken back."""
        ...


class Conversation(Protocol):
    """One session as the terminal sees it. `entries` are the oldest first."""

    @property
    def title(self) -> str: ...

    @property
    def entries(self) -> Sequence[Entry]: ...

    @property
    def live(self) -> str:
        """What the running step has written so far."""
        ...

    @property
    def activity(self) -> str:
        """What the run does now; empty while nothing runs."""
        ...

    @property
    def trouble(self) -> str:
        """Why nothing new comes; empty while connected."""
        ...

    async def follow(self, changed: Callable[[], None]) -> None:
        """Keep up with the session until cancelled; calls `changed` after every change."""
        ...

    async def say(self, text: str) -> str:
        """Send a message; empty, or a sentence on why it was not taken."""
        ...

    async def stop(self) -> bool:
        """Stop what runs; False where nothing does, or where nobody could be asked."""
        ...

    async def decide(self, card: Card, decision: Decision, reason: str = "") -> str:
        """Answer an approval; empty, or a sentence on why not."""
        ...

    async def answer(self, card: Card, text: str) -> str:
        """Answer a question; empty, or a sentence on why not."""
        ...
