"""SUB-22: how long a new try waits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.sessions.runs import MOST_DOUBLINGS, Retry

pytestmark = pytest.mark.requirement("SUB-22")


def test_each_try_waits_twice_as_long_as_the_one_before() -> None:
    retry = Retry(most=2, base_ms=5_000, jitter=0.0)
    assert [retry.wait_ms(number) for number in range(4)] == [5_000, 10_000, 20_000, 40_000]


@given(st.integers(0, 1_000), st.integers(0, 60_000), st.floats(0, 1, exclude_max=True))
def test_a_wait_is_spread_over_half_of_itself_and_bounded(
    number: int, base_ms: int, jitter: float
) -> None:
    wait = Retry(most=10, base_ms=base_ms, jitter=jitter).wait_ms(number)
    least = base_ms * 2 ** min(number, MOST_DOUBLINGS)
    assert least <= wait <= least * 1.5
