"""Which of the times that came while nothing ran fire, and what stands for the others (SCH-3)."""

from collections.abc import Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from runtime.features.schedules import cadence as calendar
from runtime.features.schedules.cadence import Cadence, Cron, Interval
from runtime.features.schedules.missed_times import (
    MOST_AT_ONCE,
    MOST_COUNTED,
    TOO_LATE,
    TOO_MANY,
    Due,
    Skipped,
    due_times,
)
from runtime.features.schedules.model import CoalesceOnce, SkipMissed
from tests.unit.schedules.test_cadence import at

pytestmark = pytest.mark.requirement("SCH-3")

DAY_MS = 24 * 3600 * 1000
NOW = at("2026-11-27T06:00:21")
EACH_SECOND = Cron(expression="* * * * * *", timezone="Europe/Berlin")
EACH_MINUTE = Cron(expression="* * * * *", timezone="Europe/Berlin")
FIVE_SECONDS = Interval(every_seconds=5)


def due(cadence: Cadence, first: int, *, grace_ms: int = DAY_MS, now: int = NOW) -> Due:
    """What of the times since `first` is due with this grace."""
    policy = SkipMissed(type="skip_missed", grace_ms=grace_ms)
    return due_times(cadence, policy, first, now, NOW - 10 * DAY_MS)


@pytest.mark.parametrize(
    ("cadence", "step_s", "dropped"),
    [
        (EACH_SECOND, 1, f"at least {MOST_COUNTED + 1:,} times"),
        (FIVE_SECONDS, 5, f"{DAY_MS // 5000 + 1 - MOST_AT_ONCE:,} times"),
    ],
)
def test_of_too_many_times_the_newest_fire_and_one_row_stands_for_the_others(
    cadence: Cadence, step_s: int, dropped: str
) -> None:
    newest = NOW // (step_s * 1000) * step_s * 1000
    if isinstance(cadence, Interval):
        newest = NOW
    found = due(cadence, newest - DAY_MS)
    assert list(found.fire) == [newest - n * step_s * 1000 for n in reversed(range(MOST_AT_ONCE))]
    reason = f"{dropped} did not fire: {TOO_MANY}"
    assert found.skipped == (Skipped(newest - DAY_MS, reason),)


@pytest.mark.parametrize(("missed", "skipped"), [(MOST_AT_ONCE, 0), (MOST_AT_ONCE + 1, 1)])
def test_as_many_as_fire_at_once_all_fire(missed: int, skipped: int) -> None:
    newest = at("2026-11-27T06:00")
    first = newest - (missed - 1) * 60_000
    found = due(EACH_MINUTE, first)
    assert len(found.fire) == MOST_AT_ONCE
    assert [one.slot_ms for one in found.skipped] == [first] * skipped
    assert all(one.reason == f"1 time did not fire: {TOO_MANY}" for one in found.skipped)


def test_a_time_that_a_pause_put_beside_its_cadence_fires_with_those_behind_it() -> None:
    newest = at("2026-11-27T06:00")
    first = newest - 90_500
    assert list(due(EACH_MINUTE, first).fire) == [first, newest - 60_000, newest]


@pytest.mark.parametrize(
    ("missed", "reason"),
    [
        (1, TOO_LATE),
        (2, f"{TOO_LATE}, and to 1 later time as well"),
        (10, f"{TOO_LATE}, and to 9 later times as well"),
    ],
)
def test_the_row_of_what_came_too_late_says_for_how_many_it_stands(
    missed: int, reason: str
) -> None:
    newest = at("2026-11-27T06:00")
    first = newest - missed * 60_000
    found = due(EACH_MINUTE, first, grace_ms=0, now=newest)
    assert list(found.fire) == [newest]
    assert found.skipped == (Skipped(first, reason),)


@pytest.mark.parametrize(
    "policy", [SkipMissed(type="skip_missed", grace_ms=DAY_MS), CoalesceOnce()]
)
@pytest.mark.parametrize(
    ("first", "now"),
    [
        (NOW - DAY_MS, NOW),
        (at("2026-10-25T00:00"), at("2026-10-25T00:40")),
        (at("2026-10-25T01:10"), at("2026-10-25T01:40")),
    ],
)
def test_a_day_of_seconds_costs_no_more_than_what_is_kept_and_counted(
    policy: SkipMissed | CoalesceOnce, first: int, now: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in the hour that the clocks of Berlin show twice."""
    looked = 0
    seen = calendar.instants

    def counts(wall: datetime, zone: ZoneInfo) -> Sequence[datetime]:
        nonlocal looked
        looked += 1
        return seen(wall, zone)

    monkeypatch.setattr(calendar, "instants", counts)
    assert due_times(EACH_SECOND, policy, first, now, now - 10 * DAY_MS).fire
    # At most three for each: where its wall clock stands, the next of it, and the one shown again.
    assert looked <= 4 * (MOST_COUNTED + MOST_AT_ONCE + 3)
