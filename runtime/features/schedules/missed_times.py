"""Which of the times that have come fire, and what an overlap does to one (SCH-2, SCH-3). Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from runtime.domain.counts import counted
from runtime.features.schedules.cadence import (
    Cadence,
    Interval,
    Once,
    last_fire_ms,
    next_fire_ms,
)
from runtime.features.schedules.model import CoalesceOnce, OverlapPolicy, SkipMissed

MOST_COUNTED: Final = 1000
"""Missed times that are counted one by one."""
MOST_AT_ONCE: Final = 100
"""Times within the grace window that one unit fires, the newest; the earlier ones are skipped."""
STILL_AT_WORK: Final = "an earlier time of it is still at work"
ONE_WAITS: Final = "another time of it waits already"
TOO_LATE: Final = "the gateway came to it later than its grace allows"
TOO_MANY: Final = f"only the newest {MOST_AT_ONCE} of those within its grace fire"


@dataclass(frozen=True, slots=True)
class Skipped:
    """Times that do not fire: one of them, and why, with how many they are."""

    slot_ms: int
    reason: str


@dataclass(frozen=True, slots=True)
class Due:
    """The times that `fire` now, those that are `skipped`, and the next one behind now."""

    fire: Sequence[int]
    skipped: Sequence[Skipped]
    coming: int | None


def due_times(
    cadence: Cadence, misfire: CoalesceOnce | SkipMissed, slot_ms: int, now: int, anchor_ms: int
) -> Due:
    """What of a schedule fires whose time `slot_ms` has come, by its policy for missed times.

    A time that is due once is over then, also where a pause put it forward and it stands in the
    cadence as a later one.
    """
    coming = None if isinstance(cadence, Once) else next_fire_ms(cadence, now, anchor_ms)
    if isinstance(misfire, CoalesceOnce):
        later = missed_after(cadence, slot_ms, now, anchor_ms)
        if not later.total:
            return Due((slot_ms,), (), coming)
        reason = f"{later.told('later time')} fired together with that of {slot_ms}"
        return Due((slot_ms,), (Skipped(later.last_ms, reason),), coming)
    oldest = now - misfire.grace_ms
    if slot_ms >= oldest:
        return _within(cadence, slot_ms, now, anchor_ms, coming)
    later = missed_after(cadence, slot_ms, oldest - 1, anchor_ms)
    reason = TOO_LATE
    if later.total:
        reason += f", and to {later.told('later time')} as well"
    too_late = Skipped(slot_ms, reason)
    first = None if isinstance(cadence, Once) else next_fire_ms(cadence, oldest - 1, anchor_ms)
    if first is None or first > now:
        return Due((), (too_late,), coming)
    due = _within(cadence, first, now, anchor_ms, coming)
    return Due(due.fire, (too_late, *due.skipped), coming)


@dataclass(frozen=True, slots=True)
class Later:
    """How many times came behind the one that is due, and the last of those that were counted.
    `more`: there are others behind it."""

    total: int
    last_ms: int
    more: bool = False

    def told(self, noun: str) -> str:
        """How many, in words."""
        return f"{'at least ' if self.more else ''}{counted(self.total, noun)}"


def missed_after(cadence: Cadence, slot_ms: int, now: int, anchor_ms: int) -> Later:
    """The times behind `slot_ms` that have come as well."""
    match cadence:
        case Once():
            return Later(0, slot_ms)
        case Interval():
            step_ms = cadence.every_seconds * 1000
            total = max(0, (now - slot_ms) // step_ms)
            return Later(total, slot_ms + total * step_ms)
        case _:
            total, last = 0, slot_ms
            while total < MOST_COUNTED:
                coming = next_fire_ms(cadence, last, anchor_ms)
                if coming is None or coming > now:
                    return Later(total, last)
                total, last = total + 1, coming
            return Later(total, last, more=True)


def _within(cadence: Cadence, first: int, now: int, anchor_ms: int, coming: int | None) -> Due:
    """What of the times from `first` to `now` fires. It goes back from `now`, so that a cadence of
    each second costs no more than what is kept of it."""
    if isinstance(cadence, Once):
        return Due((first,), (), coming)
    newest: list[int] = []
    slot_ms = last_fire_ms(cadence, now + 1, anchor_ms)
    while slot_ms is not None and slot_ms > first and len(newest) < MOST_AT_ONCE:
        newest.append(slot_ms)
        slot_ms = last_fire_ms(cadence, slot_ms, anchor_ms)
    newest.reverse()
    if len(newest) < MOST_AT_ONCE:
        return Due((first, *newest), (), coming)
    later = missed_after(cadence, first, newest[0] - 1, anchor_ms)
    dropped = replace(later, total=later.total + 1).told("time")
    return Due(newest, (Skipped(first, f"{dropped} did not fire: {TOO_MANY}"),), coming)


Overlap = Literal["dispatch", "queue", "skip"]


def overlap(policy: OverlapPolicy, *, busy: bool, queued: bool) -> Overlap:
    """What becomes of a time while an earlier one is `busy`, and another is `queued` behind it."""
    if policy == "parallel" or not (busy or queued):
        return "dispatch"
    if policy == "queue_one" and not queued:
        return "queue"
    return "skip"
