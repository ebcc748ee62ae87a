"""Failed logins by remote address: after too many the address must wait (API-1)."""

from collections import OrderedDict, deque

from runtime.ports.clock import Clock

MAX_FAILURES = 10
WINDOW_S = 60.0
MAX_ADDRESSES = 4_096


class FailureLimiter:
    """Counts failures in memory: a restart forgives, an attacker gains one window by it."""

    def __init__(
        self, clock: Clock, *, most: int = MAX_FAILURES, window_s: float = WINDOW_S
    ) -> None:
        self._clock = clock
        self._most = most
        self._window_s = window_s
        self._failures: OrderedDict[str, deque[float]] = OrderedDict()

    def blocked_s(self, address: str) -> float:
        """Seconds until the address may try again; 0 when it may now."""
        times = self._failures.get(address)
        if times is None:
            return 0.0
        now = self._clock.monotonic()
        while times and times[0] <= now - self._window_s:
            times.popleft()
        if not times:
            del self._failures[address]
        return max(times[0] + self._window_s - now, 0.0) if len(times) >= self._most else 0.0

    def failed(self, address: str) -> None:
        """Count one failure."""
        times = self._failures.setdefault(address, deque(maxlen=self._most))
        times.append(self._clock.monotonic())
        self._failures.move_to_end(address)
        while len(self._failures) > MAX_ADDRESSES:
            self._failures.popitem(last=False)
