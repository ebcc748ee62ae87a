"""Times in words, read by a small closed grammar and said in the same words (SCH-8). Pure.

`read` takes what stands behind "remind me" and gives a cadence and the text. The time stands before
the text ("tomorrow at 9: stand-up") or behind it ("to call Bob in 10 minutes"). What is not covered
whole is asked back, and so is a word beside the time that may belong to it ("every day at 9 until
Friday"). A colon behind the time says that the rest is text, whatever it holds.

A bare hour is one of the 24-hour clock, the next that comes; only "tonight" makes an evening of it.
"In 2 days" keeps the time of day; "in 48 hours" and what repeats at an interval is elapsed time.
"Next Friday" is the Friday of the next week, which begins on Monday.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from runtime.domain.counts import counted
from runtime.domain.printable import quoted
from runtime.features.schedules.cadence import (
    LEAST_SECONDS,
    MOST_SECONDS,
    Cadence,
    Cron,
    Interval,
    Once,
    first_instant,
    instant,
    instants,
    milliseconds,
    zone_named,
)

MOST_CHARACTERS: Final = 4000
MOST_YEARS: Final = 5
ONCE: Final = "once"
_ROOM: Final = 200
"""Characters that the time may have beside its text."""
_MOST_WORDS: Final = 20
"""Words of the longest time that is looked for at the end of a text."""
_NAMES: Final = (
    "Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
    "January February March April May June July August September October November December",
    "one two three four five six seven eight nine ten eleven twelve",
)
_WEEKDAYS, _MONTHS, _NUMBERS = (names.split() for names in _NAMES)
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_EVENING: Final = time(17)
_PLAIN_CRON: Final = re.compile(
    r"(?P<minute>\d+) (?P<hour>\d+) (?P<month_day>\*|\d+) \* (?P<days>\*|1-5|mon-fri|\d(,\d)*)"
)


@dataclass(frozen=True, slots=True)
class Read:
    """What was understood: when, and the text without the time."""

    cadence: Cadence
    text: str


@dataclass(frozen=True, slots=True)
class Asked:
    """What was not understood, in one sentence with an example of what would be."""

    sentence: str


@dataclass(frozen=True, slots=True)
class _Now:
    ms: int
    zone: ZoneInfo

    @property
    def wall(self) -> datetime:
        """What the clocks show, without a zone."""
        return instant(self.ms).astimezone(self.zone).replace(tzinfo=None)


def _any(*words: str) -> str:
    return f"(?:{'|'.join(words)})"


_WEEKDAY: Final = _any(*_WEEKDAYS, *(day[:3] for day in _WEEKDAYS), "Tues", "Thur", "Thurs")
_MONTH: Final = _any(*_MONTHS, *(month[:3] for month in _MONTHS), "Sept")
_HOUR: Final = _any(*_NUMBERS)
_UNIT: Final = "(?:s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|weeks?)(?![a-z])"
_STEP: Final = rf"(?:\d+\s*|(?:an?|{_HOUR})\s+){_UNIT}"
_SPAN: Final = rf"(?:half\s+an\s+hour|{_STEP}(?:(?:\s*,)?\s*(?:and\s+)?{_STEP})*)"
_CLOCK: Final = (
    rf"(?:(?P<word>noon|midnight)|(?P<hour>\d\d?|{_HOUR})(?::(?P<minute>\d\d))?"
    r"(?:\s*(?P<half>[ap])\.?m\b\.?|\s*o['’]clock\b)?)"
)
_SURE: Final = r"(?=noon|midnight|\d+:\d\d|\d+\s*[ap]\.?m\b)"
"""Ahead of a time of day that needs no "at" behind its day."""
_NTH: Final = r"\d\d?(?:st|nd|rd|th)?"
_NAMED: Final = rf"(?:(?:the\s+)?{_NTH}\s+(?:of\s+)?{_MONTH}|{_MONTH}\s+{_NTH})(?:,?\s+\d{{4}})?"
_DATE: Final = rf"(?:\d{{4}}-\d\d-\d\d|{_NAMED})"
_LIST: Final = rf"{_WEEKDAY}(?:(?:\s*,\s*(?:and\s+)?|\s+and\s+){_WEEKDAY})*"
_EVERY: Final = rf"every\s+(?:day|weekday|{_LIST}|month\s+on\s+the\s+{_NTH})"
_NEXT: Final = rf"(?:today|tomorrow|tonight|(?:(?:on|next)\s+)?{_WEEKDAY}|(?:on\s+)?{_DATE})"
_DAY: Final = rf"(?P<day>{_NEXT}|{_EVERY})"
_PAST: Final = (
    rf"(?P<past>yesterday|last\s+(?:night|week|month|year|{_WEEKDAY})|{_SPAN}\s+ago)(?![\w-])"
)
_FORMS: Final = tuple(
    re.compile(rf"{form}(?=\Z|\s|[,.;!?](?:\s|\Z)|:(?!\d))", re.IGNORECASE | re.ASCII)
    for form in (
        rf"in\s+(?P<span>{_SPAN})",
        rf"every\s+(?P<every>{_SPAN}|hour|minute)",
        rf"{_DAY}(?:\s*,)?\s+(?:at\s+|{_SURE}){_CLOCK}",
        rf"at\s+{_CLOCK}(?:\s+{_DAY})?",
    )
)
_END: Final = r"(?=\Z|[\s,.;:!?])"
_DAY_FIRST: Final = re.compile(rf"(?:{_PAST}|{_DAY}){_END}", re.IGNORECASE | re.ASCII)
_DAY_LAST: Final = re.compile(rf"(?<![\w'’-])(?:{_PAST}|{_DAY})\Z", re.IGNORECASE | re.ASCII)
"""A day without a time of day, ahead of the text and behind it."""
_PERIOD: Final = "(?:day|weekday|weekend|week|month|year|morning|afternoon|evening|night)s?"
_OFTEN: Final = (
    rf"(?:{_EVERY}|(?:every|each)\s+(?:\w+\s+)?(?:{_PERIOD}|{_UNIT})|daily|hourly|weekly)"
)
_DAY_WORD: Final = rf"(?:today|tomorrow|tonight|{_any(*_WEEKDAYS)}s?|{_DATE}|{_OFTEN})"
_BESIDE: Final = (
    rf"{_DAY_WORD}|{_WEEKDAY}s?|{_MONTH}|{_HOUR}|{_UNIT}|{_PERIOD}|noon|midnight|half|quarter|first"
    r"|third|fifteen|thirty|at|on|in|by|to|of|every|each|other|next|last|this|and|or|not|until|till"
    r"|from|than|except|unless|before|after|between|past|during|through|within|since|around|about"
    r"|roughly|starting|beginning|early|late|sharp|am|pm|utc|gmt|cet|cest|est|edt|pst|pdt|bst|local"
    r"|yesterday"
)
"""Words that may belong to the time that they stand beside."""
_FOR: Final = rf"for\s+(?:\d|{_HOUR}\b|an?\b|the\s+next\b)"
_HEAD: Final = re.compile(
    rf"(?:{_BESIDE})(?![\w-])|{_FOR}|\d\S*|(?-i:[A-Z])\w+\s+time\b", re.IGNORECASE
)
_TAIL: Final = re.compile(rf"(?<![\w'’-])(?:{_BESIDE}|for|\d\S*)\Z", re.IGNORECASE)
_WHOLE: Final = re.compile(rf"\b{_OFTEN}\Z", re.IGNORECASE)
_NO_DAY: Final = re.compile(
    rf"\b(?:{_DAY_WORD}|(?:next|last|this|in\s+the|at)\s+{_PERIOD}|{_NEXT}\Z)\b", re.IGNORECASE
)
_REPEATED: Final = re.compile(
    rf"\b(?:(?:until|till|except|unless|starting|beginning)\b|{_FOR}|{_NEXT}\Z)", re.IGNORECASE
)
_OPENING: Final = re.compile(r"\A[\s:,]*(?:me[\s:,]+)?(?:please[\s:,]+)?", re.IGNORECASE)
_PLEASE: Final = re.compile(r"\bplease\Z", re.IGNORECASE)
_COLON: Final = re.compile(r"\s*(?::|[-–—]\s)")
_JOINT: Final = re.compile(
    r"\A[\s,;.!?:–—-]*(?:please\b[\s,]*)?(?:(?:to|that|about|of)(?:\s+|\Z))?", re.IGNORECASE
)
_MARKS: Final = " \n,;.!?:–—-"


def read(
    text: str,
    now_ms: int,
    zone: str,
    *,
    least_s: int = LEAST_SECONDS,
    text_needed: bool = True,
) -> Read | Asked:
    """The time and the text in what stands behind "remind me".

    `zone` is the IANA zone of whoever speaks; raises `InvalidInput` for any other name. What
    repeats after less than `least_s` seconds is asked back, and so is a time alone, unless
    `text_needed` is false: its text is empty then.
    """
    now = _Now(now_ms, zone_named(zone))
    if len(text) > MOST_CHARACTERS + _ROOM:
        return _TOO_LONG
    said = _OPENING.sub("", re.sub(r"[^\S\n]", " ", text)).rstrip()
    when = _before(said) or _behind(said)
    if when is None:
        return _without_time(said, now)
    text = _JOINT.sub("", said[: when.start()].rstrip(_MARKS) or said[when.end() :])
    closed = when.start() == 0 and _COLON.match(said, when.end())
    stray = None if closed else _stray(when, text.rstrip(_MARKS))
    if stray is not None:
        doubtful = f"I do not know whether {quoted(stray.group())} belongs to the time"
        return _asked(f"{doubtful}, so put the time first and a colon behind it")
    if len(text) > MOST_CHARACTERS:
        return _TOO_LONG
    cadence = _cadence(when, now, least_s)
    if isinstance(cadence, Asked):
        return cadence
    return Read(cadence, text) if text or not text_needed else _EMPTY


def told(fire_ms: int, zone: str) -> str:
    """An instant as people say it: ``Thursday 26 November 2026, 09:00 (Europe/Berlin)``."""
    local = instant(fire_ms).astimezone(zone_named(zone))
    return f"{_date(local)}, {local:%H:%M} ({zone})"


def rule(cadence: Cadence, zone: str) -> str:
    """How often something comes: ``once``, ``every 2 hours``, ``every Monday and Thursday at
    14:00``. A calendar that these words do not cover is its expression. The zone of a calendar is
    named where people read the times of it in another `zone`."""
    if isinstance(cadence, Once):
        return ONCE
    if isinstance(cadence, Interval):
        return f"every {_span(cadence.every_seconds)}"
    elsewhere = "" if cadence.timezone == zone else f" ({cadence.timezone})"
    words = _calendar(cadence.expression) or f"by the cron expression {cadence.expression}"
    return f"{words}{elsewhere}"


def _span(seconds: int) -> str:
    parts = []
    for name in ("week", "day", "hour", "minute", "second"):
        number, seconds = divmod(seconds, _SECONDS[name[0]])
        if number:
            parts.append(counted(number, name))
    if len(parts) == 1:
        return parts[0].removeprefix("1 ")
    return _joined(parts)


def _joined(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _calendar(expression: str) -> str | None:
    """What `_cron` makes, in words; None for any other expression."""
    found = _PLAIN_CRON.fullmatch(expression.lower())
    if found is None:
        return None
    clock = f"at {int(found['hour']):02}:{int(found['minute']):02}"
    if found["month_day"] != "*":
        if found["days"] != "*":
            return None
        return f"every month on the {_ordinal(int(found['month_day']))} {clock}"
    if found["days"] == "*":
        return f"every day {clock}"
    if found["days"] in ("1-5", "mon-fri"):
        return f"every weekday {clock}"
    days = sorted({(int(day) - 1) % 7 for day in found["days"].split(",")})
    return f"every {_joined([_WEEKDAYS[day] for day in days])} {clock}"


def _ordinal(number: int) -> str:
    endings = {1: "st", 2: "nd", 3: "rd"}
    return f"{number}{'th' if 10 < number < 14 else endings.get(number % 10, 'th')}"


def _date(day: date) -> str:
    return f"{_WEEKDAYS[day.weekday()]} {day.day} {_MONTHS[day.month - 1]} {day.year}"


def _asked(what: str, example: str = "tomorrow at 9: stand-up") -> Asked:
    return Asked(f'{what}; say for example "{example}".')


_EMPTY: Final = Asked('Say what I am to remind you of, for example "in 10 minutes to call Bob".')
_TOO_LONG: Final = _asked(f"A reminder has at most {MOST_CHARACTERS:,} characters")
_TOO_FAR: Final = _asked(f"I look at most {MOST_YEARS} years ahead", "in 4 weeks: inventory")


def _before(said: str) -> re.Match[str] | None:
    """The longest time at the beginning of a text."""
    found = [match for form in _FORMS if (match := form.match(said))]
    return max(found, key=re.Match.end, default=None)


def _behind(said: str) -> re.Match[str] | None:
    """The longest time at the end of a text."""
    end = len(_PLEASE.sub("", said.rstrip(_MARKS)).rstrip(_MARKS))
    tries = (form.fullmatch(said, start, end) for start in _last_words(said) for form in _FORMS)
    return next((match for match in tries if match), None)


def _without_time(said: str, now: _Now) -> Asked:
    """What to ask back where no time is: the most that can be said of what stands there instead."""
    if not said:
        return _EMPTY
    end = said.rstrip(_MARKS)
    day = _DAY_FIRST.match(said)
    if day and not day["past"] and _HEAD.match(_JOINT.sub("", said[day.end() :])):
        # More of the time stands there than the day.
        day = None
    tries = (_DAY_LAST.match(end, start) for start in _last_words(end))
    day = day or next((match for match in tries if match), None)
    if day is None:
        return _asked(f"I find no time that I understand in {quoted(said)}")
    if day["past"]:
        return _asked(f"The time {quoted(day.group())} lies in the past")
    words = re.findall(r"[a-z]+|\d+", day["day"].lower())
    repeats = words[0] == "every"
    if not repeats and any(word.isdigit() for word in words):
        days = _dates(words, now)
        if isinstance(days, Asked):
            return days
        if days[-1] < now.wall.date():
            return _asked(f"{_date(days[-1])} lies in the past")
    example = "every weekday at 9: post the numbers" if repeats else "tomorrow at 9: stand-up"
    return _asked(f"I need a time of day for {quoted(day.group())}", example)


def _last_words(said: str) -> Sequence[int]:
    """Where the words begin with which a time at the end may begin."""
    return [word.start() for word in re.finditer(r"\S+", said)][-_MOST_WORDS:]


def _stray(when: re.Match[str], text: str) -> re.Match[str] | None:
    """What in the text may belong to the time, or is a second one."""
    parts = when.groupdict()
    if parts.get("every") or (parts.get("day") or "").lower().startswith("every"):
        doubtful = _REPEATED
    else:
        doubtful = _WHOLE if parts.get("day") or parts.get("span") else _NO_DAY
    beside = _TAIL.search(text) if when.start() else _behind(text)
    return _HEAD.match(text) or beside or doubtful.search(text)


def _cadence(when: re.Match[str], now: _Now, least_s: int) -> Cadence | Asked:
    parts = {name: part.lower() for name, part in when.groupdict().items() if part is not None}
    if "span" in parts:
        if not _seconds(parts["span"], "smhdw"):
            return _asked(f"I need a time that is yet to come, and {quoted(when.group())} is now")
        return _after(parts["span"], now)
    if "every" in parts:
        return _interval(parts["every"], least_s)
    try:
        clock = _clock(parts)
    except ValueError:
        return _asked(f"There is no time of day in {quoted(when.group())}")
    match re.findall(r"[a-z]+|\d+", parts.get("day", "")):
        case []:
            return _coming((0, 1), clock, now)
        case ["every", *names]:
            return _cron(names, clock, now.zone)
        case ["tonight"]:
            bare = parts.keys().isdisjoint(("word", "half"))
            return _tonight(clock, now, bare=bare)
        case ["today" | "tomorrow" as day]:
            return _coming((int(day == "tomorrow"),), clock, now)
        case words:
            dated = any(word.isdigit() for word in words)
            return _on_date(words, clock, now) if dated else _on_weekday(words, clock, now)


def _number(word: str) -> int:
    if word.isdigit():
        return int(word)
    return _NUMBERS.index(word) + 1 if word in _NUMBERS else 1


def _place(name: str, names: Sequence[str]) -> int:
    """The place of a name, which may be cut short."""
    return [one[:3].lower() for one in names].index(name[:3])


def _seconds(span: str, units: str) -> int:
    """The seconds of those steps of a span that are of these units."""
    if span.startswith("half"):
        return 1800
    steps = re.findall(rf"(\d+\s*|(?:an?|{_HOUR})\s+)({_UNIT})", span)
    return sum(
        _number(number.strip()) * _SECONDS[unit[0]] for number, unit in steps if unit[0] in units
    )


def _after(span: str, now: _Now) -> Cadence | Asked:
    days, seconds = _seconds(span, "dw") // _SECONDS["d"], _seconds(span, "smh")
    if days * _SECONDS["d"] + seconds > MOST_SECONDS:
        return _TOO_FAR
    start = instant(now.ms)
    if days:
        start = first_instant(now.wall + timedelta(days=days), now.zone)
    return _once(start + timedelta(seconds=seconds), now)


def _interval(every: str, least_s: int) -> Cadence | Asked:
    seconds = _SECONDS[every[0]] if every in ("hour", "minute") else _seconds(every, "smhdw")
    if seconds > MOST_SECONDS:
        return _TOO_FAR
    if seconds < least_s:
        least = f"{least_s // 60} minutes" if least_s >= 60 else f"{least_s} seconds"
        rule = f"Between two times there must be at least {least}"
        return _asked(rule, "every 2 hours: stretch")
    return Interval(every_seconds=seconds)


def _clock(parts: Mapping[str, str]) -> time:
    """The time of day. Raises `ValueError` where there is none, as in "25:00"."""
    if "word" in parts:
        return time(12 if parts["word"] == "noon" else 0)
    hour = _number(parts["hour"])
    half = parts.get("half")
    if half and not 1 <= hour <= 12:
        raise ValueError(hour)
    if half:
        hour = hour % 12 + (12 if half == "p" else 0)
    return time(hour, int(parts.get("minute", "0")))


def _cron(names: Sequence[str], clock: time, zone: ZoneInfo) -> Cadence | Asked:
    month_day, days = "*", "*"
    match names:
        case ["day"]:
            pass
        case ["weekday"]:
            days = "1-5"
        case ["month", _, _, number, *_]:
            month_day = str(int(number))
            if not 1 <= int(number) <= 31:
                return _asked(
                    f"No month has a day {month_day}", "every month on the 1st at 9: rent"
                )
        case _:
            numbers = {(_place(name, _WEEKDAYS) + 1) % 7 for name in names if name != "and"}
            days = ",".join(str(number) for number in sorted(numbers))
    expression = f"{clock.minute} {clock.hour} {month_day} * {days}"
    return Cron(expression=expression, timezone=zone.key)


def _tonight(clock: time, now: _Now, *, bare: bool) -> Cadence | Asked:
    if bare and 5 <= clock.hour <= 12:
        clock = clock.replace(hour=(clock.hour + 12) % 24)
    if clock.hour == 0:
        return _coming((1,), clock, now)
    if clock < _EVENING:
        return _asked(f"I take tonight to begin at {_EVENING:%H:%M}", "tonight at 8: call Bob")
    return _coming((0,), clock, now)


def _on_weekday(words: Sequence[str], clock: time, now: _Now) -> Cadence | Asked:
    today, weekday = now.wall.weekday(), _place(words[-1], _WEEKDAYS)
    if words[0] == "next":
        return _coming((weekday - today + 7,), clock, now)
    ahead = (weekday - today) % 7
    return _coming((ahead, ahead + 7), clock, now)


def _on_date(words: Sequence[str], clock: time, now: _Now) -> Cadence | Asked:
    days = _dates(words, now)
    if isinstance(days, Asked):
        return days
    return _coming(((one - now.wall.date()).days for one in days), clock, now)


def _dates(words: Sequence[str], now: _Now) -> Sequence[date] | Asked:
    """The days that a date names, in this year and the next ones where it names no year."""
    numbers = [int(word) for word in words if word.isdigit()]
    named = [word for word in words if re.fullmatch(_MONTH, word, re.IGNORECASE)]
    if named:
        day, *years = numbers
        month = _place(named[0], _MONTHS) + 1
    else:
        *years, month, day = numbers
    this_year = now.wall.year
    if years and years[0] < this_year:
        return _asked(f"The year {years[0]} lies in the past")
    if years and years[0] > this_year + MOST_YEARS:
        return _TOO_FAR
    dates: list[date] = []
    for year in years or range(this_year, this_year + MOST_YEARS + 1):
        # Not every year has every day.
        with suppress(ValueError):
            dates.append(date(year, month, day))
    if not dates:
        return _asked(
            f"No such day comes in the next {MOST_YEARS} years", "on 1 December at 9: pay rent"
        )
    return dates


def _coming(ahead: Iterable[int], clock: time, now: _Now) -> Cadence | Asked:
    """The first time of day that is not over, so many days ahead; about the last, if all are."""
    walls = [datetime.combine(now.wall, clock) + timedelta(days=days) for days in ahead]
    coming = (wall for wall in walls if milliseconds(first_instant(wall, now.zone)) > now.ms)
    wall = next(coming, walls[-1])
    if shown := instants(wall, now.zone):
        return _once(shown[0], now)
    return _asked(f"The clocks leave out {wall:%H:%M} on {_date(wall)}")


def _once(moment: datetime, now: _Now) -> Cadence | Asked:
    fire_ms = milliseconds(moment)
    if fire_ms <= now.ms:
        return _asked(f"{told(fire_ms, now.zone.key)} is not in the future")
    wall = moment.astimezone(now.zone).replace(tzinfo=None)
    # Every date has its place in a leap year.
    latest = (now.wall.year + MOST_YEARS, now.wall.replace(year=2000))
    if (wall.year, wall.replace(year=2000)) > latest:
        return _TOO_FAR
    return Once(fire_at_ms=fire_ms)
