"""What people, programs and agents do with a schedule: each is a part of the unit that asks for it.

Authority is checked by whoever calls this; here the state is, and a change that does not fit it
raises `Conflict` with the state. `lane` is where the events go of whoever holds the lane of another
session than the schedule's.
"""

from dataclasses import dataclass
from typing import Final

from runtime.domain.errors import Conflict, InvalidInput, NotFound
from runtime.domain.events import EventKind
from runtime.domain.ids import IdPrefix, new_id
from runtime.domain.messages import ChatAddress
from runtime.domain.people import Trust
from runtime.domain.value import JsonObject, Value
from runtime.features.schedules import fires, rows
from runtime.features.schedules.cadence import (
    Cadence,
    Cron,
    Interval,
    Once,
    cadence_in,
    next_fire_ms,
)
from runtime.features.schedules.conditions import NEW, Conditions, Seen, conditions_of
from runtime.features.schedules.fires import ROLLED_BACK
from runtime.features.schedules.kind import HEARTBEAT, SCHEDULE
from runtime.features.schedules.model import (
    MOST_HEARTBEAT,
    ScheduleChange,
    ScheduleCreateRequest,
    ScheduledRequest,
)
from runtime.features.schedules.observations import Audience
from runtime.features.schedules.rows import ACTIVE, CANCELLED, COMPLETED, PAUSED, Schedule
from runtime.ports.bus import SCHEDULES
from runtime.sessions import audit, run_stop, sessions
from runtime.sessions.lanes import Lane, NewSession
from runtime.sessions.sessions import Session
from runtime.sessions.unit import Unit
from runtime.store import Connection
from runtime.store.database import now_ms

NEVER: Final = "must come at some time in the future"
PAST: Final = "must be in the future, in milliseconds since 1970-01-01 UTC"
NO_QUEUE: Final = "must be skip or parallel: words that are only said have no run to wait for"
_OPEN: Final = (ACTIVE, PAUSED)


@dataclass(frozen=True, slots=True)
class Owner:
    """With whose authority it fires: a person, by their account on the platform of the place. Only
    whose `trust` is known has sessions observed."""

    person_id: str
    user_id: str
    trust: Trust = Trust.GUEST


@dataclass(frozen=True, slots=True)
class Making:
    """How a new one is made: for its `owner`, where it speaks, by whom, whether its runs have a
    lane of their own, and whether a model chose its words."""

    owner: Owner
    place: ChatAddress
    by: str
    own_lane: bool
    worded_by_model: bool


def make(unit: Unit, asked: ScheduleCreateRequest, making: Making) -> Schedule:
    """Keep a new one. Raises `NotFound`, `Conflict` for a session that ended, and `InvalidInput`
    for a cadence that comes no more."""
    conn = unit.conn
    lane = unit.lane(asked.target_session_id)
    session = sessions.get(conn, lane.session_id)
    if session.status != "open":
        raise Conflict("the session has ended", session.status)
    if lane.parent_id is not None:
        raise InvalidInput("target_session_id", "must be a conversation, not one of a subagent")
    now = lane.now_ms
    coming = _first_fire_ms(asked.cadence, now)
    _must_fit(asked)
    place = making.place
    own = None
    schedule_id = new_id(IdPrefix.SCHEDULE, now)
    if asked.heartbeat or (asked.asked is not None and making.own_lane):
        own = unit.create(
            NewSession(
                key=f"{SCHEDULE}:{schedule_id}",
                address=place,
                mode=session.mode.value,
                queue_mode="followup",
                title=asked.name,
                kind=HEARTBEAT if asked.heartbeat else SCHEDULE,
            )
        )
    terms = conditions_of(asked)
    checked = terms is not None and terms.checked
    told = ("target_agent_id", "owner_session_id", "owner_agent_id", "created_by_run_id")
    schedule = Schedule(
        id=schedule_id,
        owner_person_id=making.owner.person_id,
        owner_user_id=making.owner.user_id,
        session_id=session.id,
        channel=place.channel,
        account=place.account,
        chat=place.chat_id,
        chat_kind=place.chat_kind,
        thread=place.thread_id,
        timezone=asked.timezone,
        cadence=asked.cadence.model_dump_json(),
        anchor_ms=now,
        deliver_text=asked.deliver_text,
        next_fire_ms=coming,
        created_ms=now,
        updated_ms=now,
        misfire=asked.misfire_policy.model_dump_json(),
        max_executions=asked.max_executions,
        request=asked.request.model_dump_json() if asked.request and terms is None else None,
        conditions=None if terms is None else terms.model_dump_json(),
        gate_state=None if terms is None or terms.gate is None else NEW,
        seen=None if terms is None else _first_seen(conn, terms, making, session),
        prepare_ms=now if checked else None,
        name=asked.name,
        lane_id=None if own is None else own.session_id,
        origin=asked.model_dump_json(include=set(told), exclude_none=True),
        overlap=asked.overlap_policy,
        worded_by_model=making.worded_by_model,
    )
    rows.add(conn, schedule)
    if own is not None:
        rows.add_lane(conn, own.session_id, schedule.id)
    record(unit, schedule, "created", by=making.by, lane=lane)
    unit.say(SCHEDULES)
    return schedule


