"""When a schedule is due: once, at an interval, or by cron (SCH-7). Pure.

The three shapes are those of the API. Instants are milliseconds since the epoch, and whoever asks
brings the present one: nothing here knows what time it is.

`cronsim` says which wall clock times an expression names, and this module says at which instants a
zone's clocks show them, by Debian's rules: docs/decisions/0038-cron-rules.md.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Annotated, Final, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from cronsim import CronSim, CronSimError
from pydantic import AfterValidator, Field, JsonValue, TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError

from runtime.domain.errors import InvalidInput
from runtime.domain.printable import printable_name, quoted
from runtime.domain.value import Value, tagged

LEAST_SECONDS: Final = 5
MOST_SECONDS: Final = 5 * 366 * 24 * 3600
_MOST_MS: Final = 253_402_214_399_999
"""The end of 30 December 9999: what is a day before the last date is a date in every zone."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MS: Final = timedelta(milliseconds=1)
_CALENDAR_FROM: Final = datetime(2000, 1, 1)
"""Any year does: `cronsim` looks 50 years ahead, and every weekday has its 29 February in 28."""
_NOT_IANA: Final = ("posix/", "right/", "localtime", "posixrules")
"""Names that a system may have beside IANA's; those below `right/` count leap seconds."""
_GAP: Final = r"[\s\x1c-\x1f]"
_FIELD: Final = r"[^\s\x1c-\x1f]+"
_FIELDS: Final = f"^{_GAP}*{_FIELD}(?:{_GAP}+{_FIELD}){{4,5}}{_GAP}*$"
"""What `str.split` parts into 5 or 6."""
_RULES: Final = {
    "Wrong number of fields": "must have 5 fields, minute to weekday, or 6 with the second first",
    "Bad day-of-month": "must have a day-of-month that its months have",
}


def zone_named(name: str) -> ZoneInfo:
    """The IANA time zone of this name. Raises `InvalidInput` for any other name."""
    try:
        if not name.startswith(_NOT_IANA):
            return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        pass
    raise InvalidInput("timezone", f"must be a time zone such as Europe/Berlin, not {quoted(name)}")


def any_case(name: str) -> ZoneInfo:
    """The same, for a name in whatever letters a person writes it. Raises `InvalidInput`."""
    try:
        return zone_named(name)
    except InvalidInput:
        return zone_named(_by_small_letters().get(name.lower().replace(" ", "_"), name))


@cache
def _by_small_letters() -> Mapping[str, str]:
    return {name.lower(): name for name in available_timezones()}


def _zone(name: str) -> str:
    try:
        return zone_named(name).key
    except InvalidInput as error:
        raise PydanticCustomError("timezone", "{rule}", {"rule": error.rule}) from None


def _expression(text: str) -> str:
    """`text` if it is an expression that fires at some time."""
    rule = "must come at some time, and this never does"
    try:
        if next(CronSim(text, _CALENDAR_FROM), None) is not None:
            return text
    except CronSimError as error:
        broken = str(error)
        rule = _RULES.get(broken, broken.replace("Bad", "must have a valid"))
    raise PydanticCustomError("cron", "{rule}", {"rule": rule})


Zone = Annotated[
    str,
    Field(
        strict=True,
        max_length=100,
        examples=["Europe/Berlin"],
        json_schema_extra={"minLength": 1, "pattern": "^[A-Za-z0-9_+/-]+$"},
    ),
    AfterValidator(_zone),
]
"""The name of an IANA time zone, for any model that has one."""


class Once(Value):
    """At one instant."""

    model_config = tagged()

    type: Literal["once"] = "once"
    fire_at_ms: Annotated[int, Field(strict=True, ge=0, le=_MOST_MS)]


class Interval(Value):
    """Every so many seconds of elapsed time, the first time one interval after the anchor."""

    model_config = tagged()

    type: Literal["interval"] = "interval"
    every_seconds: Annotated[int, Field(strict=True, ge=LEAST_SECONDS, le=MOST_SECONDS)]


class Cron(Value):
    """At the wall clock times of an expression of 5 fields, or of 6 with the second first."""

    model_config = tagged()

    type: Literal["cron"] = "cron"
    expression: Annotated[
        str,
        Field(
            strict=True,
            max_length=200,
            examples=["0 9 * * mon-fri"],
            json_schema_extra={"pattern": _FIELDS},
        ),
        AfterValidator(_expression),
    ]
    timezone: Zone = "UTC"

    @property
    def fixed(self) -> bool:
        """Whether minute and hour are fixed, so that a change of the clocks costs no fire."""
        minute, hour = self.expression.split()[-5:-3]
        return not minute.startswith("*") and not hour.startswith("*")


Cadence = Annotated[Once | Interval | Cron, Field(discriminator="type")]
_CADENCE: Final[TypeAdapter[Once | Interval | Cron]] = TypeAdapter(Cadence)


