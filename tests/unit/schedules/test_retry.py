"""The waits between two tries of a dispatch (SCH-5)."""

import pytest

from runtime.features.schedules.retry import RetryPolicy

pytestmark = pytest.mark.requirement("SCH-5")


def test_the_wait_doubles_from_half_a_second_to_thirty() -> None:
    policy = RetryPolicy()
    waits = [policy.delay_ms(attempt, 0.0) for attempt in range(1, 10)]
    assert waits == [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]
    assert policy.delay_ms(10**6, 0.0) == 30_000


def test_a_quarter_of_a_second_at_most_is_added() -> None:
    policy = RetryPolicy()
    assert [policy.delay_ms(1, jitter) for jitter in (0.0, 0.5, 0.999)] == [500, 625, 749]
    assert policy.delay_ms(50, 0.5) == 30_125


def test_attempts_are_bounded_only_where_somebody_said_so() -> None:
    assert not RetryPolicy().exhausted(10**9)
    assert [RetryPolicy(max_attempts=3).exhausted(attempt) for attempt in (2, 3)] == [False, True]
