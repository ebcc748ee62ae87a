"""The rules of rate limits against a model of them that keeps every moment; and the words."""

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.config_engine import rate_settings
from runtime.domain.budgets import spender_of
from runtime.domain.messages import ChatAddress
from runtime.domain.people import Speaker, Trust
from runtime.domain.rates import (
    Full,
    Limited,
    Rate,
    RateScope,
    RateSettings,
    Tally,
    Window,
    counted,
    full,
    limits_of_runs,
    limits_of_words,
    rate_lines,
    refusal_line,
)
from tests.unit.config.support import problems, reader

NOON = 1_795_176_000_000  # 2026-11-20 12:00 UTC
MINUTE, HOUR = 60_000, 3_600_000
GROUP = ChatAddress(channel="test", account="A1", chat_id="C1", chat_kind="group")
DIRECT = ChatAddress(channel="test", account="A1", chat_id="D1", chat_kind="direct")
MEMBER = Speaker(person_id="per_1", channel="test", account="A1", user_id="U1", trust=Trust.MEMBER)
EVERY = RateSettings(person=Rate(1, 2), room=Rate(3, 4), words=Rate(5))
GAPS = st.one_of(
    st.integers(0, 3), st.integers(0, 30_000), st.sampled_from([59_999, 60_000, HOUR - 1, HOUR])
)


def limited(minute: int = 0, hour: int = 0, scope: RateScope = RateScope.PERSON) -> Limited:
    return Limited(scope, "per_1", Rate(minute, hour))


def may_begin(begun: list[int], now: int, most: int, length: int) -> bool:
    """The rule told in another way: from all that ever began, without a tally."""
    starts = list[int]()
    for moment in begun:
        if not starts or moment >= starts[-1] + length:
            starts.append(moment)
    if not most or not starts or now >= starts[-1] + length:
        return True
    return sum(moment >= starts[-1] for moment in begun) < most


@pytest.mark.requirement("POL-8")
@given(st.lists(GAPS, max_size=80), st.integers(0, 4), st.integers(0, 9))
def test_what_may_begin_is_what_the_model_says(gaps: list[int], minute: int, hour: int) -> None:
    limit, tally, begun = limited(minute, hour), Tally(), list[int]()
    for now in accumulate(gaps, initial=NOON):
        found = full(limit, tally, now)
        both = may_begin(begun, now, minute, MINUTE) and may_begin(begun, now, hour, HOUR)
        assert (found is None) is both
        if found is None:
            tally = counted(tally, now)
            begun.append(now)
            continue
        assert now < found.ends_ms <= now + HOUR
        assert full(limit, tally, found.ends_ms) is None, "what a person is told is true"
        assert full(limit, tally, found.ends_ms - 1) is not None, "and no later than needed"


@pytest.mark.requirement("POL-8")
def test_of_two_full_windows_the_one_that_ends_last_is_named() -> None:
    tally = Tally(Window(NOON + 10, 9), Window(NOON + 20, 9))
    assert full(limited(9, 9), tally, NOON) == Full(limited(9, 9), "hour", NOON + 20)
    assert full(limited(9, 10), tally, NOON) == Full(limited(9, 10), "minute", NOON + 10)


def test_a_clock_that_went_back_holds_nobody_longer_than_a_window() -> None:
    tally = counted(Tally(), NOON)
    assert full(limited(1), tally, NOON) is not None
    assert full(limited(1), tally, NOON - 1) is None


@pytest.mark.requirement("POL-8")
def test_who_is_bound_by_which_limits() -> None:
    def names(speaker: Speaker, place: ChatAddress, settings: RateSettings = EVERY) -> list[str]:
        spender = spender_of(speaker, place, session_id="s")
        runs = limits_of_runs(settings, speaker, spender)
        return [one.name for one in (*runs, *limits_of_words(settings, speaker, spender))]

    room = "room:test:A1:C1"
    assert names(MEMBER, GROUP) == ["person:per_1", room, "words:per_1"]
    assert names(MEMBER, DIRECT) == ["person:per_1", "words:per_1"]
    for trust in (Trust.GUEST, Trust.BOT):
        account = MEMBER.model_copy(update={"trust": trust})
        assert names(account, GROUP) == ["person:test:A1:U1", room, "words:test:A1:U1"]
    owner = MEMBER.model_copy(update={"trust": Trust.OWNER})
    assert names(owner, GROUP) == []
    bound = RateSettings(EVERY.person, EVERY.room, EVERY.words, owners=True)
    assert names(owner, GROUP, bound) == ["person:per_1", room, "words:per_1"]
    assert names(MEMBER, GROUP, RateSettings()) == []
    assert names(MEMBER, GROUP, RateSettings(room=Rate(hour=1))) == [room]


@pytest.mark.requirement("POL-8")
@pytest.mark.parametrize(
    ("scope", "named"),
    [
        (RateScope.PERSON, "requests of yours"),
        (RateScope.ROOM, "requests of this room"),
        (RateScope.WORDS, "I answered you"),
    ],
)
def test_the_line_names_the_limit_and_when_it_goes_on(scope: RateScope, named: str) -> None:
    found = Full(limited(7, scope=scope), "minute", NOON + 1)
    line = refusal_line(found, timezone="Europe/Berlin")
    assert named in line
    assert "7" in line
    assert "in a minute" in line
    assert "13:00:01 (Europe/Berlin)" in line, "rounded up: never too early"
    assert "\n" not in line
    hourly = Full(limited(7, 8, scope=scope), "hour", NOON)
    assert "8" in refusal_line(hourly, timezone="UTC")
    assert "in an hour" in refusal_line(hourly, timezone="UTC")


@pytest.mark.requirement("POL-8")
def test_what_is_left_is_shown_by_window() -> None:
    tally = Tally(Window(NOON - 1, 5), Window(NOON + MINUTE, 9))
    assert rate_lines([(limited(5, 8), tally)], NOON, timezone="UTC") == (
        "- your requests in a minute: 0 of 5 used, 5 left",
        "- your requests in an hour: 9 of 8 used, 0 left, until 12:01:00 (UTC)",
    )
    assert rate_lines([(limited(0, 8), Tally())], NOON, timezone="UTC") == (
        "- your requests in an hour: 0 of 8 used, 8 left",
    )


@pytest.mark.requirement("POL-8")
def test_the_operator_sets_each_limit_and_0_is_none(tmp_path) -> None:
    read = reader(tmp_path / "home")
    usual = rate_settings(read().settings)
    assert (usual.person, usual.room, usual.words) == (Rate(20, 240), Rate(60, 1200), Rate(30))
    assert not usual.owners
    text = 'timezone = "Europe/Berlin"\n[limits]\nowners = true\nreplies_per_minute = 5\n'
    for number, name in enumerate(("person", "room")):
        text += f"{name}_runs_per_minute = {2 * number}\n{name}_runs_per_hour = {2 * number + 1}\n"
    found = rate_settings(read(text).settings)
    assert found == RateSettings(Rate(0, 1), Rate(2, 3), Rate(5), True, "Europe/Berlin")
    assert problems(read, "[limits]\nperson_runs_per_minute = -1\n")
