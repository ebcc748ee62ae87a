"""The units of a check: it begins, and it is concluded or has failed.

Each asks whether the claim still holds: a schedule that was paused, cancelled or claimed by another
process meanwhile is left alone. What a check saw is kept by the unit that makes its run, so that a
crash between them neither loses nor repeats it (SCH-4, SCH-9).
"""

from collections.abc import Callable
from dataclasses import dataclass

from runtime.domain.errors import Conflict
from runtime.domain.people import Approvers, Speaker
from runtime.engine.feature import Admitted
from runtime.features.schedules import gates, rows
from runtime.features.schedules.changes import held_if_any, roll_back
from runtime.features.schedules.checks import Checked, Claim, lease_ms
from runtime.features.schedules.conditions import NEW, Conditions
from runtime.features.schedules.dispatch import (
    Failure,
    Firing,
    Outcome,
    after_settling,
    any_lane,
    stopped,
)
from runtime.features.schedules.gates import Asked, Asking
from runtime.features.schedules.kind import ScheduleKind
from runtime.features.schedules.reminders import NOT_LET_IN, Owners, followed
from runtime.features.schedules.rows import ACTIVE, PAUSED, Schedule
from runtime.sessions import sessions
from runtime.sessions.lanes import Lane
from runtime.sessions.sessions import Session
from runtime.sessions.unit import Unit
from runtime.store.database import now_ms


@dataclass(frozen=True, slots=True)
class Ground:
    """What a check stands on: the schedule with its conditions, whose authority it has, and the
    session of its runs with what holds for that now."""

    schedule: Schedule
    terms: Conditions
    owner: Speaker
    session: Session


def ground_of(unit: Unit, schedule: Schedule, admitted: Admitted) -> Ground | None:
    """None where the owner is let in no more, or the schedule has no conditions."""
    conn, terms = unit.conn, schedule.terms
    schedule = followed(conn, schedule)
    owner = Owners(conn, admitted).of(schedule)
    if owner is None or terms is None or schedule.run_session_id is None:
        return None
    session = sessions.get(conn, schedule.run_session_id)
    # What the conversation may do, also where a heartbeat's own runs may do less.
    return Ground(schedule, terms, owner, ScheduleKind().standing(conn, session))


def _held(unit: Unit, claim: Claim) -> tuple[Schedule | None, Lane | None]:
    """The schedule, locked, if the claim still holds, with a lane of it."""
    # Lanes come before schedules, in every unit.
    lane = any_lane(unit, rows.find(unit.conn, claim.schedule_id))
    schedule = rows.locked(unit.conn, claim.schedule_id)
    if schedule is None or schedule.status != ACTIVE:
        return None, lane
    mine = (schedule.check_token, schedule.retry_slot_ms) == (claim.token, claim.slot_ms)
    return (schedule if mine else None), lane


def begin(unit: Unit, claim: Claim, admitted: Admitted) -> Ground | Outcome:
    """Hold a claim for as long as its check may take from now on, and say what it stands on."""
    schedule, lane = _held(unit, claim)
    if schedule is None:
        return Outcome()
    ground = ground_of(unit, schedule, admitted)
    if ground is None:
        return stopped(unit, schedule, NOT_LET_IN, lane)
    now = now_ms(unit.conn)
    until_ms = now + lease_ms(ground.terms)
    rows.change(unit.conn, schedule, now=now, retry_after_ms=until_ms)
    return ground


Conclusion = Callable[[Unit, Ground], Checked]
"""Completes a check by what rows say, in the unit that concludes it."""


def conclude(unit: Unit, claim: Claim, admitted: Admitted, complete: Conclusion) -> Outcome:
    """Make the run of a time that was checked, or skip that time. Raises what a dispatch fails
    with: then nothing of it is durable, and `fail` is next."""
    schedule, lane = _held(unit, claim)
    if schedule is None or lane is None or lane.session_id != schedule.run_session_id:
        return Outcome()
    ground = ground_of(unit, schedule, admitted)
    if ground is None:
        return stopped(unit, schedule, NOT_LET_IN, lane)
    if ground.session.status != "open":
        raise Conflict("its session has ended", "ended")
    firing = Firing(unit, ground.schedule, lane=lane, owner=ground.owner)
    firing.conclude(claim, complete(unit, ground))
    after_settling(unit, schedule.id)
    return Outcome(tuple(firing.dispatched))


def fail(unit: Unit, claim: Claim, failure: Failure) -> Outcome:
    """Note that a check failed, and when it is tried again; no run was made."""
    schedule, lane = _held(unit, claim)
    if schedule is None:
        return Outcome()
    if failure.for_good:
        return stopped(unit, schedule, failure.error, lane)
    firing = Firing(unit, schedule, failure=failure)
    firing.failed(claim, failure)
    if firing.exhausted:
        roll_back(unit.conn, schedule, claim.slot_ms, failure.error)
        fresh = rows.locked(unit.conn, claim.schedule_id)
        if fresh is not None:
            return stopped(unit, fresh, failure.error, lane)
    after_settling(unit, schedule.id)
    return Outcome()


@dataclass(frozen=True, slots=True)
class Prepared:
    """What was got ready for a schedule: what the card of its gate says, the first look at the
    files that it watches, and why one of these cannot be had."""

    asked: Asked | None = None
    files: dict[str, str] | None = None
    trouble: str = ""


def to_prepare(unit: Unit, schedule_id: str, admitted: Admitted) -> Ground | None:
    """What a schedule stands on for which something is to be got ready; None where it is not."""
    schedule = rows.locked(unit.conn, schedule_id)
    if schedule is None or schedule.prepare_ms is None:
        return None
    ground = ground_of(unit, schedule, admitted)
    if ground is None or schedule.status not in (ACTIVE, PAUSED):
        rows.change(unit.conn, schedule, now=now_ms(unit.conn), prepare_ms=None)
        return None
    return ground


def prepared(unit: Unit, ground: Ground, ready: Prepared, approvers: Approvers) -> None:
    """Ask about a gate and keep the first look, once, whatever process found them."""
    schedule = held_if_any(unit, ground.schedule.id)
    if schedule is None or schedule.prepare_ms is None or _differs(schedule, ground.schedule):
        # What it is now is got ready next.
        return
    changed: dict[str, object] = {"prepare_ms": None}
    if ready.trouble:
        changed["last_error"] = ready.trouble
    if ready.asked is not None and schedule.gate_state == NEW:
        changed |= gates.ask(unit, schedule, ready.asked, Asking(ground.owner, approvers))
    if ready.files is not None and schedule.saw.files is None:
        after = schedule.saw.model_copy(update={"files": ready.files})
        changed["seen"] = after.model_dump_json()
    rows.change(unit.conn, schedule, now=now_ms(unit.conn), **changed)


def _differs(now: Schedule, before: Schedule) -> bool:
    """Whether a card would say of a schedule what is true no more."""
    return any(
        getattr(now, name) != getattr(before, name)
        for name in ("conditions", "cadence", "timezone", "name")
    )
