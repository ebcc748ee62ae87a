"""What is made of values that stay the same: made once, and kept.

A gateway asks with the same few sets of tools again and again, and the libraries would turn each
into the provider's form for each request. Values are told apart by identity, which costs nothing to
ask, so nobody may change one that was used here.
"""

from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

Part = TypeVar("Part")
Made = TypeVar("Made")

_SETS: Final = 32
"""Sets of tools at once: an agent's type, its policy and its place each make another one."""


class Once(Generic[Part, Made]):
    """Calls `make` once for the same parts. What was asked for last is kept, `limit` answers."""

    def __init__(self, make: Callable[[Sequence[Part]], Made], *, limit: int = _SETS) -> None:
        self._make = make
        self._limit = limit
        # The parts stay with what was made of them: no other value may get their identity.
        self._made: dict[tuple[int, ...], tuple[tuple[Part, ...], Made]] = {}

    def __call__(self, parts: Sequence[Part]) -> Made:
        key = tuple(map(id, parts))
        kept = self._made.pop(key, None) or (tuple(parts), self._make(parts))
        self._made[key] = kept
        if len(self._made) > self._limit:
            del self._made[next(iter(self._made))]
        return kept[1]
