"""The history window: bounded, cut before a person's message, and rarely (CTX-3, CTX-7)."""

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.domain.tools import ToolCall, ToolResult
from runtime.domain.transcript import (
    AssistantMessage,
    NoticeMessage,
    ToolMessage,
    TranscriptMessage,
    UserMessage,
)
from runtime.sessions.transcripts import Line
from runtime.sessions.window import Window, WindowCache, window_start

U = UserMessage(text="a question")
A = AssistantMessage(text="an answer")
C = AssistantMessage(tool_calls=(ToolCall(id="c1", name="exec", arguments="{}"),))
T = ToolMessage(results=(ToolResult(call_id="c1", name="exec", content="done"),))
N = NoticeMessage(text="the gateway was restarted")
KINDS: dict[str, TranscriptMessage] = {"U": U, "A": A, "C": C, "T": T, "N": N}


def line(seq: int, kind: str, tokens: int) -> Line:
    return Line(seq, "run_1", 0, tokens, 0, KINDS[kind])


def lines(kinds: str, tokens: int = 10) -> list[Line]:
    return [line(seq, kind, tokens) for seq, kind in enumerate(kinds, 1)]


# One turn: a person (or several at once), steps of calls and results, perhaps a message into a
# run that waits, perhaps a notice, an answer.
turns = st.builds(
    "".join,
    st.tuples(
        st.sampled_from(["U", "UU", "UN"]),
        st.lists(st.sampled_from(["CT", "CUT", "CNT", "A"]), max_size=4).map("".join),
        st.sampled_from(["A", "", "N"]),
    ),
)
transcripts = st.lists(turns, max_size=30).map("".join)


@st.composite
def sized(draw: st.DrawFn) -> list[Line]:
    kinds = draw(transcripts)
    return [line(seq, kind, draw(st.integers(0, 60))) for seq, kind in enumerate(kinds, 1)]


def cuttable(found: Sequence[Line]) -> list[int]:
    """A person's messages with no calls before them whose results come after."""
    places = []
    for place, one in enumerate(found):
        before = [m.message for m in found[:place] if isinstance(m.message, AssistantMessage)]
        results = [m for m in found[:place] if isinstance(m.message, ToolMessage)]
        calls = sum(bool(message.tool_calls) for message in before)
        if isinstance(one.message, UserMessage) and calls == len(results):
            places.append(place)
    return places


@pytest.mark.requirement("CTX-7")
@given(sized(), st.integers(20, 600), st.integers(4, 60))
def test_a_window_is_whole_turns_within_its_bounds(
    found: list[Line], max_tokens: int, max_messages: int
) -> None:
    start = window_start(found, max_tokens=max_tokens, max_messages=max_messages)
    fits = sum(one.tokens for one in found) <= max_tokens and len(found) <= max_messages
    if fits:
        assert start == 0
        return
    places = cuttable(found)
    assert start in places
    kept = found[start:]
    within = sum(one.tokens for one in kept) <= max_tokens // 2 and len(kept) <= max_messages // 2
    assert within or start == places[-1]
    earlier = [place for place in places if place < start]
    if within and earlier:
        more = found[earlier[-1] :]
        assert sum(one.tokens for one in more) > max_tokens // 2 or len(more) > max_messages // 2


@pytest.mark.requirement("CTX-7")
def test_a_call_and_its_result_are_never_parted() -> None:
    """Somebody writes while a run waits for an approval: their message stands in between."""
    found = lines("UCTAUCUTA")
    assert [window_start(found, max_tokens=limit) for limit in (80, 60, 40, 20, 2)] == [4] * 5
    waiting = lines("UCTAUCU")
    assert window_start(waiting, max_tokens=20) == 4


def test_a_turn_that_alone_is_too_long_stays_whole() -> None:
    found = lines("UAU" + "CT" * 30 + "A")
    assert window_start(found, max_tokens=100) == 2
    assert window_start([line(1, "U", 1000)], max_tokens=100) == 0


def test_a_transcript_without_a_person_is_not_cut() -> None:
    assert window_start(lines("NANA"), max_tokens=10) == 0
    assert window_start([], max_tokens=0) == 0


def test_the_limits_themselves_still_fit() -> None:
    assert window_start(lines("UA" * 5), max_tokens=100, max_messages=10) == 0
    assert window_start(lines("UA" * 5), max_tokens=99, max_messages=10) == 6
    assert window_start(lines("UA" * 5), max_tokens=100, max_messages=9) == 6


@pytest.mark.requirement("CTX-3")
@settings(max_examples=60)
@given(st.lists(st.tuples(turns, st.integers(1, 20)), min_size=40, max_size=80))
def test_the_start_moves_only_after_half_a_window_of_news(session: list[tuple[str, int]]) -> None:
    """No turn here is longer than half of the window: 15 messages of 20 tokens at most."""
    max_tokens, max_messages = 600, 40
    since_cut = (max_tokens, max_messages)
    for held, start in _played(session, max_tokens, max_messages):
        news = held[start:]
        if start:
            assert since_cut[0] > max_tokens // 2 or since_cut[1] > max_messages // 2
            since_cut = (0, 0)
        added = news[-1:]
        since_cut = (since_cut[0] + sum(o.tokens for o in added), since_cut[1] + len(added))


def _played(
    session: list[tuple[str, int]], max_tokens: int, max_messages: int
) -> Iterator[tuple[list[Line], int]]:
    held: list[Line] = []
    seq = 0
    for kinds, tokens in session:
        for kind in kinds:
            seq += 1
            held.append(line(seq, kind, tokens))
            start = window_start(held, max_tokens=max_tokens, max_messages=max_messages)
            yield held, start
            held = held[start:]


@pytest.mark.requirement("CTX-7")
def test_a_session_of_10_000_messages_costs_what_one_of_200_costs() -> None:
    held: list[Line] = []
    longest, costliest, cuts = 0, 0, 0
    for seq in range(1, 10_001):
        held.append(line(seq, "UCTA"[(seq - 1) % 4], 50 + seq % 7))
        if seq % 4 == 1:
            start = window_start(held, max_tokens=8_000)
            cuts += start > 0
            held = held[start:]
            longest = max(longest, len(held))
            costliest = max(costliest, sum(one.tokens for one in held))
    assert longest <= 200
    assert costliest <= 8_000
    assert cuts <= 10_000 * 54 // 4_000


def test_a_window_knows_its_end() -> None:
    assert Window(1, ()).last == 0
    assert Window(1, tuple(lines("UA"))).last == 2


def test_the_cache_forgets_another_transcript_and_the_oldest_session() -> None:
    cache = WindowCache(limit=2)
    window = Window(1, tuple(lines("UA")))
    cache.put("a", window)
    assert cache.get("a", 1) is window
    assert cache.get("a", 2) == Window(2, ())
    assert cache.get("b", 1) == Window(1, ())
    cache.put("b", window)
    cache.put("a", window)
    cache.put("c", window)
    assert cache.get("b", 1) == Window(1, ())
    assert cache.get("a", 1) is window
    assert cache.get("c", 1) is window