def cadence_of(raw: JsonValue) -> Cadence:
    """The cadence that JSON says. Raises `InvalidInput`, which names the field and the rule."""
    try:
        return _CADENCE.validate_python(raw)
    except ValidationError as error:
        broken = error.errors(include_url=False, include_context=False, include_input=False)[0]
        if broken["type"].startswith("union_tag"):
            raise InvalidInput("cadence.type", "must be once, interval or cron") from None
        # The first part is the type of the cadence, which is no field.
        field = ".".join(["cadence", *(str(part) for part in broken["loc"][1:])])
        rule = broken["msg"]
        raise InvalidInput(printable_name(field), rule[:1].lower() + rule[1:]) from None


def cadence_in(stored: str) -> Cadence:
    """The cadence that a row's JSON says. Raises `InvalidInput` where it cannot be read."""
    try:
        raw = json.loads(stored)
    except ValueError:
        raise InvalidInput("cadence", "must be JSON") from None
    return cadence_of(raw)


def next_fire_ms(cadence: Cadence, after_ms: int, anchor_ms: int) -> int | None:
    """The next instant strictly later than `after_ms`; None where there is none.

    `anchor_ms` is when the schedule was made, or what an interval counts from since.
    """
    match cadence:
        case Once():
            return cadence.fire_at_ms if cadence.fire_at_ms > after_ms else None
        case Interval():
            step_ms = cadence.every_seconds * 1000
            return anchor_ms + max(1, (after_ms - anchor_ms) // step_ms + 1) * step_ms
        case Cron():
            moment = _nearest(cadence, instant(after_ms))
            return None if moment is None else milliseconds(moment)


def last_fire_ms(cadence: Cadence, before_ms: int, anchor_ms: int) -> int | None:
    """The last instant strictly earlier than `before_ms`; None where there is none."""
    match cadence:
        case Once():
            return cadence.fire_at_ms if cadence.fire_at_ms < before_ms else None
        case Interval():
            step_ms = cadence.every_seconds * 1000
            count = (before_ms - anchor_ms - 1) // step_ms
            return anchor_ms + count * step_ms if count > 0 else None
        case Cron():
            moment = _nearest(cadence, instant(before_ms), back=True)
            return None if moment is None else milliseconds(moment)


def next_fires_ms(
    cadence: Cadence, after_ms: int, anchor_ms: int, *, most: int = 3
) -> Sequence[int]:
    """The next instants, earliest first; fewer than `most` where the schedule ends before."""
    fires: list[int] = []
    fire_ms = next_fire_ms(cadence, after_ms, anchor_ms)
    while fire_ms is not None and len(fires) < most:
        fires.append(fire_ms)
        fire_ms = next_fire_ms(cadence, fire_ms, anchor_ms)
    return fires


def instant(at_ms: int) -> datetime:
    """Milliseconds since the epoch, as a time in UTC."""
    return _EPOCH + at_ms * _MS


def milliseconds(moment: datetime) -> int:
    """The milliseconds from the epoch to a time that has a zone."""
    return (moment - _EPOCH) // _MS


def instants(wall: datetime, zone: ZoneInfo) -> Sequence[datetime]:
    """When the clocks of a zone show `wall`, in UTC: never, once, or twice, earliest first."""
    both = {wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1)}
    return sorted(one for one in both if one.astimezone(zone).replace(tzinfo=None) == wall)


def first_instant(wall: datetime, zone: ZoneInfo) -> datetime:
    """The first of `instants`; for a time that is left out, the next one that exists."""
    while not (shown := instants(wall, zone)):
        # Clocks are changed on whole minutes.
        wall = wall.replace(second=0, microsecond=0) + timedelta(minutes=1)
    return shown[0]


def _nearest(cron: Cron, moment: datetime, *, back: bool = False) -> datetime | None:
    """The first instant later than `moment`, or with `back` the last one earlier than it."""
    zone = ZoneInfo(cron.timezone)
    wall = moment.astimezone(zone).replace(tzinfo=None)
    shown = instants(wall, zone)
    found = _beside(cron, wall, moment, back=back)
    # In an hour that repeats, what the clocks have shown may be shown again.
    repeat = shown[-1] - shown[0]
    if not repeat:
        return found
    start = wall + repeat if back else wall - repeat
    # So far from `start`, a time is as far from `moment` as what was found. Without this bound,
    # each second of that hour would cost a walk through all of it.
    reach = None if found is None else abs(found - moment)
    again = _beside(cron, start, moment, back=back, reach=reach)
    return found if again is None else again


def _beside(
    cron: Cron, start: datetime, moment: datetime, *, back: bool, reach: timedelta | None = None
) -> datetime | None:
    """The nearest instant on one side of `moment` of the wall clock times on that side of `start`,
    less than `reach` from it."""
    zone, fixed = ZoneInfo(cron.timezone), cron.fixed
    for wall in CronSim(cron.expression, start, reverse=back):
        if reach is not None and abs(wall - start) >= reach:
            break
        moments = [first_instant(wall, zone)] if fixed else instants(wall, zone)
        if back:
            if earlier := [one for one in moments if one < moment]:
                return earlier[-1]
        elif later := [one for one in moments if one > moment]:
            return later[0]
    return None
