"""What a program's arguments are, by a list of the flags that do no harm. Pure.

Flags are read as getopt_long reads them: clusters of letters, values attached or in the next word,
operands and flags mixed until `--`. Long flags must be spelt out: an abbreviation that is harmless
today may be another flag tomorrow.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from runtime.policy.shell_syntax import NotRead, Word

_NUMBER = re.compile(r"-\d+")


@dataclass(frozen=True, slots=True)
class Given:
    """The arguments of one program: flags with their values ("" without one), and operands."""

    flags: tuple[tuple[str, str], ...]
    operands: tuple[Word, ...]


Check = Callable[[Given], str | None]
"""A last look at the arguments: why they may do harm, or None."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program that changes nothing when it is given no other flags than these.

    `letters` take no value, `valued` letters take one in the same word or the next, `attached` ones
    in the same word or none. `words` are long flags, which may have a value behind `=`;
    `valued_words` need one, there or in the next word. `number`: `-5` is a flag too. `operands`:
    how many there may be at most, None for any. `apart`: a value stands in the next word even if
    more stands behind the letter, which then is flags; only digits may. `safe`: no flag at all does
    harm, listed or not, so that a word such as `*.py` may stand for a file that is named like one.
    """

    letters: str = ""
    valued: str = ""
    attached: str = ""
    words: frozenset[str] = frozenset()
    valued_words: frozenset[str] = frozenset()
    number: bool = False
    operands: int | None = None
    apart: bool = False
    safe: bool = False
    check: Check | None = None

    def read(self, arguments: Sequence[Word]) -> Given:
        """What these arguments are. Raises `NotRead`, naming the one that is not on the list."""
        return _Reading(self, arguments).read()

    def refuses(self, arguments: Sequence[Word]) -> str | None:
        """Why these arguments may do harm, or None."""
        try:
            given = self.read(arguments)
        except NotRead as error:
            return str(error)
        if self.operands is not None and (
            len(given.operands) > self.operands or any(one.pattern for one in given.operands)
        ):
            return f"more than {self.operands} operands" if self.operands else "any operand"
        return self.check(given) if self.check is not None else None


def names(text: str) -> frozenset[str]:
    """Long flags from a list in one line: ``stat patch`` is ``--stat`` and ``--patch``."""
    return frozenset(f"--{word}" for word in text.split())


def actions(text: str) -> frozenset[str]:
    """The same with one dash, as ``find`` has them."""
    return frozenset(f"-{word}" for word in text.split())


def refused_pattern(word: Word) -> bool:
    """Whether a file's name could take this word's place and be a flag: ``*``, ``-*``."""
    return word.pattern and (not word.known or word.known.startswith("-"))


class _Reading:
    """One pass over a program's arguments."""

    def __init__(self, program: Program, arguments: Sequence[Word]) -> None:
        self._program = program
        self._left = list(reversed(arguments))
        self._flags: list[tuple[str, str]] = []
        self._operands: list[Word] = []

    def read(self) -> Given:
        """Raises `NotRead`, naming the argument that is not on the list."""
        ended = False
        while self._left:
            word = self._left.pop()
            if not ended and refused_pattern(word) and not self._program.safe:
                raise NotRead(f"{word.text} could match a file that is named like a flag")
            if word.pattern or not dashed(word.text) or (ended and self._program.safe):
                self._operands.append(word)
            elif ended:
                raise NotRead(f"{word.text} behind --")
            elif word.text == "--":
                ended = True
            elif word.text.startswith("--"):
                self._long(word.text)
            elif self._program.number and _NUMBER.fullmatch(word.text):
                self._flags.append((word.text, ""))
            else:
                self._cluster(word.text)
        return Given(tuple(self._flags), tuple(self._operands))

    def _long(self, text: str) -> None:
        name, equals, value = text.partition("=")
        if name in self._program.valued_words:
            value = value if equals else self._next(name)
        elif name not in self._program.words:
            raise NotRead(name)
        self._flags.append((name, value))

    def _cluster(self, text: str) -> None:
        for place, letter in enumerate(text[1:], start=2):
            flag, rest = f"-{letter}", text[place:]
            if letter in self._program.letters:
                self._flags.append((flag, ""))
            elif letter in self._program.attached:
                self._flags.append((flag, rest))
                return
            elif letter in self._program.valued:
                if self._program.apart and rest and not rest.isdecimal():
                    # `tree -Po a b` has the pattern `a`, and writes to `b`.
                    raise NotRead(text)
                self._flags.append((flag, rest or self._next(flag)))
                return
            else:
                raise NotRead(flag)

    def _next(self, flag: str) -> str:
        value = self._left.pop() if self._left else None
        if value is None or value.pattern or (dashed(value.text) and not self._program.safe):
            raise NotRead(f"{flag} without a plain value")
        return value.text


def dashed(text: str) -> bool:
    """Whether a word is flags; `-` alone is a file."""
    return text.startswith("-") and text != "-"
