"""Places for requests that take long: so many of one token, and so many in all."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from gateway.http.problems import HttpProblem


class Places:
    """Counts the requests of one kind that are being answered. `what` they are is said to whoever
    finds no place; `retry_after_s` is when they may try again."""

    def __init__(self, what: str, *, of_one: int, in_all: int, retry_after_s: int) -> None:
        self.of_one = of_one
        self.in_all = in_all
        self._what = what
        self._retry_after_s = retry_after_s
        self._taken = Counter[str]()

    @contextmanager
    def take(self, token: str, *, closes: bool = False) -> Iterator[None]:
        """A place for a request of a token, by its fingerprint. Raises `HttpProblem` (429) where
        there is none; `closes` ends the connection, whose body nobody reads."""
        if self._taken[token] >= self.of_one or self._taken.total() >= self.in_all:
            headers = {"Retry-After": str(self._retry_after_s)}
            raise HttpProblem(
                429,
                "queue_full",
                f"At most {self.of_one} {self._what} of one token, and {self.in_all} in all, are "
                "served at once; try again later.",
                {**headers, "Connection": "close"} if closes else headers,
            )
        self._taken[token] += 1
        try:
            yield
        finally:
            self._taken[token] -= 1
            # Tokens come and go.
            self._taken += Counter()
