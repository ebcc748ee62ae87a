"""A conversation in memory: what the screen shows is set by the test, what it does is kept."""

import asyncio
from collections.abc import Callable, Sequence

from adapters.terminal.conversation import Call, Card, Entry


class FakeConversation:
    """Stands where the terminal expects a session."""

    def __init__(self, *entries: Entry) -> None:
        self.title = "terminal:main"
        self.entries: Sequence[Entry] = entries
        self.live = ""
        self.activity = ""
        self.trouble = ""
        self.said: list[str] = []
        self.decided: list[tuple[str, str]] = []
        self.answered: list[tuple[str, str]] = []
        self.refusal = ""
        self.stops: list[bool] = []
        self._changed: Callable[[], None] = lambda: None

    async def follow(self, changed: Callable[[], None]) -> None:
        """Nothing comes but what the test sets."""
        self._changed = changed
        changed()
        await asyncio.Event().wait()

    def now(self, *entries: Entry, live: str = "", activity: str = "", trouble: str = "") -> None:
        """What the session looks like from here on."""
        self.entries, self.live, self.activity, self.trouble = entries, live, activity, trouble
        self._changed()

    async def say(self, text: str) -> str:
        self.said.append(text)
        return self.refusal

    async def stop(self) -> bool:
        return self.stops.pop(0) if self.stops else False

    async def decide(self, card: object, decision: str) -> str:
        assert isinstance(card, Card)
        self.decided.append((card.code, decision))
        return self.refusal

    async def answer(self, card: object, text: str) -> str:
        assert isinstance(card, Card)
        self.answered.append((card.code, text))
        return self.refusal


def user(text: str, key: str = "u1") -> Entry:
    """Something that a person wrote."""
    return Entry(key, "user", "Ann", text, "run_1")


def assistant(text: str, *calls: Call, key: str = "a1") -> Entry:
    """Something that the agent wrote, with its tool calls."""
    return Entry(key, "assistant", "", text, "run_1", 1, calls)


def approval(*, settled: str = "") -> Entry:
    """An approval's card."""
    card = Card(
        "apr_000abc123",
        "run_1",
        "abc123",
        "approval",
        not settled,
        tool="exec",
        arguments='{"command": "ls"}',
        reason="No rule allows it yet.",
        choices=("once", "session", "deny"),
        outcome=settled,
    )
    return Entry("c1", "card", "", "", "run_1", card=card)


def question(*options: str) -> Entry:
    """A question's card."""
    card = Card(
        "que_000def456",
        "run_1",
        "def456",
        "question",
        open=True,
        question="Which one?",
        options=options,
    )
    return Entry("q1", "card", "", "", "run_1", card=card)
