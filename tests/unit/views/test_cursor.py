"""Cursors come back as they were made, and nothing else is taken for one."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.domain.cursors import decode, encode, number
from runtime.domain.errors import InvalidInput
from tests.support.profiles import examples

PARTS = st.lists(st.integers(-(2**62), 2**62) | st.text(), max_size=4)


@given(PARTS)
@examples(30)
def test_what_was_encoded_is_decoded(parts: list[int | str]) -> None:
    assert decode(encode(*parts), *(type(part) for part in parts)) == tuple(parts)


def test_a_cursor_is_safe_in_an_address() -> None:
    assert encode(7, "ses_ä?&=").isascii()
    assert set(encode("??>>~~")).isdisjoint("+/=&?")
    assert number(encode(7)) == 7


def raw(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode()


@pytest.mark.parametrize(
    "cursor",
    ["", "!", "x", "é", raw(7), raw([1, 2]), raw(["a"]), raw([True]), raw([2**70]), raw({"a": 1})],
)
def test_anything_else_is_refused(cursor: str) -> None:
    with pytest.raises(InvalidInput, match="cursor"):
        number(cursor)
