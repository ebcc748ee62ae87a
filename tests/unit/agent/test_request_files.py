"""Which files go along with a request (MSG-19), without losing the provider's cache (CTX-3)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.agent.attachments import Bound, enclosed
from runtime.domain.files import ReceivedFile
from runtime.domain.transcript import NoticeMessage, UserMessage

pytestmark = pytest.mark.requirement("MSG-19", "CTX-3")


def told(name: str, *, size: int = 10, shown: bool = True, side: int = 1_200) -> NoticeMessage:
    file = ReceivedFile(
        input_id="inp_1",
        place=0,
        name=name,
        state="kept",
        digest=name,
        size_bytes=size,
        width=side,
        height=side,
        shown=shown,
    )
    return NoticeMessage(text=name, file=file)


def names(count: int, bound: Bound) -> list[str]:
    """What goes along after `count` pictures."""
    return [one.name for one in enclosed([told(str(n)) for n in range(count)], bound)]


def test_the_newest_go_along_in_their_order() -> None:
    assert names(3, Bound(4, 100_000)) == ["0", "1", "2"]


def test_past_the_bound_the_older_half_is_left_out_at_once() -> None:
    bound = Bound(4, 100_000)
    assert names(5, bound) == ["3", "4"]
    assert names(6, bound) == ["3", "4", "5"], "and then nothing moves for a while"
    assert names(7, bound) == ["3", "4", "5", "6"]
    assert names(8, bound) == ["6", "7"]


def test_tokens_and_bytes_bound_too() -> None:
    assert names(3, Bound(9, 3_200)) == ["2"]
    heavy = [told(str(n), size=60) for n in range(3)]
    assert [one.name for one in enclosed(heavy, Bound(9, 100_000, size=120))] == ["2"]
    assert enclosed([told("0", size=121)], Bound(9, 100_000, size=120)) == ()
    assert names(2, Bound(0, 100_000)) == []


def test_what_is_not_to_be_shown_and_what_came_before_is_left_out() -> None:
    said = [UserMessage(text="x"), told("a"), told("b", shown=False), told("a"), told("c")]
    assert [one.name for one in enclosed(said, Bound(9, 100_000))] == ["a", "c"]


@given(st.integers(0, 60), st.integers(1, 12), st.integers(0, 20_000))
def test_the_bound_holds_and_one_more_changes_the_front_only_when_it_is_passed(
    count: int, files: int, tokens: int
) -> None:
    bound = Bound(files, tokens)
    before, after = names(count, bound), names(count + 1, bound)
    assert bound.holds(enclosed([told(str(n)) for n in range(count)], bound))
    grown = [*before, str(count)]
    assert after == grown[len(grown) - len(after) :]
    if len(grown) <= files and len(grown) * 1_600 <= tokens:
        assert after == grown
