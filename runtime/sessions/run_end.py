"""How a run ended, as one value for whoever hears of it."""

from dataclasses import dataclass
from typing import Final

from runtime.domain.runs import RunState

MOST_DOUBLINGS: Final = 8
"""Doublings of a retry's wait at most."""


@dataclass(frozen=True, slots=True)
class Retry:
    """Leave to begin anew: at most `most` times, first after `base_ms`, then after twice as long.
    `jitter`, in [0, 1), makes a wait longer by up to half of it."""

    most: int
    base_ms: int
    jitter: float

    def wait_ms(self, retries: int) -> int:
        """How long the next try waits, after so many."""
        doubled: int = self.base_ms * 2 ** min(retries, MOST_DOUBLINGS)
        return int(doubled * (1 + self.jitter / 2))


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How a run ended. `text` is what it said, `why` it ended where it gave no answer. `cut_short`:
    it ended with what it had so far. `over`: its session has nothing more to do, whatever it waits
    for. `retry` lets it begin anew."""

    state: RunState
    text: str = ""
    why: str = ""
    cut_short: bool = False
    over: bool = False
    retry: Retry | None = None
