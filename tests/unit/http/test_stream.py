"""What a reader of the stream is passed, and when it has to ask again (API-4, MSG-21)."""

import pytest

from gateway.http.credentials import FailureLimiter
from gateway.http.stream import SLOWER_BY, Filter, Prose, Texts
from tests.fakes.clock import FakeClock


def delta(offset: int, text: str, *, run: str = "r", step: int = 1) -> dict[str, object]:
    return {"run_id": run, "session_id": "s", "step": step, "offset": offset, "text": text}


@pytest.mark.requirement("MSG-21")
def test_text_without_a_hole_passes() -> None:
    texts = Texts()
    assert [texts.take(delta(0, "ab")), texts.take(delta(2, "c😀")), texts.take(delta(4, "d"))]
    assert texts.take(delta(0, "anew"))
    assert texts.take(delta(4, "!"))


@pytest.mark.requirement("MSG-21")
def test_a_hole_is_asked_for_once_and_closed_by_the_whole_text() -> None:
    texts = Texts()
    assert texts.take(delta(0, "ab"))
    assert not texts.take(delta(5, "x"))
    assert texts.missing("r")
    assert not texts.take(delta(2, "c"))
    assert not texts.missing("r")
    assert texts.take(delta(0, "abc__x"))
    assert texts.take(delta(6, "y"))
    assert not texts.take(delta(9, "z"))
    assert texts.missing("r")


def test_a_step_does_not_go_on_where_another_ended() -> None:
    texts = Texts()
    assert texts.take(delta(0, "ab", step=1))
    assert not texts.take(delta(2, "c", step=2))


def test_what_was_lost_makes_everything_unknown() -> None:
    texts = Texts()
    assert texts.take(delta(0, "ab"))
    texts.lost()
    assert not texts.take(delta(2, "c"))
    texts.ended("r")
    assert texts.missing("r")


def test_a_filter_wants_kinds_by_word_and_sessions_by_id() -> None:
    wanted = Filter("s", None, frozenset({"run", "delta"}))
    assert wanted.wants_kind("run.queued")
    assert not wanted.wants_kind("step.model")
    assert wanted.wants_live({"type": "delta", "session_id": "s", "run_id": "r"})
    assert not wanted.wants_live({"type": "delta", "session_id": "other", "run_id": "r"})
    assert not wanted.wants_live({"type": "activity", "session_id": "s", "run_id": "r"})
    assert Filter().wants_kind("anything")


@pytest.mark.requirement("API-1")
async def test_failures_block_an_address_for_the_window_and_no_other() -> None:
    clock = FakeClock()
    limiter = FailureLimiter(clock, most=3, window_s=60)
    for _ in range(2):
        limiter.failed("a")
    assert limiter.blocked_s("a") == 0
    await clock.advance(10)
    limiter.failed("a")
    assert limiter.blocked_s("a") == 50
    assert limiter.blocked_s("b") == 0
    await clock.advance(50)
    assert limiter.blocked_s("a") == 0
    limiter.failed("a")
    assert limiter.blocked_s("a") == 0
    limiter.failed("a")
    assert limiter.blocked_s("a") == 10


def prose() -> Prose:
    return Prose(growing=lambda text: text.split("|"), whole=lambda text: [*text.split("|"), "end"])


@pytest.mark.requirement("WEB-3")
def test_only_blocks_that_changed_are_told_again() -> None:
    texts = prose()
    assert (texts.news(), texts.pause_s()) == ([], None)
    texts.take(delta(0, "a|b"))
    assert [(one["since"], one["blocks"]) for one in texts.news()] == [(0, ["a", "b"])]
    assert texts.news() == []
    texts.take(delta(3, "c|d"))
    assert [(one["since"], one["blocks"]) for one in texts.news()] == [(1, ["bc", "d"])]
    # Somebody else asked for all of it: nothing of it is news.
    texts.take(delta(0, "a|bc|d"))
    assert texts.news() == []
    # A stream that broke begins anew.
    texts.take(delta(0, "a|x"))
    assert [(one["since"], one["blocks"]) for one in texts.news()] == [(1, ["x"])]
    ended = texts.end("r")
    assert ended is not None
    assert (ended["since"], ended["blocks"]) == (2, ["end"])
    assert texts.end("r") is None


@pytest.mark.requirement("WEB-3")
def test_a_step_begins_with_nothing_and_a_long_text_is_told_less_often() -> None:
    texts = prose()
    texts.take(delta(0, "a"))
    texts.news()
    texts.take(delta(0, "a|b", step=2))
    (event,) = texts.news()
    assert (event["step"], event["since"], event["blocks"]) == (2, 0, ["a", "b"])
    texts.take(delta(3, "c", step=2))
    soon = texts.pause_s()
    texts.take(delta(4, "c" * SLOWER_BY, step=2))
    later = texts.pause_s()
    assert soon is not None
    assert later is not None
    assert soon < 0.1 < 1 < later