def _first_fire_ms(cadence: Cadence, now: int) -> int:
    """When one that is made or changed now comes first. Raises `InvalidInput` where none comes."""
    coming = next_fire_ms(cadence, now, now)
    if coming is not None:
        return coming
    if isinstance(cadence, Once):
        raise InvalidInput("cadence.fire_at_ms", PAST)
    raise InvalidInput("cadence", NEVER)


def _must_fit(asked: ScheduleCreateRequest) -> None:
    """Raises `InvalidInput` for what does not go together."""
    observed, only_said = asked.observation_materialization, asked.asked is None
    if asked.overlap_policy == "queue_one" and only_said:
        raise InvalidInput("overlap_policy", NO_QUEUE)
    if observed is not None and observed.target_session_id != asked.target_session_id:
        field = "observation_materialization.target_session_id"
        raise InvalidInput(field, "must be the target_session_id of the schedule")
    if asked.gate is not None and only_said:
        raise InvalidInput("gate", "decides about a run, and words that are only said have none")
    if asked.heartbeat and only_said:
        raise InvalidInput("heartbeat", "is a run, and words that are only said have none")
    if asked.heartbeat:
        _must_fit_heartbeat(asked.overlap_policy, asked.asked)


def _must_fit_heartbeat(overlap: str | None, request: ScheduledRequest | None) -> None:
    if overlap == "parallel":
        raise InvalidInput("overlap_policy", "must be skip or queue_one for a heartbeat")
    if request is not None and len(request.text) > MOST_HEARTBEAT:
        rule = f"must have at most {MOST_HEARTBEAT:,} characters for a heartbeat"
        raise InvalidInput("request", rule)


def _first_seen(
    conn: Connection, terms: Conditions, making: Making, session: Session
) -> str | None:
    """Where the observation of a session begins: behind what was said there before. Raises
    `InvalidInput` for one that its owner may not read, or may not have told in its place."""
    observed = terms.listens_to
    if observed is None:
        return None
    owner = making.owner
    audience = Audience(owner.person_id, owner.trust, (making.place, session.address))
    if rule := audience.refused(conn, observed):
        raise InvalidInput("observation_materialization.source.session_id", rule)
    return Seen(message=rows.last_message(conn, observed)).model_dump_json()


def held(unit: Unit, schedule_id: str, *, with_run: bool = False) -> Schedule:
    """One that no other unit changes before this one ends, with the lane of its conversation, and
    `with_run` that of its runs. Lanes come before schedules, in every unit. Raises `NotFound`."""
    schedule = held_if_any(unit, schedule_id, with_run=with_run)
    if schedule is None:
        raise NotFound("schedule", schedule_id)
    return schedule


def held_if_any(unit: Unit, schedule_id: str, *, with_run: bool = False) -> Schedule | None:
    """As `held`, but None where there is no such schedule."""
    seen = rows.find(unit.conn, schedule_id)
    if seen is None:
        return None
    wanted = {seen.session_id, seen.run_session_id if with_run else None} - {None}
    unit.lanes(one for one in wanted if one is not None)
    return rows.locked(unit.conn, schedule_id)


