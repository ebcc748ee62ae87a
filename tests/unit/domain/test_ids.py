"""Identifiers: in the order of their making, and with codes that a person can type."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.domain.ids import IdPrefix, code_of, made_at_ms, new_id

MOMENTS = st.integers(min_value=0, max_value=(1 << 48) - 1)


@given(MOMENTS, MOMENTS)
def test_ids_sort_by_the_time_of_their_making(one: int, other: int) -> None:
    first, second = new_id(IdPrefix.RUN, one), new_id(IdPrefix.RUN, other)
    assert made_at_ms(first) == one
    if one != other:
        assert (first < second) is (one < other)


def test_ids_of_one_moment_differ_and_so_do_their_codes() -> None:
    made = [new_id(IdPrefix.APPROVAL, 1) for _ in range(1000)]
    assert len(set(made)) == 1000
    assert len({code_of(one) for one in made}) > 990
    assert all(len(code_of(one)) == 6 and one.endswith(code_of(one)) for one in made)


@pytest.mark.parametrize("prefix", list(IdPrefix))
def test_an_id_says_what_it_names(prefix: IdPrefix) -> None:
    assert new_id(prefix, 1).startswith(f"{prefix.value}_")
