"""JSON that means one thing only: what could be read in two ways is refused (APR-9)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.domain.strict_json import DEEPEST, NotStrict, read_json

pytestmark = pytest.mark.requirement("APR-9")

LEAVES = st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text()
VALUES = st.recursive(
    LEAVES | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(VALUES)
def test_whatever_has_one_meaning_is_read_as_ever(value: object) -> None:
    assert read_json(json.dumps(value)) == value
    assert read_json(json.dumps(value).encode()) == value


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"command": "ls", "command": "rm -rf ~"}', 'the key "command" comes twice'),
        ('{"command": "ls", "\\u0063ommand": "rm"}', 'the key "command" comes twice'),
        ('{"a": [{"b": {"x": 1, "y": 2, "x": 1}}]}', 'the key "x" comes twice'),
        ('{"a\\u202eb": 1, "a\\u202eb": 2}', r'the key "a\u{202e}b" comes twice'),
        ('{"' + "k" * 500 + '": 1, "' + "k" * 500 + '": 2}', 'kkk..." comes twice'),
        ('{"a": NaN}', "NaN, which JSON does not have"),
        ('{"a": [-Infinity]}', "-Infinity, which JSON does not have"),
        ('{"a": 1e400}', "1e400, which is too large"),
        ('{"a": ' + "1" * 41 + "}", "a number of more than 40 digits"),
        ('{"a": -' + "1" * 10_000 + "}", "a number of more than 40 digits"),
        ("[" * (DEEPEST + 1) + "]" * (DEEPEST + 1), "nested more than 64"),
        ('{"a":' * 900 + "1" + "}" * 900, "nested more than 64"),
        ("[" * 100_000, "nested more than 64"),
        ('{"a": 1', "it is not JSON: Expecting"),
        (b"\xff\xfe\xfd", "it is not UTF-8"),
    ],
)
def test_what_could_be_read_in_two_ways_is_refused_by_name(text: str | bytes, said: str) -> None:
    with pytest.raises(NotStrict) as refused:
        read_json(text)
    assert said in str(refused.value)
    assert len(str(refused.value)) < 200


def test_the_deepest_that_is_read() -> None:
    assert read_json("[" * DEEPEST + "]" * DEEPEST) is not None
