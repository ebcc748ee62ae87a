"""Schedules that ask the model: a time that has come becomes a run, and a run that is over settles
its time (SCH-2 to SCH-5).

Each schedule has units of its own, so that a broken one delays no other. Such a unit locks the lane
of the run, then the schedule. Taking a time and dispatching its run are one unit: after a crash
there are both or neither. A dispatch that failed is noted by another unit and tried again later.
"""

import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from runtime.domain.errors import Conflict, InvalidInput, NotFound, QueueFull
from runtime.domain.events import EventKind
from runtime.domain.fence import fence
from runtime.domain.ids import IdPrefix, new_id
from runtime.domain.messages import ChatAddress, InboundMessage
from runtime.domain.people import Sender, Speaker
from runtime.domain.printable import quoted
from runtime.domain.runs import TERMINAL, RunKind, RunState
from runtime.domain.transcript import NoticeMessage
from runtime.domain.value import JsonObject
from runtime.engine.feature import Admitted
from runtime.features.schedules import fires, heartbeats, rows
from runtime.features.schedules.cadence import cadence_in
from runtime.features.schedules.changes import roll_back
from runtime.features.schedules.checks import MOST_TRIES, REFUSALS, Checked, Claim, lease_ms
from runtime.features.schedules.conditions import NEW, Conditions
from runtime.features.schedules.fires import CLAIMED, DISPATCHED, RETRYING, SETTLED, SKIPPED, Fire
from runtime.features.schedules.kind import HEARTBEAT
from runtime.features.schedules.missed_times import (
    ONE_WAITS,
    STILL_AT_WORK,
    Due,
    due_times,
    overlap,
)
from runtime.features.schedules.observations import Gathered
from runtime.features.schedules.reminders import (
    NOT_LET_IN,
    Owners,
    followed,
    free_slot,
    misfire_of,
    pause_for,
)
from runtime.features.schedules.retry import RetryPolicy
from runtime.features.schedules.rows import ACTIVE, COMPLETED, Schedule
from runtime.ports.bus import RUNS, SCHEDULES
from runtime.sessions import inputs, lanes, message_edits, runs, sessions
from runtime.sessions.lanes import Lane
from runtime.sessions.runs import Run
from runtime.sessions.unit import Unit
from runtime.store.database import now_ms

