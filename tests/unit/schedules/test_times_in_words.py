"""Times in words: what each sentence means in two zones, and what is asked back instead."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.domain.errors import InvalidInput
from runtime.features.schedules.cadence import (
    Cron,
    Interval,
    Once,
    instant,
    milliseconds,
    next_fires_ms,
)
from runtime.features.schedules.times_in_words import MOST_CHARACTERS, Asked, Read, read, told
from tests.support.profiles import examples

BERLIN, NEW_YORK = "Europe/Berlin", "America/New_York"
NOW: Final = "2026-11-25 10:00"
"""A Wednesday."""
zones = pytest.mark.parametrize("zone", [BERLIN, NEW_YORK])


def at(wall: str, zone: str, *, fold: int = 0) -> int:
    """The milliseconds of what the clocks of a zone show."""
    return milliseconds(datetime.fromisoformat(wall).replace(tzinfo=ZoneInfo(zone), fold=fold))


def shown(fire_ms: int, zone: str) -> str:
    """An instant by the clocks of a zone, to the second."""
    return f"{instant(fire_ms).astimezone(ZoneInfo(zone)):%Y-%m-%d %H:%M:%S}".removesuffix(":00")


def understood(sentence: str, now: str, zone: str) -> Read:
    answer = read(sentence, at(now, zone), zone)
    assert isinstance(answer, Read), answer
    return answer


def asked(sentence: str, now: str = NOW, zone: str = BERLIN) -> str:
    answer = read(sentence, at(now, zone), zone)
    assert isinstance(answer, Asked), answer
    return answer.sentence


IN: Final = {
    "in 10 minutes to call Bob": "2026-11-25 10:10",
    "to call Bob in 10 minutes": "2026-11-25 10:10",
    "call Bob in 10 minutes": "2026-11-25 10:10",
    "in 1 minute to call Bob": "2026-11-25 10:01",
    "in a minute call Bob": "2026-11-25 10:01",
    "in one minute, call Bob": "2026-11-25 10:01",
    "in ten minutes to call Bob": "2026-11-25 10:10",
    "in an hour to call Bob": "2026-11-25 11:00",
    "in half an hour to call Bob": "2026-11-25 10:30",
    "in two hours: call Bob": "2026-11-25 12:00",
    "in twelve hours: call Bob": "2026-11-25 22:00",
    "in 1h30m call Bob": "2026-11-25 11:30",
    "in 1h 30m call Bob": "2026-11-25 11:30",
    "in 90 min call Bob": "2026-11-25 11:30",
    "in 90mins call Bob": "2026-11-25 11:30",
    "in 1 hour and 30 minutes call Bob": "2026-11-25 11:30",
    "in 1 hour, 30 minutes and 5 secs call Bob": "2026-11-25 11:30:05",
    "in 2 hrs to call Bob": "2026-11-25 12:00",
    "in 1 hr to call Bob": "2026-11-25 11:00",
    "in 30 seconds call Bob": "2026-11-25 10:00:30",
    "in 45 sec call Bob": "2026-11-25 10:00:45",
    "in 1 second call Bob": "2026-11-25 10:00:01",
    "in 45s call Bob": "2026-11-25 10:00:45",
    "in a day call Bob": "2026-11-26 10:00",
    "in 3 days call Bob": "2026-11-28 10:00",
    "in 2d 3h call Bob": "2026-11-27 13:00",
    "in a week call Bob": "2026-12-02 10:00",
    "in 2 weeks call Bob": "2026-12-09 10:00",
    "in 1w call Bob": "2026-12-02 10:00",
    "call Bob in half an hour": "2026-11-25 10:30",
    "call Bob in 1 hour and 30 minutes": "2026-11-25 11:30",
    "call Bob in 3 days.": "2026-11-28 10:00",
    "call Bob in 10 minutes, please!": "2026-11-25 10:10",
    "call Bob in 10 minutes please": "2026-11-25 10:10",
    "me in 10 minutes to call Bob": "2026-11-25 10:10",
    "me: in 10 minutes, call Bob": "2026-11-25 10:10",
    ": in 10 minutes call Bob": "2026-11-25 10:10",
    "in 10 minutes, please, to call Bob": "2026-11-25 10:10",
    "in 10 minutes please to call Bob": "2026-11-25 10:10",
    "please call Bob in 10 minutes": "2026-11-25 10:10",
    "In 10 Minutes To call Bob": "2026-11-25 10:10",
    "in\u00a010\u00a0minutes call Bob": "2026-11-25 10:10",
    "  in  10  minutes  call Bob  ": "2026-11-25 10:10",
}
AT: Final = {
    "at 9 call Bob": "2026-11-26 09:00",
    "at 10 call Bob": "2026-11-26 10:00",
    "at 11 call Bob": "2026-11-25 11:00",
    "at nine call Bob": "2026-11-26 09:00",
    "at 9am call Bob": "2026-11-26 09:00",
    "at 9 AM call Bob": "2026-11-26 09:00",
    "at 9pm call Bob": "2026-11-25 21:00",
    "at 9 p.m. call Bob": "2026-11-25 21:00",
    "at 12am call Bob": "2026-11-26 00:00",
    "at 12pm call Bob": "2026-11-25 12:00",
    "at 1pm call Bob": "2026-11-25 13:00",
    "at 11:59 pm call Bob": "2026-11-25 23:59",
    "at 9:30 call Bob": "2026-11-26 09:30",
    "at 09:30: call Bob": "2026-11-26 09:30",
    "at 21:30 call Bob": "2026-11-25 21:30",
    "at 10:01 call Bob": "2026-11-25 10:01",
    "at 0:00 call Bob": "2026-11-26 00:00",
    "at 23:59 call Bob": "2026-11-25 23:59",
    "at noon call Bob": "2026-11-25 12:00",
    "at midnight call Bob": "2026-11-26 00:00",
    "at 9 o'clock call Bob": "2026-11-26 09:00",
    "call Bob at 9": "2026-11-26 09:00",
    "call Bob at 9.": "2026-11-26 09:00",
    "call Bob at 9 p.m.": "2026-11-25 21:00",
    "call Bob at 9 p.m": "2026-11-25 21:00",
    "call Bob at 9pm.": "2026-11-25 21:00",
    "call Bob at noon": "2026-11-25 12:00",
    "at 21 call Bob": "2026-11-25 21:00",
}
DAYS: Final = {
    "today at 11 call Bob": "2026-11-25 11:00",
    "today at noon call Bob": "2026-11-25 12:00",
    "call Bob today at 17:15": "2026-11-25 17:15",
    "tomorrow at 9: call Bob": "2026-11-26 09:00",
    "tomorrow at nine call Bob": "2026-11-26 09:00",
    "tomorrow at 9 - call Bob": "2026-11-26 09:00",
    "tomorrow, at 9, call Bob": "2026-11-26 09:00",
    "tomorrow 9:30 call Bob": "2026-11-26 09:30",
    "tomorrow 9pm call Bob": "2026-11-26 21:00",
    "tomorrow noon call Bob": "2026-11-26 12:00",
    "tomorrow at midnight call Bob": "2026-11-26 00:00",
    "call Bob tomorrow at 9": "2026-11-26 09:00",
    "at 9 tomorrow to call Bob": "2026-11-26 09:00",
    "call Bob at 9 tomorrow": "2026-11-26 09:00",
    "tonight at 9 call Bob": "2026-11-25 21:00",
    "tonight at 5 call Bob": "2026-11-25 17:00",
    "tonight at 11:30 call Bob": "2026-11-25 23:30",
    "tonight at 20:30 call Bob": "2026-11-25 20:30",
    "tonight at 8pm call Bob": "2026-11-25 20:00",
    "tonight at midnight call Bob": "2026-11-26 00:00",
    "tonight at 12 call Bob": "2026-11-26 00:00",
    "tonight at 12am call Bob": "2026-11-26 00:00",
    "call Bob tonight at 8": "2026-11-25 20:00",
    "on Monday at 9 call Bob": "2026-11-30 09:00",
    "Monday at 9 call Bob": "2026-11-30 09:00",
    "on mon at 9 call Bob": "2026-11-30 09:00",
    "on Tues at 9 call Bob": "2026-12-01 09:00",
    "on Thurs at 9 call Bob": "2026-11-26 09:00",
    "on Wednesday at 9 call Bob": "2026-12-02 09:00",
    "on Wednesday at 10 call Bob": "2026-12-02 10:00",
    "on Wednesday at 11 call Bob": "2026-11-25 11:00",
    "Friday 9am call Bob": "2026-11-27 09:00",
    "call Bob, Thu, at 9": "2026-11-26 09:00",
    "call Bob Sunday at 9": "2026-11-29 09:00",
    "call Bob on Saturday at noon": "2026-11-28 12:00",
    "call Bob at 9 on Monday": "2026-11-30 09:00",
    "next Monday at 9 call Bob": "2026-11-30 09:00",
    "next Wednesday at 11 call Bob": "2026-12-02 11:00",
    "next Friday at 9: call Bob": "2026-12-04 09:00",
    "call Bob next Sunday at 9": "2026-12-06 09:00",
}
DATES: Final = {
    "on 2026-12-01 at 9 call Bob": "2026-12-01 09:00",
    "2026-12-01 09:00 call Bob": "2026-12-01 09:00",
    "on 2031-11-25 at 10: call Bob": "2031-11-25 10:00",
    "on 1 December at 9 call Bob": "2026-12-01 09:00",
    "1 dec at 9 call Bob": "2026-12-01 09:00",
    "on December 1 at 9 call Bob": "2026-12-01 09:00",
    "on December 1st at 9 call Bob": "2026-12-01 09:00",
    "on the 2nd of December at 9 call Bob": "2026-12-02 09:00",
    "on 1 December 2027 at 9 call Bob": "2027-12-01 09:00",
    "on December 1, 2027 at 9 call Bob": "2027-12-01 09:00",
    "on 25 November at 9 call Bob": "2027-11-25 09:00",
    "on 25 November at 11 call Bob": "2026-11-25 11:00",
    "on 3rd September at 9 call Bob": "2027-09-03 09:00",
    "on Sept 3 at 9 call Bob": "2027-09-03 09:00",
    "on 1 May at 9 call Bob": "2027-05-01 09:00",
    "on 29 February at 9 call Bob": "2028-02-29 09:00",
    "call Bob on 2026-12-01 at 9": "2026-12-01 09:00",
    "call Bob on the 1st of December at 9": "2026-12-01 09:00",
    "call Bob at 9 on 1 December": "2026-12-01 09:00",
}


@zones
@pytest.mark.parametrize(
    ("sentence", "due"), [*IN.items(), *AT.items(), *DAYS.items(), *DATES.items()]
)
@pytest.mark.requirement("SCH-8")
def test_a_sentence_names_one_instant(sentence: str, due: str, zone: str) -> None:
    answer = understood(sentence, NOW, zone)
    assert isinstance(answer.cadence, Once)
    assert shown(answer.cadence.fire_at_ms, zone) == due
    assert answer.text.rstrip(".!") == "call Bob"


REPEATED: Final = {
    "every 5 minutes stretch": 300,
    "every 90 min stretch": 5400,
    "every minute stretch": 60,
    "every hour: stretch": 3600,
    "every 2 hours to stretch": 7200,
    "every half an hour to stretch": 1800,
    "every 1 hour and 30 minutes stretch": 5400,
    "every 2 days stretch": 172_800,
    "every 5 seconds stretch": 5,
    "every 2 weeks stretch": 1_209_600,
    "every 1830 days stretch": 158_112_000,
    "stretch every 10 minutes": 600,
    "stretch every hour.": 3600,
}


@zones
@pytest.mark.parametrize(("sentence", "seconds"), REPEATED.items())
@pytest.mark.requirement("SCH-8")
def test_a_sentence_names_an_interval(sentence: str, seconds: int, zone: str) -> None:
    assert understood(sentence, NOW, zone) == Read(Interval(every_seconds=seconds), "stretch")


BY_CRON: Final = {
    "every day at 9 post": ("0 9 * * *", "2026-11-26 09:00"),
    "every day at 17:45 post": ("45 17 * * *", "2026-11-25 17:45"),
    "every day at noon post": ("0 12 * * *", "2026-11-25 12:00"),
    "every day 9pm post": ("0 21 * * *", "2026-11-25 21:00"),
    "every weekday at 9: post": ("0 9 * * 1-5", "2026-11-26 09:00"),
    "post every weekday at 9": ("0 9 * * 1-5", "2026-11-26 09:00"),
    "post at 9 every weekday": ("0 9 * * 1-5", "2026-11-26 09:00"),
    "at 9 every weekday post": ("0 9 * * 1-5", "2026-11-26 09:00"),
    "every Monday at 9 post": ("0 9 * * 1", "2026-11-30 09:00"),
    "every Sunday at 9 post": ("0 9 * * 0", "2026-11-29 09:00"),
    "every Saturday at 9 post": ("0 9 * * 6", "2026-11-28 09:00"),
    "every Monday and Thursday at 9 post": ("0 9 * * 1,4", "2026-11-26 09:00"),
    "every Mon, Wed and Fri at 9 post": ("0 9 * * 1,3,5", "2026-11-27 09:00"),
    "every Sunday, and Tuesday at 9 post": ("0 9 * * 0,2", "2026-11-29 09:00"),
    "post every Monday and Thursday at 9": ("0 9 * * 1,4", "2026-11-26 09:00"),
    "every month on the 1st at 9 post": ("0 9 1 * *", "2026-12-01 09:00"),
    "every month on the 15 at 9:30 post": ("30 9 15 * *", "2026-12-15 09:30"),
    "every month on the 31st at 9 post": ("0 9 31 * *", "2026-12-31 09:00"),
    "post every month on the 2nd at 9": ("0 9 2 * *", "2026-12-02 09:00"),
}


@zones
@pytest.mark.parametrize(("sentence", "expected"), BY_CRON.items())
@pytest.mark.requirement("SCH-8")
def test_a_sentence_names_days_and_a_time(
    sentence: str, expected: tuple[str, str], zone: str
) -> None:
    expression, first = expected
    answer = understood(sentence, NOW, zone)
    assert answer == Read(Cron(expression=expression, timezone=zone), "post")
    now_ms = at(NOW, zone)
    assert shown(next_fires_ms(answer.cadence, now_ms, now_ms)[0], zone) == first


EDGES: Final = [
    # Days keep the time of day, hours are elapsed time.
    (BERLIN, "2026-10-24 10:00", "in 1 day call Bob", "2026-10-25 10:00"),
    (BERLIN, "2026-10-24 10:00", "in 24 hours call Bob", "2026-10-25 09:00"),
    (BERLIN, "2026-10-24 10:00", "in 1 day and 1 hour call Bob", "2026-10-25 11:00"),
    (BERLIN, "2026-03-28 02:30", "in 1 day call Bob", "2026-03-29 03:00"),
    (BERLIN, "2026-10-24 02:30", "in 1 day call Bob", "2026-10-25 02:30"),
    (BERLIN, "2026-03-29 01:30", "in 1 hour call Bob", "2026-03-29 03:30"),
    (NEW_YORK, "2026-03-07 10:00", "in 1 day call Bob", "2026-03-08 10:00"),
    (NEW_YORK, "2026-03-07 10:00", "in 24 hours call Bob", "2026-03-08 11:00"),
    (NEW_YORK, "2026-10-31 10:00", "tomorrow at 1:30 call Bob", "2026-11-01 01:30"),
    # The next week begins on Monday.
    (BERLIN, "2026-11-29 10:00", "next Monday at 9 call Bob", "2026-11-30 09:00"),
    (BERLIN, "2026-11-30 10:00", "next Monday at 9 call Bob", "2026-12-07 09:00"),
    (BERLIN, "2026-11-30 08:00", "on Monday at 9 call Bob", "2026-11-30 09:00"),
    # The ends of a month and of a year.
    (NEW_YORK, "2026-12-31 10:00", "tomorrow at 9 call Bob", "2027-01-01 09:00"),
    (NEW_YORK, "2028-02-28 10:00", "in 1 day call Bob", "2028-02-29 10:00"),
    (NEW_YORK, "2028-02-29 10:00", "on 28 February 2033 at 23:59 call Bob", "2033-02-28 23:59"),
    (BERLIN, "2099-03-01 10:00", "on 29 February at 9 call Bob", "2104-02-29 09:00"),
    (BERLIN, "2026-11-25 09:00:00.500", "at 9:00 call Bob", "2026-11-26 09:00"),
    (BERLIN, "2026-11-25 08:59:59.999", "at 9:00 call Bob", "2026-11-25 09:00"),
    (BERLIN, "2026-11-25 10:00:20.250", "in 10 minutes call Bob", "2026-11-25 10:10:20"),
]


@pytest.mark.parametrize(("zone", "now", "sentence", "due"), EDGES)
@pytest.mark.requirement("SCH-8")
def test_the_calendar_decides_at_its_edges(zone: str, now: str, sentence: str, due: str) -> None:
    answer = understood(sentence, now, zone)
    assert isinstance(answer.cadence, Once)
    assert shown(answer.cadence.fire_at_ms, zone) == due
    part_of_a_second = at(now, zone) % 1000 if sentence.startswith("in") else 0
    assert answer.cadence.fire_at_ms % 1000 == part_of_a_second


@pytest.mark.requirement("SCH-8")
def test_a_time_in_an_hour_that_repeats_is_its_first() -> None:
    first = at("2026-10-25 02:30", BERLIN)
    assert understood("today at 2:30 call Bob", "2026-10-25 02:10", BERLIN).cadence == Once(
        fire_at_ms=first
    )
    answer = read("at 2:30 call Bob", at("2026-10-25 02:10", BERLIN, fold=1), BERLIN)
    assert isinstance(answer, Read)
    assert answer.cadence == Once(fire_at_ms=at("2026-10-26 02:30", BERLIN))
    answer = read("in 10 minutes call Bob", at("2026-10-25 02:55", BERLIN), BERLIN)
    assert isinstance(answer, Read)
    assert answer.cadence == Once(fire_at_ms=at("2026-10-25 02:05", BERLIN, fold=1))


TEXTS: Final = {
    "in 10 minutes: cancel the meeting on Monday at 9": "cancel the meeting on Monday at 9",
    "in 10 minutes - stand-up at 10": "stand-up at 10",
    "in 10 minutes to look at 3 reports": "look at 3 reports",
    "in 2 hours to check the report for tomorrow": "check the report for tomorrow",
    "tomorrow at 9 prepare the 9:30 call": "prepare the 9:30 call",
    "tomorrow at 9 ask who comes on Monday": "ask who comes on Monday",
    "tomorrow at 9 for the dentist": "for the dentist",
    "tomorrow at 9 that the rent is due": "the rent is due",
    "tomorrow at 9 about the rent": "the rent",
    "of the rent tomorrow at 9": "the rent",
    "about the rent tomorrow at 9": "the rent",
    "at 9: call Bob tomorrow": "call Bob tomorrow",
    "at 9 check every file": "check every file",
    "call Bob's wife tomorrow at 9": "call Bob's wife",
    "check Bob's at 9": "check Bob's",
    "tomorrow at 9: Total: 5": "Total: 5",
    "tomorrow at 9 to call Bob.\nThen Eve!": "call Bob.\nThen Eve!",
    "call Bob, tomorrow at 9": "call Bob",
    "Bob: tomorrow at 9": "Bob",
    "every weekday at 9 post the numbers of Bob": "post the numbers of Bob",
    "every day at 9: post until Friday": "post until Friday",
    "tomorrow at 9 to-do list": "to-do list",
    "update the built-in tomorrow at 9": "update the built-in",
    "tomorrow at 9 in-house training": "in-house training",
    "tomorrow at 9 noone knows": "noone knows",
    "call McFor tomorrow at 9": "call McFor",
    "tomorrow at 9 überweisen 🙂": "überweisen 🙂",
}


@pytest.mark.parametrize(("sentence", "text"), TEXTS.items())
@pytest.mark.requirement("SCH-8")
def test_the_rest_is_the_text(sentence: str, text: str) -> None:
    assert understood(sentence, NOW, BERLIN).text == text


NOTHING, DOUBT = "I find no time that I understand in", "I do not know whether"
ASKED: Final = {
    "": "Say what I am to remind you of, for example",
    "  \n": "Say what I am to remind you of",
    "in 10 minutes": "Say what I am to remind you of",
    "in 10 minutes, please": "Say what I am to remind you of",
    "tomorrow at 9:": "Say what I am to remind you of",
    "every weekday at 9 to": "Say what I am to remind you of",
    # No time, or one that is not covered.
    "call Bob": f"{NOTHING} 'call Bob'; say for example \"tomorrow at 9: stand-up\".",
    "next week: call Bob": NOTHING,
    "every week stretch": NOTHING,
    "every second stretch": NOTHING,
    "every weekend at 9 stretch": NOTHING,
    "every second Monday at 9 post": NOTHING,
    "weekdays at 9 post": NOTHING,
    "Friday 9 call Bob": NOTHING,
    "tomorrow 9 amazing things": NOTHING,
    "tomorrow morning at 9 call Bob": NOTHING,
    "9:30 call Bob": NOTHING,
    "noon call Bob": NOTHING,
    "at half past nine call Bob": NOTHING,
    "at 9.30 call Bob": NOTHING,
    "at 9-10 call Bob": NOTHING,
    "at 9:30:15 call Bob": NOTHING,
    "at 930 call Bob": NOTHING,
    "at 9ish call Bob": NOTHING,
    "in 5-10 minutes call Bob": NOTHING,
    "in 1.5 hours call Bob": NOTHING,
    "in a few minutes call Bob": NOTHING,
    "in half a day call Bob": NOTHING,
    "in 3 months call Bob": NOTHING,
    "in 10 minutes' time call Bob": NOTHING,
    "in ten to fifteen minutes call Bob": NOTHING,
    "in -5 minutes call Bob": NOTHING,
    "01.12.2026 at 9 call Bob": NOTHING,
    "2026-12-01T09:00 call Bob": NOTHING,
    "call Bob at 9 in the evening": NOTHING,
    "call Bob at 9 UTC": NOTHING,
    "call Bob within 10 minutes": NOTHING,
    "every month on the 1st and 15th at 9 pay": NOTHING,
    # A word that may belong to the time.
    "at 9 UTC call Bob": f"{DOUBT} 'UTC' belongs to the time, so put the time first and a colon",
    "at 9 Berlin time call Bob": f"{DOUBT} 'Berlin time'",
    "at 9 in the morning call Bob": f"{DOUBT} 'in'",
    "at ten to nine call Bob": f"{DOUBT} 'nine'",
    "at 9 or 10 call Bob": f"{DOUBT} 'or'",
    "at 9 10 minutes before the call": f"{DOUBT} '10'",
    "at 9 sharp call Bob": f"{DOUBT} 'sharp'",
    "at 9 call Bob tomorrow": f"{DOUBT} 'tomorrow'",
    "at 9 call Bob in the evening": f"{DOUBT} 'in the evening'",
    "at 9 call Bob next week or so": f"{DOUBT} 'next week'",
    "at 9 call Bob on Monday or so": f"{DOUBT} 'Monday'",
    "at 9 call Bob, 1 May or so": f"{DOUBT} '1 May'",
    "at 9 on the 1st: pay": f"{DOUBT} 'on'",
    "at 9 Monday to Friday post": f"{DOUBT} 'Friday'",
    "tomorrow at 9 and on Friday at 10: post": f"{DOUBT} 'and'",
    "tomorrow at 9, 13 and 17: post": f"{DOUBT} '13'",
    "in 10 minutes or so call Bob": f"{DOUBT} 'or'",
    "in 10 minutes call Bob every day": f"{DOUBT} 'every day'",
    "in 10 minutes call Bob daily.": f"{DOUBT} 'daily'",
    "in 10 minutes to cancel the meeting on Monday at 9": f"{DOUBT} 'on Monday at 9'",
    "tomorrow at 9 call Bob in 10 minutes": f"{DOUBT} 'in 10 minutes'",
    "at 9 tomorrow's report": f"{DOUBT} 'tomorrow'",
    "every day at 9 until Friday post": f"{DOUBT} 'until'",
    "every day at 9 post until Friday": f"{DOUBT} 'until'",
    "every day at 9 post unless it rains": f"{DOUBT} 'unless'",
    "every 2 hours post until noon": f"{DOUBT} 'until'",
    "every 2 hours call Bob tomorrow": f"{DOUBT} 'tomorrow'",
    "every weekday at 9 except holidays: post": f"{DOUBT} 'except'",
    "every day at 9 for two weeks post": f"{DOUBT} 'for two'",
    "every day at 9 post for a week": f"{DOUBT} 'for a'",
    "every day at 9 and 17 post": f"{DOUBT} 'and'",
    "every 2 days at 9 post": f"{DOUBT} 'at'",
    "every hour between 9 and 17 post": f"{DOUBT} 'between'",
    "call Bob tomorrow morning at 9": f"{DOUBT} 'morning'",
    "call Bob in the evening at 9": f"{DOUBT} 'evening'",
    "call Bob daily at 9": f"{DOUBT} 'daily'",
    "call Bob on Mondays at 9": f"{DOUBT} 'Mondays'",
    "call Bob on Monday in 10 minutes": f"{DOUBT} 'Monday'",
    "call Bob every other Monday at 9": f"{DOUBT} 'other'",
    "call Bob every first Monday of the month at 9": f"{DOUBT} 'month'",
    "call Bob the day after tomorrow at 9": f"{DOUBT} 'after'",
    "call Bob this Friday at 9": f"{DOUBT} 'this'",
    "call Bob on 12/1 at 9": f"{DOUBT} '12/1'",
    "call Bob on the 1st at 9": f"{DOUBT} '1st'",
    "call Bob not in 10 minutes": f"{DOUBT} 'not'",
    "call Bob yesterday at 9": f"{DOUBT} 'yesterday'",
    "finish by tomorrow at 9": f"{DOUBT} 'by'",
    "move the call to tomorrow at 9": f"{DOUBT} 'to'",
    "tomorrow call Bob at 9": f"{DOUBT} 'tomorrow'",
    ": tomorrow call Bob at 9": f"{DOUBT} 'tomorrow'",
    "me: tomorrow call Bob at 9:": f"{DOUBT} 'tomorrow'",
    "at 9 call Bob Thu": f"{DOUBT} 'Thu'",
    "on Monday call Bob at 9": f"{DOUBT} 'on'",
    "call Bob tomorrow about the plan at 9": f"{DOUBT} 'tomorrow'",
    "call Bob about Monday or so at 9": f"{DOUBT} 'Monday'",
    # No such time.
    "at 24:00 call Bob": "There is no time of day in 'at 24:00'; say for example",
    "at 25 call Bob": "There is no time of day in 'at 25'",
    "at 9:75 call Bob": "There is no time of day in 'at 9:75'",
    "at 13pm call Bob": "There is no time of day in 'at 13pm'",
    "at 0am call Bob": "There is no time of day in 'at 0am'",
    "on 30 February at 9 call Bob": "No such day comes in the next 5 years; say for example",
    "on 2027-02-29 at 9 call Bob": "No such day comes in the next 5 years",
    "on 2027-13-01 at 9 call Bob": "No such day comes in the next 5 years",
    "on 0 May at 9 call Bob": "No such day comes in the next 5 years",
    "every month on the 32nd at 9 pay": "No month has a day 32; say for example",
    "every month on the 0 at 9 pay": "No month has a day 0",
    "tonight at 3 call Bob": "I take tonight to begin at 17:00; say for example",
    "tonight at 4 call Bob": "I take tonight to begin at 17:00",
    "tonight at noon call Bob": "I take tonight to begin at 17:00",
    "tonight at 9am call Bob": "I take tonight to begin at 17:00",
    "tonight at 12pm call Bob": "I take tonight to begin at 17:00",
    "tonight at 16:59 call Bob": "I take tonight to begin at 17:00",
    # The past.
    "today at 8 call Bob": "Wednesday 25 November 2026, 08:00 (Europe/Berlin) is not in the",
    "today at 10 call Bob": "Wednesday 25 November 2026, 10:00 (Europe/Berlin) is not in the",
    "today at midnight call Bob": "Wednesday 25 November 2026, 00:00 (Europe/Berlin) is not in",
    "on 2026-11-24 at 9 call Bob": "Tuesday 24 November 2026, 09:00 (Europe/Berlin) is not in",
    "on 1 May 2026 at 9 call Bob": "Friday 1 May 2026, 09:00 (Europe/Berlin) is not in the future",
    "on 1 May 2025 at 9 call Bob": "The year 2025 lies in the past; say for example",
    "on 0001-01-01 at 9 call Bob": "The year 1 lies in the past",
    "in 0 minutes call Bob": "I need a time that is yet to come, and 'in 0 minutes' is now; say",
    "in 0 hours and 0 minutes: tea": "I need a time that is yet to come, and 'in 0 hours and",
    # Too far, too often, too long.
    "on 2031-11-25 at 10:01 call Bob": "I look at most 5 years ahead; say for example",
    "on 2031-11-26 at 9 call Bob": "I look at most 5 years ahead",
    "on 9999-12-31 at 23:00 call Bob": "I look at most 5 years ahead",
    "in 1827 days call Bob": "I look at most 5 years ahead",
    "in 99999999999 weeks call Bob": "I look at most 5 years ahead",
    f"in {'9' * 4000} s call Bob": "I look at most 5 years ahead",
    "every 4 seconds call Bob": "Between two times there must be at least 5 seconds; say",
    "every 0 days call Bob": "Between two times there must be at least 5 seconds",
    "every 1831 days call Bob": "I look at most 5 years ahead",
}


@pytest.mark.parametrize(("sentence", "answer"), ASKED.items())
@pytest.mark.requirement("SCH-8")
def test_what_is_not_covered_is_asked_back(sentence: str, answer: str) -> None:
    said = asked(sentence)
    assert said.startswith(answer)
    assert said.endswith('".')
    assert said.count(". ") == 0
    example = re.findall(r'"([^"]+)"\.$', said)[0]
    assert understood(example, NOW, BERLIN).text


BESIDE: Final = (
    "today tomorrow tonight Monday Mondays mon December dec three 5 h sec minutes day days week"
    " weekend month months year morning afternoon evenings night noon midnight half quarter first"
    " third fifteen thirty at on in by every each other next last this and or not until till from"
    " than except unless before after between past during through within since around roughly"
    " starting beginning early late sharp am pm utc gmt cet cest est edt pst pdt bst local daily"
    " hourly weekly"
)
"""Words that make a time doubtful which they stand beside."""


@pytest.mark.parametrize("word", BESIDE.split())
@pytest.mark.requirement("SCH-8")
def test_a_word_that_may_belong_to_the_time_is_asked_about(word: str) -> None:
    for doubtful in (f"tomorrow at noon {word}, call Bob", f"{word} call Bob tomorrow at noon"):
        assert asked(doubtful).startswith(f"{DOUBT} '{word}")
    assert asked(f"call Bob {word} tomorrow at 9").startswith(f"{DOUBT} '{word}'")


@pytest.mark.requirement("SCH-8")
def test_a_time_that_the_clocks_leave_out_is_asked_back() -> None:
    told_so = "The clocks leave out 02:30 on Sunday 29 March 2026; say for example"
    assert asked("tomorrow at 2:30 call Bob", "2026-03-28 10:00").startswith(told_so)
    assert asked("at 2:30 call Bob", "2026-03-29 01:00").startswith(told_so)
    assert asked("today at 2:30 call Bob", "2026-03-29 04:00").startswith(told_so)
    answer = understood("at 2:30 call Bob", "2026-03-29 04:00", BERLIN)
    assert answer.cadence == Once(fire_at_ms=at("2026-03-30 02:30", BERLIN))


@pytest.mark.requirement("SCH-8")
def test_a_text_has_at_most_4000_characters() -> None:
    longest = "x" * MOST_CHARACTERS
    assert understood(f"in 10 minutes to {longest}", NOW, BERLIN).text == longest
    assert understood(f"{longest} in 10 minutes", NOW, BERLIN).text == longest
    for sentence in (f"in 10 minutes to {longest}x", "x" * 4201, f"in 10 minutes {longest * 2}"):
        assert asked(sentence).startswith("A reminder has at most 4,000 characters; say for")
    assert asked("x" * 4200).startswith(NOTHING)


def test_an_unknown_zone_is_refused_by_its_name() -> None:
    with pytest.raises(InvalidInput, match=r"timezone: .* not 'Mars/Base'"):
        read("in 10 minutes call Bob", 0, "Mars/Base")


@pytest.mark.parametrize(
    ("zone", "wall", "words"),
    [
        (BERLIN, "2026-11-26 09:00", "Thursday 26 November 2026, 09:00 (Europe/Berlin)"),
        (NEW_YORK, "2027-03-01 00:05:59", "Monday 1 March 2027, 00:05 (America/New_York)"),
        ("UTC", "2028-02-29 23:59", "Tuesday 29 February 2028, 23:59 (UTC)"),
    ],
)
@pytest.mark.requirement("SCH-8")
def test_an_instant_is_told_in_plain_words(zone: str, wall: str, words: str) -> None:
    assert told(at(wall, zone), zone) == words


WORDS: Final = st.lists(
    st.sampled_from(["at", "9", "in", "10", "minutes", "every", "Monday", "and", "tomorrow", ":"])
    | st.sampled_from(
        ["on", "1", "December", "the", "noon", "tonight", "next", "9am", "to", "call"]
    )
    | st.text(max_size=5),
    max_size=9,
)
NOWS: Final = st.integers(0, 4_000_000_000_000)


@given(WORDS.map(" ".join) | st.text(max_size=60), NOWS, st.sampled_from([BERLIN, NEW_YORK]))
@examples(200)
@pytest.mark.requirement("SCH-8")
def test_any_text_is_read_or_asked_back(text: str, now_ms: int, zone: str) -> None:
    answer = read(text, now_ms, zone)
    if isinstance(answer, Asked):
        assert answer.sentence.endswith('".')
        return
    assert answer.text
    fires = next_fires_ms(answer.cadence, now_ms, now_ms)
    assert fires[0] > now_ms
    if isinstance(answer.cadence, Once):
        assert fires[0] - now_ms <= 5 * 366 * 86_400_000


FRONTS: Final = ["in 2 hours", "at 9:30", "tomorrow at nine", "on Friday at 9pm", "every day at 8"]
BARE: Final = ["call Bob", "buy milk", "water the plants", "Überweisung prüfen"]


@given(st.sampled_from(FRONTS), st.sampled_from(BARE), NOWS)
@examples(60)
@pytest.mark.requirement("SCH-8")
def test_before_and_behind_the_text_a_time_means_the_same(
    front: str, text: str, now_ms: int
) -> None:
    places = (f"{front}: {text}", f"{front} to {text}", f"{front} {text}", f"to {text} {front}")
    answers = {read(place, now_ms, BERLIN) for place in places}
    assert len(answers) == 1
