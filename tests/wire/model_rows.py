"""What model servers were seen to do, as one table: what the server does, and what is right.

A person writes "Please play KEY", and later "hello again after KEY": the words name the row, so one
server plays all of them at once. Whatever happened before, hello is answered. `waits` names the
requirement that a row needs and that is not done yet.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from tests.wire.openai import Prompt
from tests.wire.raw_answers import Raw, answer

NOON: Final = "It is noon."
HELLO: Final = "Hello again."
KEPT: Final = "Noted."
THOUGHT: Final = "Nobody may read this thought."
"""In the thoughts of all rows, so that one look finds each that came out."""
FORBIDDEN: Final = "never-"
"""The names of files that no row may write begin with it."""
FILLER: Final = "A long report about nothing. " * 276
"""Eight thousand characters."""
_ASKED: Final = re.compile(r"(Please keep|Please play|hello again after) ([a-z0-9-]+) on ([a-z]+)")

Play: TypeAlias = Raw | Callable[[Prompt], Raw]
Condition: TypeAlias = Callable[[Prompt], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A kind of server.

    `plays` are its answers to the requests of one message in order, the last one also to all that
    follow; before that each of `refuses` is looked at, for hello too. `reads` is what the person
    reads, where a star stands for any text, and `requests` how often the model is asked; None where
    several numbers are right. `before` long messages are written first, `long` makes the message
    itself long, `picture` goes with it. `silent` servers say nothing within the timeout. A row that
    is `first` is the first that a gateway hears of its model.
    """

    key: str
    server: str
    plays: tuple[Play, ...] = (answer("It is ", "noon."),)
    refuses: tuple[tuple[Condition, Raw], ...] = ()
    reads: str = NOON
    requests: int | None = 1
    waits: str = ""
    everywhere: bool = False
    picture: bool = False
    long: bool = False
    before: int = 0
    silent: bool = False
    first: bool = False

    def fits(self, text: str) -> bool:
        """Whether this is what the person should read."""
        pattern = ".*".join(re.escape(part) for part in self.reads.split("*"))
        return re.fullmatch(pattern, text.strip(), re.DOTALL) is not None

    def asked(self, place: str) -> str:
        """What the person writes."""
        return f"Please play {self.key} on {place}. {FILLER if self.long else ''}".rstrip()

    def keeping(self, place: str) -> str:
        """What the person writes before."""
        return f"Please keep {self.key} on {place}: {FILLER}".rstrip()

    def greeting(self, place: str) -> str:
        """What the person writes afterwards."""
        return f"hello again after {self.key} on {place}"


@dataclass
class Rows:
    """Plays every row at once; `asked` counts the requests by row, place and what was written."""

    rows: Iterable[Row]
    asked: Counter[tuple[str, str, str]] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._by_key = {row.key: row for row in self.rows}

    def requests(self, row: Row, place: str) -> int:
        """How often the model was asked for the answer of a row."""
        return self.asked[row.key, place, "Please play"]

    def __call__(self, prompt: Prompt) -> Raw:
        """The answer to a request: the script of `openai.ModelServer`."""
        what, key, place = named_in(prompt)
        row = self._by_key[key]
        number = self.asked[key, place, what]
        self.asked[key, place, what] += 1
        for condition, refused in row.refuses:
            if condition(prompt):
                return refused
        if what != "Please play":
            return answer(HELLO if what.startswith("hello") else KEPT)
        play = row.plays[min(number, len(row.plays) - 1)]
        return play if isinstance(play, Raw) else play(prompt)


def named_in(prompt: Prompt) -> tuple[str, str, str]:
    """What the newest words of the person ask for: what, which row, where."""
    for message in reversed(messages_of(prompt)):
        if message.get("role") == "user" and (found := _ASKED.findall(text_of(message))):
            what, key, place = found[-1]
            return what, key, place
    raise LookupError(f"no row is named in {prompt.asked[:200]!r}")


def messages_of(prompt: Prompt) -> list[dict[str, object]]:
    """The messages of a request."""
    messages = prompt.body["messages"]
    assert isinstance(messages, list)
    return messages


def text_of(message: dict[str, object]) -> str:
    """The words of a message."""
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content)
    return str(content or "")


def calls_of(prompt: Prompt) -> list[dict[str, dict[str, str]]]:
    """The tool calls that the request gives back, of its newest response."""
    for message in reversed(messages_of(prompt)):
        calls = message.get("tool_calls")
        if message.get("role") == "assistant" and isinstance(calls, list):
            return calls
    return []
