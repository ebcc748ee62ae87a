"""How a dispatch that failed is tried again (SCH-5). Pure."""

from dataclasses import dataclass

MOST_DOUBLINGS = 40


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The first wait, doubled each time up to the longest, and a random addition of up to
    `jitter_ms`. `max_attempts` bounds the attempts; None tries for ever."""

    base_delay_ms: int = 500
    max_delay_ms: int = 30_000
    jitter_ms: int = 250
    max_attempts: int | None = None

    def delay_ms(self, attempt: int, jitter: float) -> int:
        """The wait behind the failed attempt of this number, counted from 1. `jitter` is in
        [0, 1)."""
        doubled = self.base_delay_ms * 2 ** min(attempt - 1, MOST_DOUBLINGS)
        return min(self.max_delay_ms, int(doubled)) + int(self.jitter_ms * jitter)

    def exhausted(self, attempt: int) -> bool:
        """Whether no attempt follows the one of this number."""
        return self.max_attempts is not None and attempt >= self.max_attempts
