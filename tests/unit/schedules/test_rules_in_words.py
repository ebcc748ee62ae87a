"""How often something comes, in words (SCH-8)."""

import pytest

from runtime.features.schedules.cadence import Cadence, Cron, Interval, Once
from runtime.features.schedules.times_in_words import Read, read, rule

BERLIN = "Europe/Berlin"


@pytest.mark.requirement("SCH-8")
@pytest.mark.parametrize(
    "words",
    [
        "every day at 09:00",
        "every weekday at 09:30",
        "every Monday and Thursday at 14:00",
        "every Tuesday, Friday and Sunday at 07:05",
        "every month on the 1st at 09:00",
        "every month on the 12th at 09:00",
        "every month on the 22nd at 23:59",
        "every 2 hours",
        "every hour",
        "every 1 hour and 30 minutes",
        "every 2 weeks",
    ],
)
def test_how_often_it_comes_is_said_as_it_may_be_asked_for(words: str) -> None:
    found = read(f"{words}: tea", 0, BERLIN)
    assert isinstance(found, Read)
    assert rule(found.cadence, BERLIN) == words


@pytest.mark.requirement("SCH-8")
@pytest.mark.parametrize(
    ("cadence", "words"),
    [
        (Once(fire_at_ms=0), "once"),
        (Interval(every_seconds=90_061), "every 1 day, 1 hour, 1 minute and 1 second"),
        (Cron(expression="0 9 * * mon-fri"), "every weekday at 09:00 (UTC)"),
        (Cron(expression="0 9 * * 0,7", timezone=BERLIN), "every Sunday at 09:00"),
        (
            Cron(expression="*/5 9 * * *", timezone=BERLIN),
            "by the cron expression */5 9 * * *",
        ),
        (Cron(expression="0 9 1 * 1", timezone=BERLIN), "by the cron expression 0 9 1 * 1"),
    ],
)
def test_what_no_words_ask_for_is_said_too(cadence: Cadence, words: str) -> None:
    assert rule(cadence, BERLIN) == words