def revise(
    unit: Unit,
    schedule: Schedule,
    asked: ScheduleChange,
    *,
    by: str,
    by_model: bool,
    lane: Lane | None = None,
) -> None:
    """Give one other words, times or policies; what is left out stays. `by_model`: a model chose
    what is given. Raises `Conflict` for one that is over, and `InvalidInput`."""
    _must_be_open(schedule)
    terms = schedule.terms
    there = {
        "deliver_text": schedule.deliver_text,
        "request": schedule.asks,
        "gate": None if terms is None else terms.gate,
    }
    for name, known in there.items():
        if getattr(asked, name) is not None and known is None:
            raise InvalidInput(name, "cannot be given to a schedule that was made without")
    if asked.overlap_policy == "queue_one" and schedule.asks is None:
        raise InvalidInput("overlap_policy", NO_QUEUE)
    if asked.max_executions is not None and asked.max_executions <= schedule.execution_count:
        rule = f"must be more than the {schedule.execution_count} executions so far"
        raise InvalidInput("max_executions", rule)
    now = now_ms(unit.conn)
    changed = {_COLUMNS.get(name, name): value for name, value in _plain_values(asked).items()}
    if asked.deliver_text is not None or asked.request is not None:
        changed["worded_by_model"] = by_model
    if terms is not None:
        changed |= _other_terms(terms, asked, now)
    if asked.cadence is not None:
        changed |= _other_times(schedule, asked.cadence, now)
    rows.change(unit.conn, schedule, now=now, **changed)
    record(unit, schedule, "changed", by=by, lane=lane)
    unit.say(SCHEDULES)


_COLUMNS: Final = {"overlap_policy": "overlap", "misfire_policy": "misfire"}


def _plain_values(asked: ScheduleChange) -> dict[str, object]:
    """What is to change, as it is stored."""
    given: dict[str, object] = {}
    for name in asked.model_fields_set - {"cadence", "gate"}:
        value = getattr(asked, name)
        if value is not None:
            given[name] = value.model_dump_json() if isinstance(value, Value) else value
    return given


def _other_terms(terms: Conditions, asked: ScheduleChange, now: int) -> dict[str, object]:
    """Other conditions, in the place of `request`. A gate that is another one, or is to run at
    other times than its card said, needs approval again."""
    if terms.heartbeat:
        _must_fit_heartbeat(asked.overlap_policy, asked.request)
    after = terms.model_copy(
        update={"request": asked.request or terms.request, "gate": asked.gate or terms.gate}
    )
    changed: dict[str, object] = {"request": None, "conditions": after.model_dump_json()}
    if after.gate is not None and (after.gate != terms.gate or asked.cadence is not None):
        changed |= {"gate_state": NEW, "gate_digest": None, "prepare_ms": now}
    return changed


def _other_times(schedule: Schedule, cadence: Cadence, now: int) -> dict[str, object]:
    coming = _first_fire_ms(cadence, now)
    times: dict[str, object] = {"cadence": cadence.model_dump_json(), "anchor_ms": now}
    if schedule.status == PAUSED:
        return {**times, "remaining_ms": coming - now}
    return {**times, "next_fire_ms": coming}


def cancel(
    unit: Unit,
    schedule: Schedule,
    *,
    by: str,
    stop_run: bool = False,
    lane: Lane | None = None,
) -> None:
    """End one for good. A run of it that is at work goes on, unless `stop_run`: then the caller
    holds its lane. Doing it twice changes nothing; raises `Conflict` for one that is completed."""
    if schedule.status == COMPLETED:
        raise Conflict("the schedule is completed", schedule.status)
    conn = unit.conn
    now = now_ms(conn)
    if stop_run:
        for fire in fires.at_work(conn, schedule.id):
            if fire.run_id is not None:
                run_stop.stop_run(unit, fire.run_id, by=by, reason="its schedule was cancelled")
    if schedule.status == CANCELLED:
        return
    for slot_ms in (schedule.queued_fire_ms, schedule.retry_slot_ms):
        if slot_ms is not None:
            roll_back(conn, schedule, slot_ms, "the schedule was cancelled")
    ends = {**_NOTHING_WAITS, "status": CANCELLED, "next_fire_ms": None, "remaining_ms": None}
    rows.change(conn, schedule, now=now, **ends)
    record(unit, schedule, CANCELLED, by=by, lane=lane)
    unit.say(SCHEDULES)


_NOTHING_WAITS: Final[dict[str, object]] = {
    "queued_fire_ms": None,
    "trigger_ms": None,
    "retry_slot_ms": None,
    "retry_after_ms": None,
    "retry_attempt": 0,
    "check_token": None,
    "prepare_ms": None,
}


def roll_back(conn: Connection, schedule: Schedule, slot_ms: int, reason: str) -> None:
    """Give up a time that was not dispatched."""
    now = now_ms(conn)
    ends: dict[str, object] = {"status": ROLLED_BACK, "reason": reason, "settled_ms": now}
    fires.change_fire(conn, schedule.id, slot_ms, **ends)


