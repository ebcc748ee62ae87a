"""SUB-10: how much of a result is handed over, and where the whole of it lies."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.domain.results import SPOOLED, cut, path_of, plain, shortened

EURO = "\u20ac"


@pytest.mark.requirement("SUB-10")
@pytest.mark.parametrize(
    ("text", "long"),
    [
        ("", False),
        ("x" * 4_000, False),
        ("x" * 4_001, True),
        (EURO * 1_333, False),
        ("x" + EURO * 1_333, False),
        (EURO * 1_334, True),
    ],
)
def test_what_is_long_is_counted_in_bytes(text: str, long: bool) -> None:
    short = shortened(text)
    assert (short.digest is not None) == long
    assert short.size == len(text.encode())
    assert len(short.preview.encode()) <= SPOOLED
    assert text.startswith(short.preview)
    assert long or short.preview == text


@pytest.mark.requirement("SUB-10")
def test_the_digest_is_that_of_the_whole() -> None:
    text = "a pearl " * 1_000
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert shortened(text).digest == digest
    path = path_of("ses_parent", "ses_child", digest)
    assert path == f".gatehouse/outputs/ses_parent/agents/ses_child-{digest[:16]}.txt"


@pytest.mark.requirement("SUB-9")
@given(st.text(alphabet=st.characters(codec=None)))
def test_what_is_plain_can_be_kept_everywhere(text: str) -> None:
    kept = plain(text + "\ud800\0")
    assert "\0" not in kept
    assert kept.encode().decode() == kept
    assert plain(kept) == kept


@given(st.text(), st.integers(0, 40))
def test_a_cut_is_a_beginning_of_whole_characters(text: str, most: int) -> None:
    beginning = cut(text, most)
    assert text.startswith(beginning)
    assert len(beginning.encode()) <= most
