"""Callback data: what we wrote is known again, and nothing else is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.telegram.callbacks import MOST_BYTES, Chosen, Seal
from runtime.domain.ids import IdPrefix, new_id
from tests.support.profiles import examples

SEAL = Seal("123456:TEST-TOKEN")
CALL = new_id(IdPrefix.APPROVAL, 1_800_000_000_000)
chosen = st.one_of(
    st.builds(Chosen, st.just(CALL), st.sampled_from(["once", "session", "deny"])),
    st.builds(Chosen, st.just(CALL), option=st.integers(1, 100)),
    st.builds(Chosen, st.just("pair_K7M2P9"), st.sampled_from(["once", "deny"])),
)


@pytest.mark.requirement("TEL-3")
@examples(30)
@given(chosen)
def test_what_was_written_is_read_and_fits(one: Chosen) -> None:
    data = SEAL.write(one)
    assert data is not None
    assert len(data.encode()) <= MOST_BYTES
    assert SEAL.read(data) == one
    assert Seal("123456:ANOTHER-TOKEN").read(data) is None


@pytest.mark.requirement("TEL-3")
@examples(50)
@given(chosen, st.integers(0, 63), st.characters(codec="utf-8"))
def test_one_changed_character_is_enough(one: Chosen, at: int, other: str) -> None:
    data = SEAL.write(one)
    assert data is not None
    at %= len(data)
    if data[at] != other:
        assert SEAL.read(f"{data[:at]}{other}{data[at + 1 :]}") is None


@pytest.mark.requirement("TEL-3")
@examples(50)
@given(st.text(max_size=70))
def test_what_anybody_makes_up_is_not_read(text: str) -> None:
    assert SEAL.read(text) is None


@pytest.mark.parametrize(
    "one",
    [Chosen("x" * 50, "once"), Chosen(CALL, "whatever"), Chosen(CALL), Chosen("a:b", "once")],
)
def test_what_does_not_fit_gets_no_button(one: Chosen) -> None:
    assert SEAL.write(one) is None