def pause(unit: Unit, schedule: Schedule, *, by: str, lane: Lane | None = None) -> None:
    """Stop one that is active; what is left until its next time is kept (SCH-6). Doing it twice
    changes nothing; raises `Conflict` for one that is over."""
    _must_be_open(schedule)
    if schedule.status == PAUSED:
        return
    now = now_ms(unit.conn)
    left = None if schedule.next_fire_ms is None else max(0, schedule.next_fire_ms - now)
    rows.change(unit.conn, schedule, now=now, **paused(left))
    record(unit, schedule, PAUSED, by=by, lane=lane)


def paused(left_ms: int | None, error: str | None = None) -> dict[str, object]:
    """The columns of one that is paused, `left_ms` before its next time."""
    return {
        "status": PAUSED,
        "next_fire_ms": None,
        "remaining_ms": left_ms,
        "last_error": error,
    }


def resume(unit: Unit, schedule: Schedule, *, by: str, lane: Lane | None = None) -> int | None:
    """Let one that is paused go on, and its next time: what was left is left still, but times of
    the calendar stay where they are. None where none comes: then it is over, unless something of it
    still waits. Doing it twice changes nothing; raises `Conflict` for one that is over, and
    `InvalidInput` where its cadence cannot be read."""
    _must_be_open(schedule)
    if schedule.status == ACTIVE:
        return schedule.next_fire_ms
    conn = unit.conn
    now = now_ms(conn)
    cadence = cadence_in(schedule.cadence)
    coming = _next_of_resumed(cadence, schedule, now)
    waits = schedule.queued_fire_ms is not None or schedule.retry_slot_ms is not None
    goes_on = coming is not None or waits or bool(fires.at_work(conn, schedule.id))
    changed: dict[str, object] = {
        "status": ACTIVE if goes_on else COMPLETED,
        "next_fire_ms": coming,
        "remaining_ms": None,
        "last_error": None,
        "retry_attempt": 0,
    }
    if waits:
        changed["retry_after_ms"] = now
    if schedule.gate_state == NEW:
        changed["prepare_ms"] = now
    if isinstance(cadence, Interval) and coming is not None:
        changed["anchor_ms"] = coming
    rows.change(conn, schedule, now=now, **changed)
    record(unit, schedule, "resumed", by=by, lane=lane)
    unit.say(SCHEDULES)
    return coming


def _next_of_resumed(cadence: Cadence, schedule: Schedule, now: int) -> int | None:
    if schedule.remaining_ms is None:
        return None
    if isinstance(cadence, Cron):
        return next_fire_ms(cadence, now, schedule.anchor_ms)
    # Behind each time that has a row: one fires once.
    return now + max(1, schedule.remaining_ms)


def trigger(unit: Unit, schedule: Schedule, *, by: str, lane: Lane | None = None) -> None:
    """Let one that is active fire now, beside its own times and under its overlap policy. Raises
    `Conflict` for any other, and for one whose last trigger has not been looked at yet."""
    if schedule.status != ACTIVE:
        raise Conflict(f"the schedule is {schedule.status}", schedule.status)
    if schedule.trigger_ms is not None:
        raise Conflict("the schedule was triggered a moment ago, and fires now", "triggered")
    conn = unit.conn
    now = now_ms(conn)
    rows.change(conn, schedule, now=now, trigger_ms=now)
    record(unit, schedule, "triggered", by=by, lane=lane)
    unit.say(SCHEDULES)


def _must_be_open(schedule: Schedule) -> None:
    if schedule.status not in _OPEN:
        raise Conflict(f"the schedule is {schedule.status}", schedule.status)


def record(
    unit: Unit,
    schedule: Schedule,
    what: str,
    *,
    by: str,
    lane: Lane | None = None,
    reason: str | None = None,
) -> None:
    """Note what became of a schedule in the audit log, and in the events of its conversation, whose
    lane this unit holds; where it holds none of it, in those of `lane`."""
    data: JsonObject = {"schedule_id": schedule.id}
    if reason is not None:
        data["reason"] = reason
    audit.append(
        unit.conn,
        actor=by,
        action=f"schedule.{what}",
        session_id=schedule.session_id,
        data={**data},
    )
    if lane is None and schedule.session_id is not None:
        lane = unit.lane(schedule.session_id)
    if lane is not None:
        lane.record(EventKind.SCHEDULE_CHANGED, None, {"change": what, **data})
        unit.changed(lane.session_id)
