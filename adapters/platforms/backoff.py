"""How long to wait before a platform is asked again."""

from typing import Final

LONGEST_DELAY_S: Final = 60.0


class Backoff:
    """Seconds before the next attempt: 1, 2, 4 ... up to a minute; with `at_once` 0 before them."""

    def __init__(self, *, at_once: bool = False) -> None:
        self._at_once = at_once
        self._failures = 0

    def next(self, named_s: float | None = None) -> float:
        """After one more failure; no less than the time that the platform named."""
        self._failures += 1
        doublings = self._failures - 1 - self._at_once
        delay = 0.0 if doublings < 0 else min(LONGEST_DELAY_S, 2.0 ** min(doublings, 10))
        return max(delay, named_s or 0.0)

    def reset(self) -> None:
        self._failures = 0

    def ease(self) -> None:
        """What failed before a connection that worked, if only for a moment, counts no more."""
        self._failures = min(self._failures, 1)