MOST_WAITING: Final = 20
"""Runs that wait in a lane; with so many no schedule adds one."""
FOR_GOOD: Final = (Conflict, InvalidInput, NotFound, ValueError)
"""What a dispatch fails with that no later try would mend."""
ALL_TAKEN: Final = "as many as it may fire yet are at work"
LINE: Final = 2_000
"""Characters of an answer that its conversation's transcript is told."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A dispatch that failed: why, what is done about it, and a number in [0, 1) for its jitter.
    `for_good`: no later try would end in another way."""

    error: str
    policy: RetryPolicy
    jitter: float
    for_good: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a unit did: the runs that it dispatched, the check that is to be made before one is, and
    why it paused the schedule, if it did."""

    dispatched: Sequence[str] = ()
    paused: str = ""
    claim: Claim | None = None


def fire(unit: Unit, schedule_id: str, admitted: Admitted) -> Outcome:
    """Dispatch what of a schedule is due. Raises what a dispatch fails with: then nothing of it is
    durable, and `note_failure` is next."""
    seen = rows.find(unit.conn, schedule_id)
    if seen is None or seen.status != ACTIVE or seen.run_session_id is None:
        return Outcome()
    lane = unit.lane(seen.run_session_id)
    schedule = rows.locked(unit.conn, schedule_id)
    if schedule is None or schedule.status != ACTIVE:
        return Outcome()
    schedule = followed(unit.conn, schedule)
    owner = Owners(unit.conn, admitted).of(schedule)
    if owner is None:
        return stopped(unit, schedule, NOT_LET_IN, lane)
    if sessions.get(unit.conn, lane.session_id).status != "open":
        raise Conflict("its session has ended", "ended")
    firing = Firing(unit, schedule, lane=lane, owner=owner)
    firing.all_due()
    return Outcome(tuple(firing.dispatched), claim=firing.claim)


def note_failure(unit: Unit, schedule_id: str, failure: Failure) -> Outcome:
    """Note that what is due could not be dispatched, and when it is tried again (SCH-5)."""
    # Lanes come before schedules, in every unit.
    lane = any_lane(unit, rows.find(unit.conn, schedule_id))
    schedule = rows.locked(unit.conn, schedule_id)
    if schedule is None or schedule.status != ACTIVE:
        return Outcome()
    if failure.for_good:
        return stopped(unit, schedule, failure.error, lane)
    try:
        firing = Firing(unit, schedule, failure=failure)
        firing.all_due()
    except (InvalidInput, ValueError) as error:
        return stopped(unit, schedule, str(error), lane)
    if firing.exhausted:
        slot_ms = firing.exhausted_slot_ms
        roll_back(unit.conn, schedule, slot_ms, failure.error)
        fresh = rows.locked(unit.conn, schedule_id)
        if fresh is not None and fresh.next_fire_ms is None:
            # Nothing else comes, so whoever resumes it wants the time that was given up.
            pause_for(unit, fresh, 0, failure.error, lane)
            return Outcome(paused=failure.error)
        if fresh is not None:
            return stopped(unit, fresh, failure.error, lane)
    return Outcome()


def settle(unit: Unit, done: Fire, redact: Callable[[str], str] = str) -> None:
    """Note how a run ended, say what a heartbeat gave, tell the conversation, and let go on what
    waited for it."""
    conn = unit.conn
    seen = rows.find(conn, done.schedule_id)
    if seen is None or done.run_id is None:
        return
    run = runs.get(conn, done.run_id)
    held = _held(unit, seen, run)
    schedule = rows.locked(conn, done.schedule_id)
    known = fires.fire_at(conn, done.schedule_id, done.slot_ms)
    if schedule is None or known is None or known.status != DISPATCHED:
        return
    run = runs.get(conn, done.run_id)
    if run.state not in TERMINAL:
        return
    good = run.state is RunState.COMPLETED
    error = None if good else run.error or f"its run {run.id} is {run.state}"
    now = now_ms(conn)
    ends: dict[str, object] = {"status": SETTLED, "settled_ms": now, "reason": error or ""}
    terms = schedule.terms
    said = None
    if terms is not None and terms.heartbeat:
        said = heartbeats.result_of(conn, run.id) if good else None
        ends |= heartbeats.deliver(unit, schedule, said, redact)
    fires.change_fire(conn, schedule.id, done.slot_ms, **ends)
    executions = schedule.execution_count + 1
    if held.run_lane is not None:
        told: JsonObject = {"schedule_id": schedule.id, "status": run.state.value}
        held.run_lane.record(EventKind.SCHEDULE_SETTLED, run.id, told)
        unit.changed(held.run_lane.session_id)
    if held.conversation is not None and (terms is None or not terms.heartbeat):
        _leave_line(unit, held.conversation, schedule, run, rows.last_words(conn, run))
    elif held.conversation is not None and said is not None and said.speak:
        _leave_line(unit, held.conversation, schedule, run, redact(said.text))
    rows.change(
        conn,
        schedule,
        now=now,
        execution_count=executions,
        consecutive_failures=0 if good else schedule.consecutive_failures + 1,
        last_error=error,
    )
    after_settling(unit, schedule.id)


def after_settling(unit: Unit, schedule_id: str) -> None:
    """Look at once at what waited for the run, or end a schedule that has no time any more."""
    conn = unit.conn
    schedule = rows.locked(conn, schedule_id)
    if schedule is None or schedule.status != ACTIVE:
        return
    now = now_ms(conn)
    if schedule.execution_count == schedule.max_executions:
        if schedule.queued_fire_ms is not None:
            roll_back(conn, schedule, schedule.queued_fire_ms, "it has fired as often as it may")
        _complete(unit, schedule)
    elif schedule.queued_fire_ms is not None:
        rows.change(conn, schedule, now=now, retry_after_ms=schedule.retry_after_ms or now)
        unit.say(SCHEDULES)
    elif schedule.is_spent and not fires.at_work(conn, schedule_id):
        _complete(unit, schedule)


def _complete(unit: Unit, schedule: Schedule) -> None:
    ends: dict[str, object] = {"next_fire_ms": None, "queued_fire_ms": None, "trigger_ms": None}
    now = now_ms(unit.conn)
    rows.change(unit.conn, schedule, now=now, status=COMPLETED, **ends)


@dataclass(slots=True)
class _Held:
    run_lane: Lane | None = None
    conversation: Lane | None = None


def _held(unit: Unit, schedule: Schedule, run: Run) -> _Held:
    """The lane of a run, and that of the conversation where its schedule was made, if it is
    another; those that are still there."""
    wanted = [run.session_id]
    if schedule.lane_id is not None and schedule.session_id is not None:
        wanted.append(schedule.session_id)
    try:
        found = unit.lanes(wanted)
    except NotFound:
        return _Held()
    return _Held(found[0], found[1] if len(found) > 1 else None)


def _leave_line(unit: Unit, lane: Lane, schedule: Schedule, run: Run, words: str) -> None:
    """Tell a conversation what a run in another lane answered in its place (SCH-9)."""
    words = words[:LINE]
    about = f"The schedule {quoted(schedule.name)} ran at its time"
    text = f"{about} and ended as {run.state}, without an answer."
    if run.state is RunState.COMPLETED:
        text = f"{about} and answered: {words}" if words else f"{about} and had nothing to say."
    if lane.active_run is None:
        lane.say(NoticeMessage(text=text, untrusted=run.tainted), run_id=None, step=0)
    else:
        # In the middle of a run it would stand between calls and their results.
        message = _message(schedule.place, run.speaker, text, lane.now_ms)
        if run.tainted:
            message = message.model_copy(update={"authorship": "forwarded"})
        identity = f"scheduled:{run.id}"
        told = inputs.new_input(lane, message, run.speaker, run_id=None, identity=identity)
        message_edits.note(unit.conn, told, origin=message_edits.LINE)
    unit.changed(lane.session_id)


def _message(place: ChatAddress, owner: Speaker, text: str, at_ms: int) -> InboundMessage:
    return InboundMessage(
        channel=place.channel,
        account=place.account,
        chat_id=place.chat_id,
        chat_kind=place.chat_kind,
        thread_id=place.thread_id,
        joins_chat=place.joins_chat,
        message_id="",
        sender=Sender(id=owner.user_id, name=owner.name),
        text=text,
        received_at_ms=at_ms,
    )


def any_lane(unit: Unit, seen: Schedule | None) -> Lane | None:
    """The lane of its runs, or of its conversation where that one is gone."""
    for session_id in () if seen is None else (seen.lane_id, seen.session_id):
        if session_id is not None:
            with suppress(NotFound):
                return unit.lane(session_id)
    return None


def stopped(unit: Unit, schedule: Schedule, reason: str, lane: Lane | None) -> Outcome:
    now = now_ms(unit.conn)
    next_ms = schedule.next_fire_ms
    if next_ms is not None and next_ms <= now:
        fires.add_fire(unit.conn, Fire(schedule.id, next_ms, now, SKIPPED, reason))
    pause_for(unit, schedule, None if next_ms is None else max(0, next_ms - now), reason, lane)
    return Outcome(paused=reason)


@dataclass(slots=True)
class Firing:
    """One unit's work on one schedule; with a `failure` the first time that would be dispatched is
    noted to be tried again instead."""

    unit: Unit
    schedule: Schedule
    lane: Lane | None = None
    owner: Speaker | None = None
    failure: Failure | None = None
    checked: Checked | None = None
    claim: Claim | None = None
    dispatched: list[str] = field(default_factory=list)
    exhausted: bool = False
    exhausted_slot_ms: int = 0
    _now: int = field(init=False)
    _busy: int = field(init=False)
    _changed: dict[str, object] = field(init=False)

    def __post_init__(self) -> None:
        self._now = now_ms(self.unit.conn)
        self._busy = len(fires.at_work(self.unit.conn, self.schedule.id))
        self._changed = {}

    def all_due(self) -> None:
        """Deal with all of the schedule that is due."""
        schedule, now = self.schedule, self._now
        retry_ms = schedule.retry_after_ms
        if schedule.retry_slot_ms is not None and (retry_ms is None or retry_ms <= now):
            self._busy -= 1
            self._begin(schedule.retry_slot_ms, attempt=schedule.retry_attempt + 1)
        if self._queued is not None and not self._busy:
            self._begin_queued()
        if schedule.trigger_ms is not None:
            self._one(free_slot(self.unit.conn, schedule, now))
            self._changed["trigger_ms"] = None
        if schedule.next_fire_ms is not None and schedule.next_fire_ms <= now:
            due = self._due(schedule.next_fire_ms)
            for slot_ms in due.fire:
                self._one(slot_ms)
            for skipped in due.skipped:
                self._skip(skipped.slot_ms, skipped.reason)
            self._changed["next_fire_ms"] = due.coming
        self._keep()

    @property
    def _queued(self) -> int | None:
        found = self._changed.get("queued_fire_ms", self.schedule.queued_fire_ms)
        return found if isinstance(found, int) else None

    def _due(self, slot_ms: int) -> Due:
        cadence = cadence_in(self.schedule.cadence)
        misfire = misfire_of(self.schedule)
        return due_times(cadence, misfire, slot_ms, self._now, self.schedule.anchor_ms)

    def _one(self, slot_ms: int) -> None:
        schedule, queued = self.schedule, self._queued is not None
        if self._all_taken:
            # One of those at work may come to nothing, and leave its place to a later time.
            self._skip(slot_ms, ALL_TAKEN)
            return
        policy = schedule.overlap
        tried = self._changed.get("retry_slot_ms", schedule.retry_slot_ms) is not None
        if policy == "parallel" and self._busy and (tried or self.failure is not None):
            # One is checked, or tried again, at a time.
            policy = "skip"
        match overlap(policy, busy=self._busy > 0, queued=queued):
            case "dispatch":
                self._begin(slot_ms, attempt=1)
            case "queue":
                fire = Fire(
                    schedule.id, slot_ms, self._now, CLAIMED, from_queued=True, claimed_ms=self._now
                )
                if fires.add_fire(self.unit.conn, fire):
                    self._changed["queued_fire_ms"] = slot_ms
            case "skip":
                self._skip(slot_ms, ONE_WAITS if queued else STILL_AT_WORK)

    @property
    def _all_taken(self) -> bool:
        most = self.schedule.max_executions
        return most is not None and self.schedule.execution_count + self._busy >= most

    def _skip(self, slot_ms: int, reason: str) -> None:
        skipped = Fire(self.schedule.id, slot_ms, self._now, SKIPPED, reason)
        if fires.add_fire(self.unit.conn, skipped):
            self._tell_skip(slot_ms, reason)

    def _skip_begun(self, slot_ms: int, reason: str) -> None:
        """Skip a time that may have a row already, because its check was begun."""
        self._note(slot_ms, {"status": SKIPPED, "reason": reason})
        self._tell_skip(slot_ms, reason)
        self._let_go(slot_ms)

    def _tell_skip(self, slot_ms: int, reason: str) -> None:
        if self.lane is not None:
            told: JsonObject = {
                "schedule_id": self.schedule.id,
                "fire_at_ms": slot_ms,
                "reason": reason,
            }
            self.lane.record(EventKind.SCHEDULE_SKIPPED, None, told)
            self.unit.changed(self.lane.session_id)

    def _begin_queued(self) -> None:
        slot_ms = self._queued
        if slot_ms is not None:
            self._changed["queued_fire_ms"] = None
            self._begin(slot_ms, attempt=1)

    def _begin(self, slot_ms: int, *, attempt: int) -> None:
        self._busy += 1
        if self.failure is not None:
            self._try_again(slot_ms, attempt, self.failure)
            return
        terms = self.schedule.terms
        if terms is not None and terms.checked and self.checked is None:
            self._claim(slot_ms, attempt, terms)
            return
        self._dispatch(slot_ms, attempt)

    def _dispatch(self, slot_ms: int, attempt: int) -> None:
        if self.lane is None or self.owner is None:
            raise TypeError("a dispatch needs its lane and its owner")
        news = () if self.checked is None else self.checked.news
        fired = _Slot(self.schedule, slot_ms, news)
        run_id = _dispatch(self.unit, self.lane, self.owner, fired)
        values: dict[str, object] = {
            "status": DISPATCHED,
            "reason": "",
            "run_id": run_id,
            "attempt": attempt,
            "dispatched_ms": self._now,
        }
        self._note(slot_ms, values)
        self._changed |= {
            "last_fire_ms": slot_ms,
            "last_run_id": run_id,
            "last_scheduler_error": None,
        }
        if slot_ms == self.schedule.retry_slot_ms:
            self._changed |= {"retry_slot_ms": None, "retry_after_ms": None, "retry_attempt": 0}
        self.dispatched.append(run_id)

    def _claim(self, slot_ms: int, attempt: int, terms: Conditions) -> None:
        """Leave a time to whoever checks it, for as long as that may take. Once that is over, it is
        tried again: a process that was lost in a check loses no time."""
        refusal = None if terms.gate is None else REFUSALS.get(self.schedule.gate_state or "")
        if refusal is not None:
            self._busy -= 1
            self._skip_begun(slot_ms, refusal)
            return
        if attempt > MOST_TRIES:
            self._busy -= 1
            self._give_up(slot_ms, f"its check was begun {MOST_TRIES} times and never ended")
            return
        token = secrets.token_hex(16)
        self._note(slot_ms, {"status": CLAIMED, "reason": "", "attempt": attempt})
        self._changed |= {
            "retry_slot_ms": slot_ms,
            "retry_after_ms": self._now + lease_ms(terms),
            "retry_attempt": attempt,
            "check_token": token,
        }
        self.claim = Claim(self.schedule.id, slot_ms, attempt, token)

    def conclude(self, claim: Claim, checked: Checked) -> None:
        """Make the run of a time that was checked, or skip it. What was seen moves with it."""
        self.checked = checked
        self._busy -= 1
        if checked.skip:
            self._skip_begun(claim.slot_ms, checked.skip)
        else:
            self._busy += 1
            self._dispatch(claim.slot_ms, claim.attempt)
        self._changed |= {"seen": checked.seen.model_dump_json(), "check_token": None}
        if checked.ask_again:
            self._changed |= {"gate_state": NEW, "gate_digest": None, "prepare_ms": self._now}
        if self.schedule.last_error == self.schedule.last_scheduler_error is not None:
            # It was of a check before this one, which has ended well.
            self._changed["consecutive_failures"] = 0
        self._changed |= {"last_error": None, "last_scheduler_error": None}
        self._keep()

    def failed(self, claim: Claim, failure: Failure) -> None:
        """Try the check of a time again later, or give that time up."""
        error = failure.error
        self._changed |= {"last_error": error, "last_scheduler_error": error, "check_token": None}
        if claim.attempt >= MOST_TRIES and not failure.policy.exhausted(claim.attempt):
            self._busy -= 1
            self._give_up(claim.slot_ms, failure.error)
        else:
            self._try_again(claim.slot_ms, claim.attempt, failure)
        self._keep()

    def _give_up(self, slot_ms: int, reason: str) -> None:
        roll_back(self.unit.conn, self.schedule, slot_ms, reason)
        self._let_go(slot_ms)
        self._changed |= {
            "last_error": reason,
            "consecutive_failures": self.schedule.consecutive_failures + 1,
        }

    def _let_go(self, slot_ms: int) -> None:
        if slot_ms == self._changed.get("retry_slot_ms", self.schedule.retry_slot_ms):
            self._changed |= {
                "retry_slot_ms": None,
                "retry_after_ms": None,
                "retry_attempt": 0,
                "check_token": None,
            }

    def _try_again(self, slot_ms: int, attempt: int, failure: Failure) -> None:
        values: dict[str, object] = {
            "status": RETRYING,
            "reason": failure.error,
            "attempt": attempt,
        }
        self._note(slot_ms, values)
        self._changed |= {"last_scheduler_error": failure.error}
        if failure.policy.exhausted(attempt):
            self.exhausted, self.exhausted_slot_ms = True, slot_ms
            self._changed |= {"retry_slot_ms": None, "retry_after_ms": None}
            self._changed |= {"retry_attempt": attempt}
            return
        wait_ms = failure.policy.delay_ms(attempt, failure.jitter)
        self._changed |= {"retry_slot_ms": slot_ms, "retry_after_ms": self._now + wait_ms}
        self._changed |= {"retry_attempt": attempt}

    def _note(self, slot_ms: int, values: dict[str, object]) -> None:
        """Keep what became of a time, which may have a row already. Raises `Conflict` where that
        was dispatched before: one time never fires twice."""
        conn, schedule = self.unit.conn, self.schedule
        known = fires.fire_at(conn, schedule.id, slot_ms)
        if known is None:
            fire = Fire(schedule.id, slot_ms, self._now, CLAIMED, claimed_ms=self._now)
            fires.add_fire(conn, fire)
        elif known.status not in (CLAIMED, RETRYING):
            raise Conflict(f"the time {slot_ms} was dealt with before", known.status)
        fires.change_fire(conn, schedule.id, slot_ms, **values)

    def _keep(self) -> None:
        conn, schedule = self.unit.conn, self.schedule
        if self._changed.get("retry_slot_ms", schedule.retry_slot_ms) is None:
            # It only said to look again.
            self._changed["retry_after_ms"] = None
        coming = self._changed.get("next_fire_ms", schedule.next_fire_ms)
        if coming is None and not self._busy and self._queued is None:
            self._changed["status"] = COMPLETED
        rows.change(conn, schedule, now=self._now, **self._changed)


def _about(schedule: Schedule, text: str) -> str:
    return f"{schedule.name}: {text}" if schedule.name else text


@dataclass(frozen=True, slots=True)
class _Slot:
    """One time of a schedule, and what is told with its request."""

    schedule: Schedule
    slot_ms: int
    news: Sequence[Gathered] = ()


def _dispatch(unit: Unit, lane: Lane, owner: Speaker, slot: _Slot) -> str:
    """Queue the run of one time. Raises `QueueFull`."""
    conn, schedule, slot_ms = unit.conn, slot.schedule, slot.slot_ms
    if rows.waiting_runs(conn, lane.session_id, most=MOST_WAITING) >= MOST_WAITING:
        raise QueueFull(f"{MOST_WAITING} runs wait in its session already")
    request = schedule.asks
    if lane.kind == HEARTBEAT:
        heartbeats.begin_anew(lane)
    lane.run_seq += 1
    run = Run(
        id=new_id(IdPrefix.RUN, lane.now_ms),
        session_id=lane.session_id,
        seq=lane.run_seq,
        kind=RunKind.SCHEDULED_INPUT,
        ready_ms=lane.now_ms,
        target=schedule.place,
        reply_to=None,
        speaker=owner,
        summary=lane.summary(_about(schedule, request.text if request else "")),
        created_ms=lane.now_ms,
    )
    runs.add(conn, run)
    message = _message(schedule.place, owner, request.text if request else "", lane.now_ms)
    message = message.model_copy(update={"by_model": schedule.worded_by_model})
    identity = f"schedule:{schedule.id}:{slot_ms}"
    asked = inputs.new_input(lane, message, owner, run_id=run.id, identity=identity)
    if not inputs.add(conn, asked):
        raise Conflict(f"the time {slot_ms} was dispatched before", DISPATCHED)
    for place, news in enumerate(slot.news):
        # Not the owner's words: whoever reads them has read something from outside.
        text = fence(news.text, news.source)
        told = message.model_copy(update={"text": text, "authorship": "forwarded"})
        identity = f"schedule:{schedule.id}:{slot_ms}:{place}"
        inputs.add(
            conn,
            inputs.new_input(
                lane, told, owner, run_id=run.id, identity=identity, origin=inputs.NOTICE
            ),
        )
    facts: JsonObject = {"schedule_id": schedule.id, "fire_at_ms": slot_ms}
    queued: JsonObject = {"kind": run.kind.value, "summary": run.summary, **facts}
    lane.record(EventKind.RUN_QUEUED, run.id, queued)
    lane.record(EventKind.SCHEDULE_DISPATCHED, run.id, facts)
    lanes.settle(conn, lane)
    unit.say(RUNS)
    unit.changed(lane.session_id)
    return run.id
