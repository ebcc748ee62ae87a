"""What people asked for and what they saw: the soak's own books, kept apart from the gateway's.

A wish is one message with a token that no other has. Its answer carries the token, so that a loss,
a double and a swap are seen without asking the gateway.
"""

import re
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal

from tests.wire.telegram.signal import Signal

ANSWER = re.compile(r"Answer (w\d{6})\.")
FAILED = re.compile(
    r"could not be reached|answered with an error|went wrong inside|I was stopped \d+ times"
)
STOPPED = "Stopped"
REMEMBERED = 200
"""Texts of a place that are kept to find a card in."""

Excuse = Literal["", "stopped", "edited", "failed", "unknown"]


@dataclass(slots=True)
class Wish:
    """One message and what came of it. Times are seconds of the driver's clock."""

    token: str
    kind: str
    place: str
    number: int
    said_at: float
    answered_at: float | None = None
    posts: int = 0
    excuse: Excuse = ""
    stopping: bool = False
    """Somebody said that its turn shall end."""
    twin: "Wish | None" = field(default=None, repr=False, compare=False)
    """The other form of a message that was edited: one of the two is answered."""

    @property
    def is_open(self) -> bool:
        """Whether somebody still waits for it."""
        return self.answered_at is None and not self.excuse


@dataclass(frozen=True, slots=True)
class Unknown:
    """A row of the outbox whose fate nobody knows, and what explains it."""

    outbox_id: str
    token: str
    reason: str
    explained_by: str


@dataclass(slots=True)
class Struck:
    """A fault and when it was; `until` is when it was undone, or met what it lay in wait for."""

    name: str
    since: float
    until: float
    lies_in_wait: Callable[[], bool] | None = field(default=None, repr=False, compare=False)


@dataclass
class Ledger:
    """The books. `strays` are answers where nobody asked; `unsure` are the tokens of calls whose
    outcome the model was told to be unknown, `results` what it was told of the others."""

    wishes: dict[str, Wish] = field(default_factory=dict)
    order: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    texts: dict[str, deque[str]] = field(
        default_factory=lambda: defaultdict(lambda: deque(maxlen=REMEMBERED))
    )
    strays: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    unsure: set[str] = field(default_factory=set)
    results: dict[str, str] = field(default_factory=dict)
    unknown: list[Unknown] = field(default_factory=list)
    faults: list["Struck"] = field(default_factory=list)
    signal: Signal = field(default_factory=Signal)

    def wish(self, place: str, kind: str, at: float) -> Wish:
        """A new wish, in the order in which it is said."""
        number = len(self.wishes) + 1
        made = Wish(f"w{number:06d}", kind, place, number, at)
        self.wishes[made.token] = made
        return made

    def saw(self, place: str, text: str, at: float) -> None:
        """A person reads a new message of the bot."""
        self.texts[place].append(text)
        for token in ANSWER.findall(text):
            wish = self.wishes.get(token)
            if wish is None or wish.place != place:
                self.strays.append(f"{token} in {place}")
                continue
            wish.posts += 1
            wish.answered_at = wish.answered_at or at
            self._excuse_twin(wish)
            if wish.posts == 1:
                self.order[place].append(wish.number)
        if STOPPED in text:
            for wish in [one for one in self.open if one.stopping and one.place == place]:
                self.excuse(wish, "stopped")
        if FAILED.search(text):
            self.failures.append(f"{place}: {text}")
            for wish in self._first_open(place):
                wish.excuse = "failed"
        self.signal.pulse()

    def excuse(self, wish: Wish, why: Excuse) -> None:
        """Nobody waits for it any more, and why."""
        if wish.is_open:
            wish.excuse = why
            self._excuse_twin(wish)
        self.signal.pulse()

    def stop_unseen(self, channel: str, at: float) -> None:
        """A message of unknown fate that is nobody's reply was made at `at`: it may be the word of
        a stop, and somebody on that channel who said so waits no longer."""
        for wish in self.open:
            if wish.stopping and wish.place.split()[0] == channel and wish.said_at <= at:
                self.excuse(wish, "unknown")
                return

    def grew(self, place: str, before: str, now: str, at: float) -> None:
        """A person reads a message again that changed; only what is new in it counts."""
        new = set(ANSWER.findall(now)) - set(ANSWER.findall(before))
        failed = FAILED.search(now) is not None and FAILED.search(before) is None
        stopped = STOPPED in now and STOPPED not in before
        if new or failed or stopped:
            self.saw(place, now, at)

    def find(self, place: str, token: str, pattern: re.Pattern[str]) -> str | None:
        """The first group of a pattern in the last text of a place that holds the token."""
        for text in reversed(self.texts[place]):
            found = pattern.search(text)
            if token in text and found:
                return found[1]
        return None

    @property
    def open(self) -> list[Wish]:
        """What is not answered yet."""
        return [wish for wish in self.wishes.values() if wish.is_open]

    @property
    def doubled(self) -> list[Wish]:
        """What was answered more than once."""
        return [wish for wish in self.wishes.values() if wish.posts > 1]

    @property
    def out_of_order(self) -> list[str]:
        """Answers that came after the answer to something said later in the same place."""
        found = []
        for place, numbers in self.order.items():
            latest = 0
            for number in numbers:
                if number < latest:
                    found.append(f"w{number:06d} after w{latest:06d} in {place}")
                latest = max(latest, number)
        return found

    def latencies_ms(self, since: float, until: float) -> list[float]:
        """From said to seen, of what needed no person, of the wishes said in this time."""
        return sorted(
            (wish.answered_at - wish.said_at) * 1000
            for wish in self.wishes.values()
            if wish.kind in ("talk", "read", "file", "tool")
            and wish.answered_at is not None
            and since <= wish.said_at < until
        )

    def linger(self, at: float) -> None:
        """The faults that nobody has met yet go on until now at the least."""
        for one in self.faults:
            if one.lies_in_wait is not None:
                one.until = at
                if not one.lies_in_wait():
                    one.lies_in_wait = None

    def explain(self, since: float, until: float, causes: Iterable[str]) -> str:
        """The last fault of these that may have cost a receipt in this time; empty for none."""
        wanted = tuple(causes)
        for one in reversed(self.faults):
            if one.name in wanted and one.since <= until and one.until >= since:
                return f"{one.name} at {one.since:.1f} s"
        return ""

    def _excuse_twin(self, wish: Wish) -> None:
        if wish.twin is not None and wish.twin.is_open:
            wish.twin.excuse = "edited"

    def _first_open(self, place: str) -> list[Wish]:
        return [wish for wish in self.wishes.values() if wish.is_open and wish.place == place][:1]
