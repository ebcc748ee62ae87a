"""What is said to a day without a time of day, to a day that never comes, and to the past."""

import re
from typing import Final

import pytest

from runtime.features.schedules.cadence import Cron, Interval
from runtime.features.schedules.times_in_words import Asked, Read, read
from tests.unit.schedules.test_times_in_words import BERLIN, NOW, asked, at, understood

pytestmark = pytest.mark.requirement("SCH-8")
NEEDS, PAST, NEVER = "I need a time of day for", "The time", "No such day comes in the next 5 years"
WRONG: Final = {
    "tomorrow: call Bob": f"{NEEDS} 'tomorrow'; say for example \"tomorrow at 9: stand-up\".",
    "tomorrow call Bob": f"{NEEDS} 'tomorrow'",
    "tomorrow to call Bob": f"{NEEDS} 'tomorrow'",
    "tomorrow": f"{NEEDS} 'tomorrow'",
    "to call Bob tomorrow": f"{NEEDS} 'tomorrow'",
    "to call Bob on Monday.": f"{NEEDS} 'on Monday'",
    "next Friday, call Bob": f"{NEEDS} 'next Friday'",
    "on 1 December: pay rent": f"{NEEDS} 'on 1 December'",
    "on 2026-12-01: pay rent": f"{NEEDS} 'on 2026-12-01'",
    "every day stretch": f"{NEEDS} 'every day'; say for example \"every weekday at 9: post",
    "to stretch every Monday and Friday": f"{NEEDS} 'every Monday and Friday'",
    "yesterday: call Bob": f"{PAST} 'yesterday' lies in the past; say for example",
    "yesterday to call Bob": f"{PAST} 'yesterday' lies in the past",
    "yesterday at 9: call Bob": f"{PAST} 'yesterday' lies in the past",
    "to call Bob yesterday": f"{PAST} 'yesterday' lies in the past",
    "yesterday": f"{PAST} 'yesterday' lies in the past",
    "last Monday: call Bob": f"{PAST} 'last Monday' lies in the past",
    "5 minutes ago to call Bob": f"{PAST} '5 minutes ago' lies in the past",
    "on 24 November 2026: call Bob": "Tuesday 24 November 2026 lies in the past",
    "on 1 May 2020 to call Bob": "The year 2020 lies in the past",
    "on 31 February: pay rent": f'{NEVER}; say for example "on 1 December at 9: pay rent".',
    "on the 31st of February to pay rent": NEVER,
    "pay rent on 31 February": NEVER,
    "on 1 May 2099: pay rent": "I look at most 5 years ahead",
    "tomorrow morning: call Bob": "I find no time that I understand in",
    "tomorrow 9 amazing things": "I find no time that I understand in",
}


@pytest.mark.parametrize(("sentence", "answer"), WRONG.items())
def test_it_is_said_what_is_wrong_with_the_time(sentence: str, answer: str) -> None:
    said = asked(sentence)
    assert said.startswith(answer)
    example = re.findall(r'"([^"]+)"\.$', said)[0]
    assert understood(example, NOW, BERLIN).text


def test_a_time_alone_is_read_where_no_text_is_needed() -> None:
    now_ms = at(NOW, BERLIN)
    assert isinstance(read("every hour", now_ms, BERLIN), Asked)
    alone = read("every hour", now_ms, BERLIN, text_needed=False)
    assert alone == Read(Interval(every_seconds=3600), "")
    cadence = Cron(expression="0 9 * * *", timezone=BERLIN)
    for sentence, text in (("every day at 9.", ""), ("every day at 9: tea", "tea")):
        found = read(sentence, now_ms, BERLIN, text_needed=False)
        assert found == Read(cadence, text)
    found = read("yesterday", now_ms, BERLIN, text_needed=False)
    assert isinstance(found, Asked)
