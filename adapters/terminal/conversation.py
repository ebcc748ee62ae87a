"""A conversation as the terminal shows it: its entries, and what a person may do in it.

`gateway.cli` brings the Protocol to life over HTTP.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

Decision = Literal["once", "session", "deny"]


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call; `state` is how far it came, or how it ended."""

    name: str
    arguments: str
    state: str


@dataclass(frozen=True, slots=True)
class Card:
    """An approval or a question (`kind`), which waits while it is `open`. `risk` is one sentence on
    how risky a call is, empty where nobody judged it."""

    request_id: str
    run_id: str
    code: str
    kind: str
    open: bool
    tool: str = ""
    arguments: str = ""
    reason: str = ""
    risk: str = ""
    question: str = ""
    options: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    outcome: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that was said; `kind` is user, assistant, notice, system, file or card.

    `waiting`: no run has read it yet. `undone`: its turn was taken back.
    """

    key: str
    kind: str
    name: str
    text: str
    run_id: str
    step: int = -1
    calls: tuple[Call, ...] = ()
    card: Card | None = None
    waiting: bool = False
    undone: bool = False


class Conversation(Protocol):
    """One session. `entries` are the oldest first; `activity` is what the run does now, empty while
    nothing runs; `trouble` says why nothing new comes, empty while connected."""

    title: str
    entries: tuple[Entry, ...]
    activity: str
    trouble: str

    @property
    def live(self) -> str:
        """What the running step has written so far."""
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

    async def decide(self, card: Card, decision: Decision) -> str:
        """Answer an approval; empty, or a sentence on why not."""
        ...

    async def answer(self, card: Card, text: str) -> str:
        """Answer a question; empty, or a sentence on why not."""
        ...
