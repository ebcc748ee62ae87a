"""When a schedule is due, at the days on which clocks change too, and which cadences there are."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from runtime.domain.errors import InvalidInput
from runtime.features.schedules.cadence import (
    MOST_SECONDS,
    Cron,
    Interval,
    Once,
    cadence_of,
    first_instant,
    instant,
    instants,
    last_fire_ms,
    milliseconds,
    next_fire_ms,
    next_fires_ms,
    zone_named,
)
from runtime.features.schedules.times_in_words import told
from tests.support.profiles import examples

MINUTE = timedelta(minutes=1)
BERLIN, NEW_YORK = "Europe/Berlin", "America/New_York"
LORD_HOWE, KOLKATA = "Australia/Lord_Howe", "Asia/Kolkata"
CASABLANCA, APIA = "Africa/Casablanca", "Pacific/Apia"


def cron(expression: str, zone: str = "UTC") -> Cron:
    return Cron(expression=expression, timezone=zone)


def at(text: str) -> int:
    """The milliseconds of a time in ISO's notation, in UTC where it names no offset."""
    moment = datetime.fromisoformat(text)
    return milliseconds(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def fires(expression: str, zone: str, after: str, most: int) -> list[str]:
    """The next fires as the clocks of the zone show them, with their offset."""
    found = next_fires_ms(cron(expression, zone), at(after), 0, most=most)
    local = [instant(fire_ms).astimezone(ZoneInfo(zone)) for fire_ms in found]
    return [f"{one:%d %H:%M:%S%z}".replace(":00+", "+").replace(":00-", "-") for one in local]


@pytest.mark.parametrize(
    ("raw", "cadence"),
    [
        ({"type": "once", "fire_at_ms": 0}, Once(fire_at_ms=0)),
        (
            {"type": "once", "fire_at_ms": 253_402_214_399_999},
            Once(fire_at_ms=253_402_214_399_999),
        ),
        ({"type": "interval", "every_seconds": 5}, Interval(every_seconds=5)),
        (
            {"type": "interval", "every_seconds": MOST_SECONDS},
            Interval(every_seconds=MOST_SECONDS),
        ),
        ({"type": "cron", "expression": "0 9 * * 1-5"}, cron("0 9 * * 1-5", "UTC")),
        (
            {"type": "cron", "expression": "30 0 9 * * *", "timezone": BERLIN},
            cron("30 0 9 * * *", BERLIN),
        ),
        ({"type": "cron", "expression": "0 0 29 2 mon"}, cron("0 0 29 2 mon")),
    ],
)
def test_each_shape_is_read_and_written_as_it_is(
    raw: dict[str, JsonValue], cadence: Once | Interval | Cron
) -> None:
    read = cadence_of(raw)
    assert read == cadence
    assert read.model_dump(exclude_unset=True) == raw


NEVER = "must come at some time, and this never does"
NO_ZONE = "must be a time zone such as Europe/Berlin, not"


@pytest.mark.parametrize(
    ("raw", "field", "rule"),
    [
        (None, "cadence", "input should be a valid dictionary or object to extract fields from"),
        ({}, "cadence.type", "must be once, interval or cron"),
        ({"type": "daily"}, "cadence.type", "must be once, interval or cron"),
        ({"type": "once"}, "cadence.fire_at_ms", "field required"),
        ({"type": "once", "fire_at_ms": "5"}, "cadence.fire_at_ms", "should be a valid integer"),
        ({"type": "once", "fire_at_ms": 5.0}, "cadence.fire_at_ms", "should be a valid integer"),
        ({"type": "once", "fire_at_ms": True}, "cadence.fire_at_ms", "should be a valid integer"),
        ({"type": "once", "fire_at_ms": -1}, "cadence.fire_at_ms", "greater than or equal to 0"),
        ({"type": "once", "fire_at_ms": 253_402_214_400_000}, "cadence.fire_at_ms", "less than"),
        ({"type": "once", "fire_at_ms": 1, "at": 1}, "cadence.at", "extra inputs are not"),
        ({"type": "once", "fire_at_ms": 1, "a\u202e": 1}, "cadence.a\\u{202e}", "extra inputs"),
        ({"type": "interval", "every_seconds": 4}, "cadence.every_seconds", "or equal to 5"),
        ({"type": "interval", "every_seconds": "9"}, "cadence.every_seconds", "valid integer"),
        ({"type": "interval", "every_seconds": MOST_SECONDS + 1}, "cadence.every_seconds", "less"),
        ({"type": "cron", "expression": 9}, "cadence.expression", "should be a valid string"),
        ({"type": "cron", "expression": ""}, "cadence.expression", "must have 5 fields"),
        ({"type": "cron", "expression": "* * * *"}, "cadence.expression", "must have 5 fields"),
        ({"type": "cron", "expression": "@daily"}, "cadence.expression", "must have 5 fields"),
        ({"type": "cron", "expression": "* " * 7}, "cadence.expression", "must have 5 fields"),
        ({"type": "cron", "expression": "60 * * * *"}, "cadence.expression", "a valid minute"),
        ({"type": "cron", "expression": "* 24 * * *"}, "cadence.expression", "a valid hour"),
        ({"type": "cron", "expression": "* * 32 * *"}, "cadence.expression", "a day-of-month"),
        ({"type": "cron", "expression": "* * * 13 *"}, "cadence.expression", "a valid month"),
        ({"type": "cron", "expression": "* * * * 8"}, "cadence.expression", "valid day-of-week"),
        ({"type": "cron", "expression": "0 0 30 2 *"}, "cadence.expression", "a day-of-month that"),
        ({"type": "cron", "expression": "0 0 31 4,6 *"}, "cadence.expression", "a day-of-month"),
        ({"type": "cron", "expression": "0 0 */20 * 1L"}, "cadence.expression", NEVER),
        ({"type": "cron", "expression": "0 " * 101}, "cadence.expression", "at most 200"),
        *(
            (
                {"type": "cron", "expression": "0 9 * * *", "timezone": zone},
                "cadence.timezone",
                f"{NO_ZONE} {shown}",
            )
            for zone, shown in (
                ("Europe/Berlino", "'Europe/Berlino'"),
                ("", "''"),
                ("Europe", "'Europe'"),
                ("../zoneinfo/UTC", "'../zoneinfo/UTC'"),
                ("right/UTC", "'right/UTC'"),
                ("posix/UTC", "'posix/UTC'"),
                ("localtime", "'localtime'"),
                ("a\u202eb", "'a\\u{202e}b'"),
            )
        ),
        (
            {"type": "cron", "expression": "0 9 * * *", "timezone": "x" * 101},
            "cadence.timezone",
            "",
        ),
        ({"type": "cron", "expression": "0 9 * * *", "timezone": None}, "cadence.timezone", ""),
    ],
)
@pytest.mark.requirement("SCH-7")
def test_a_cadence_that_breaks_a_rule_is_refused_by_field_and_rule(
    raw: JsonValue, field: str, rule: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        cadence_of(raw)
    assert refused.value.field == field
    assert rule in refused.value.rule
    assert refused.value.rule.startswith(("must ", "input should ", "field ", "string ", "extra "))
    assert refused.value.rule[:1].islower()


def test_a_zone_is_known_by_its_name() -> None:
    assert zone_named("Asia/Kolkata") is ZoneInfo("Asia/Kolkata")
    with pytest.raises(InvalidInput, match=r"timezone: must be a time zone .* not 'Mars/Base'"):
        zone_named("Mars/Base")


def test_once_is_due_until_its_time_has_come() -> None:
    once = Once(fire_at_ms=1000)
    assert [next_fire_ms(once, after, 0) for after in (0, 999, 1000, 1001)] == [
        1000,
        1000,
        None,
        None,
    ]
    assert next_fires_ms(once, 0, 0) == [1000]


def test_an_interval_counts_from_its_anchor() -> None:
    every = Interval(every_seconds=10)
    assert next_fires_ms(every, 7000, 7000) == [17_000, 27_000, 37_000]
    assert [next_fire_ms(every, after, 7000) for after in (0, 16_999, 17_000, 36_999)] == [
        17_000,
        17_000,
        27_000,
        37_000,
    ]


@pytest.mark.parametrize(
    ("expression", "zone", "after", "expected"),
    [
        # Minute and hour fixed: what is left out comes at the next instant, what repeats once.
        ("30 2 * * *", BERLIN, "2026-03-28T12:00", ["29 03:00+0200", "30 02:30+0200"]),
        ("30 2 * * *", BERLIN, "2026-10-24T12:00", ["25 02:30+0200", "26 02:30+0100"]),
        ("30 2 * * *", BERLIN, "2026-10-25T02:10+01:00", ["26 02:30+0100"]),
        ("0,30 2 * * *", BERLIN, "2026-03-28T12:00", ["29 03:00+0200", "30 02:00+0200"]),
        ("0 2,3 * * *", BERLIN, "2026-03-28T12:00", ["29 03:00+0200", "30 02:00+0200"]),
        ("0 2-3 * * *", BERLIN, "2026-10-25T01:30+02:00", ["25 02:00+0200", "25 03:00+0100"]),
        ("30 2 * * *", NEW_YORK, "2026-03-07T12:00", ["08 03:00-0400", "09 02:30-0400"]),
        ("30 1 * * *", NEW_YORK, "2026-10-31T12:00", ["01 01:30-0400", "02 01:30-0500"]),
        ("15 2 * * *", LORD_HOWE, "2026-10-03T12:00", ["04 02:30+1100", "05 02:15+1100"]),
        ("45 1 * * *", LORD_HOWE, "2026-04-04T12:00", ["05 01:45+1100", "06 01:45+1030"]),
        ("30 2 * * *", KOLKATA, "2026-03-28T12:00", ["29 02:30+0530", "30 02:30+0530"]),
        ("30 2 * * *", CASABLANCA, "2026-03-21T12:00", ["22 03:00+0100", "23 02:30+0100"]),
        ("30 2 * * *", CASABLANCA, "2026-02-14T12:00", ["15 02:30+0100", "16 02:30+0000"]),
        ("30 3 * * *", APIA, "2020-09-26T00:00", ["27 04:00+1400", "28 03:30+1400"]),
        ("30 3 * * *", APIA, "2021-04-02T20:00", ["04 03:30+1400", "05 03:30+1300"]),
        ("0 9 * * *", APIA, "2011-12-29T12:00-10:00", ["31 00:00+1400", "31 09:00+1400"]),
        # The same with seconds, which cron does not have.
        ("15 30 2 * * *", BERLIN, "2026-03-28T12:00", ["29 03:00+0200", "30 02:30:15+0200"]),
        ("15 30 2 * * *", BERLIN, "2026-10-24T12:00", ["25 02:30:15+0200", "26 02:30:15+0100"]),
        ("*/30 30 2 * * *", BERLIN, "2026-03-28T12:00", ["29 03:00+0200", "30 02:30+0200"]),
        # A star in either: elapsed time.
        ("*/30 2 * * *", BERLIN, "2026-03-28T12:00", ["30 02:00+0200", "30 02:30+0200"]),
        (
            "*/30 2 * * *",
            BERLIN,
            "2026-10-24T12:00",
            ["25 02:00+0200", "25 02:30+0200", "25 02:00+0100", "25 02:30+0100", "26 02:00+0100"],
        ),
        ("30 * * * *", BERLIN, "2026-03-29T00:00", ["29 01:30+0100", "29 03:30+0200"]),
        ("0 30 * * * *", BERLIN, "2026-03-29T00:00", ["29 01:30+0100", "29 03:30+0200"]),
        ("30 */1 * * *", BERLIN, "2026-03-29T00:00", ["29 01:30+0100", "29 03:30+0200"]),
        (
            "30 * * * *",
            NEW_YORK,
            "2026-11-01T01:00-04:00",
            ["01 01:30-0400", "01 01:30-0500", "01 02:30-0500"],
        ),
        ("*/10 3 * * *", LORD_HOWE, "2026-10-03T12:00", ["04 03:00+1100", "04 03:10+1100"]),
        (
            "*/15 1 * * *",
            LORD_HOWE,
            "2026-04-05T01:20+11:00",
            ["05 01:30+1100", "05 01:45+1100", "05 01:30+1030", "05 01:45+1030", "06 01:00+1030"],
        ),
        ("* 2 * * *", CASABLANCA, "2026-03-22T01:00+00:00", ["23 02:00+0100", "23 02:01+0100"]),
        ("0 * * * *", APIA, "2011-12-29T23:00-10:00", ["31 00:00+1400", "31 01:00+1400"]),
        ("*/30 * * * *", KOLKATA, "2026-03-29T00:00", ["29 06:00+0530", "29 06:30+0530"]),
        # Fields beside the time of day.
        ("0 9 29 2 *", "UTC", "2026-11-25T12:00", ["29 09:00+0000"]),
        ("0 9 * * 1-5", "UTC", "2026-11-27T09:00", ["30 09:00+0000", "01 09:00+0000"]),
        ("0 9 13 * 5", "UTC", "2026-12-05T12:00", ["11 09:00+0000", "13 09:00+0000"]),
        ("*/20 * * * * *", "UTC", "2026-11-25T12:00:20", ["25 12:00:40+0000", "25 12:01+0000"]),
    ],
)  # fmt: skip
@pytest.mark.requirement("SCH-7")
def test_cron_fires_by_the_clocks_of_its_zone(
    expression: str, zone: str, after: str, expected: list[str]
) -> None:
    assert fires(expression, zone, after, len(expected)) == expected


def test_a_fire_lies_behind_the_millisecond_that_was_named() -> None:
    daily = cron("0 9 * * *", BERLIN)
    due = at("2026-11-26T09:00+01:00")
    assert next_fire_ms(daily, due - 1, 0) == due
    assert next_fire_ms(daily, due, 0) == at("2026-11-27T09:00+01:00")
    assert next_fire_ms(daily, due + 999, 0) == at("2026-11-27T09:00+01:00")


def test_a_cron_that_comes_no_more_has_no_next_fire() -> None:
    never = Cron.model_construct(expression="0 0 */20 * 1L", timezone="UTC")
    assert next_fires_ms(never, 0, 0) == []


def test_a_wall_clock_time_is_shown_never_once_or_twice() -> None:
    berlin = ZoneInfo(BERLIN)
    gap, plain = datetime(2026, 3, 29, 2, 30, 15), datetime(2026, 3, 29, 3, 0)
    twice = datetime(2026, 10, 25, 2, 30)
    assert instants(gap, berlin) == []
    assert instants(plain, berlin) == [datetime(2026, 3, 29, 1, 0, tzinfo=UTC)]
    first = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    assert instants(twice, berlin) == [first, first + 60 * MINUTE]
    assert first_instant(gap, berlin) == instants(plain, berlin)[0]
    assert first_instant(twice, berlin) == first


EDGES = (
    (BERLIN, "2026-03-29T01:00"),
    (BERLIN, "2026-10-25T01:00"),
    (NEW_YORK, "2026-03-08T07:00"),
    (NEW_YORK, "2026-11-01T06:00"),
    (LORD_HOWE, "2026-10-03T15:30"),
    (LORD_HOWE, "2026-04-04T15:00"),
    (KOLKATA, "2026-03-29T01:00"),
    (KOLKATA, "2026-10-25T01:00"),
    (CASABLANCA, "2026-03-22T02:00"),
    (CASABLANCA, "2026-02-15T02:00"),
    (APIA, "2020-09-26T14:00"),
    (APIA, "2021-04-03T14:00"),
    (APIA, "2011-12-30T10:00"),
)
"""Zones, and instants at which their clocks change; those of Kolkata do not."""
HOURS_AROUND = 30


@cache
def minutes_around(zone: str, edge: str) -> list[tuple[datetime, datetime]]:
    """Each minute near an edge: the instant, and what the clocks show then."""
    first = datetime.fromisoformat(edge).replace(tzinfo=UTC) - HOURS_AROUND * 60 * MINUTE
    moments = [first + number * MINUTE for number in range(2 * HOURS_AROUND * 60)]
    return [(one, one.astimezone(ZoneInfo(zone)).replace(tzinfo=None)) for one in moments]


def expected_fires(
    minutes: list[tuple[datetime, datetime]], hours: set[int], within: set[int], *, fixed: bool
) -> Iterator[datetime]:
    """The fires by a search minute by minute, which knows nothing of offsets."""
    shown_before = minutes[0][1] - MINUTE
    for moment, wall in minutes:
        passed = [wall]
        if fixed:
            # All that the clocks passed over since the latest time that they have shown.
            count = (wall - shown_before) // MINUTE
            passed = [wall - number * MINUTE for number in range(count)]
        if any(one.hour in hours and one.minute in within for one in passed):
            yield moment
        shown_before = max(shown_before, wall)


FEW = st.sets(st.integers(0, 59), min_size=1, max_size=4)
HOURS = st.sets(st.integers(0, 4), min_size=1, max_size=4)
STEPS = st.sampled_from([1, 5, 7, 10, 15, 20, 30, 45])


def listed(numbers: set[int]) -> str:
    return ",".join(str(number) for number in sorted(numbers))


def assert_fires_as_searched(
    edge: tuple[str, str], expression: str, hours: set[int], within: set[int]
) -> None:
    zone, _ = edge
    minutes = minutes_around(*edge)
    schedule = cron(expression, zone)
    expected = list(expected_fires(minutes, hours, within, fixed=schedule.fixed))
    before, last = milliseconds(minutes[0][0]) - 1, milliseconds(minutes[-1][0])
    found = next_fires_ms(schedule, before, 0, most=len(expected))
    assert [instant(fire_ms) for fire_ms in found] == expected
    further = next_fire_ms(schedule, found[-1] if found else before, 0)
    assert further is not None
    assert further > last
    # Whatever is asked in between is answered by the next of the same fires.
    for moment, _ in minutes[::29]:
        after = milliseconds(moment) + 1
        later = [fire_ms for fire_ms in (*found, further) if fire_ms > after]
        assert next_fire_ms(schedule, after, 0) == later[0]
        if earlier := [fire_ms for fire_ms in found if fire_ms < after]:
            assert last_fire_ms(schedule, after, 0) == earlier[-1]


@pytest.mark.parametrize("edge", EDGES, ids="-".join)
@given(hours=HOURS, within=FEW)
@examples(6)
@pytest.mark.requirement("SCH-7")
def test_a_fixed_time_costs_and_doubles_no_fire(
    edge: tuple[str, str], hours: set[int], within: set[int]
) -> None:
    assert_fires_as_searched(edge, f"{listed(within)} {listed(hours)} * * *", hours, within)


@pytest.mark.parametrize("edge", EDGES, ids="-".join)
@given(hours=HOURS, step=STEPS)
@examples(6)
@pytest.mark.requirement("SCH-7")
def test_with_a_star_for_the_minute_elapsed_time_counts(
    edge: tuple[str, str], hours: set[int], step: int
) -> None:
    within = set(range(0, 60, step))
    assert_fires_as_searched(edge, f"*/{step} {listed(hours)} * * *", hours, within)


@pytest.mark.parametrize("edge", EDGES, ids="-".join)
@given(within=FEW, step=st.integers(1, 12))
@examples(6)
@pytest.mark.requirement("SCH-7")
def test_with_a_star_for_the_hour_elapsed_time_counts(
    edge: tuple[str, str], within: set[int], step: int
) -> None:
    hours = set(range(0, 24, step))
    assert_fires_as_searched(edge, f"{listed(within)} */{step} * * *", hours, within)


ZONES = st.sampled_from(sorted({zone for zone, _ in EDGES}))
CRONS = st.builds(
    lambda parts, zone: cron(" ".join(parts), zone),
    st.tuples(
        st.sampled_from(["0", "30", "*", "*/7", "1-59/13", "5,35"]),
        st.sampled_from(["2", "*", "*/3", "1-3", "0,23"]),
        st.sampled_from(["*", "1", "29", "31", "L", "LW"]),
        st.sampled_from(["*", "2-12/5", "mar,oct"]),
        st.sampled_from(["*", "1-5", "sun", "fri#2", "6L"]),
    ),
    ZONES,
)
ONCE_OR_INTERVAL = st.builds(Once, fire_at_ms=st.integers(0, 4_000_000_000_000)) | st.builds(
    Interval, every_seconds=st.integers(5, MOST_SECONDS)
)


@given(
    CRONS | ONCE_OR_INTERVAL, st.integers(0, 4_000_000_000_000), st.integers(0, 2_000_000_000_000)
)
@examples(60)
def test_fires_increase_and_are_never_past(
    cadence: Once | Interval | Cron, after_ms: int, anchor_ms: int
) -> None:
    found = next_fires_ms(cadence, after_ms, anchor_ms, most=5)
    assert all(earlier < later for earlier, later in pairwise([after_ms, *found]))
    if isinstance(cadence, Interval):
        assert all((fire_ms - anchor_ms) % (cadence.every_seconds * 1000) == 0 for fire_ms in found)
        assert found[0] > anchor_ms
    if not isinstance(cadence, Once):
        assert len(found) == 5
    for earlier, later in pairwise(found):
        assert last_fire_ms(cadence, later, anchor_ms) == earlier


@pytest.mark.requirement("SCH-1")
def test_the_latest_time_can_be_told_in_every_zone() -> None:
    latest = Once(fire_at_ms=253_402_214_399_999).fire_at_ms
    shown = "Friday 31 December 9999, 13:59 (Pacific/Kiritimati)"
    assert told(latest, "Pacific/Kiritimati") == shown
