"""`ScheduleControl`: what the owner does with schedules by the API, and how they are shown."""

import json
from collections.abc import Callable
from dataclasses import dataclass

from runtime.domain import cursors
from runtime.domain.cursors import Page
from runtime.domain.errors import InvalidInput, NotFound
from runtime.domain.messages import ChatAddress
from runtime.domain.people import Trust
from runtime.domain.request_keys import RequestKey, request_key
from runtime.features.schedules import changes, fires, gates, rows
from runtime.features.schedules.cadence import cadence_in
from runtime.features.schedules.changes import Making, Owner
from runtime.features.schedules.descriptions import coming
from runtime.features.schedules.fires import FIRED, RETRYING, SETTLED, Shown
from runtime.features.schedules.model import (
    MOST_EXECUTIONS_SHOWN,
    AskedPlace,
    CancelRequest,
    ExecutionView,
    GateDecision,
    GateStatus,
    ObservationMaterialization,
    Place,
    ScheduleChange,
    ScheduleCreateRequest,
    ScheduleStatus,
    ScheduleView,
)
from runtime.features.schedules.reminders import misfire_of
from runtime.features.schedules.rows import Schedule
from runtime.intake.access import LOCAL
from runtime.intake.submissions import OWNER
from runtime.sessions import idempotency, people, sessions
from runtime.sessions.chat_kinds import address_of
from runtime.sessions.unit import Unit, Units
from runtime.store import Connection

LOCAL_OWNER = "per_local_owner"
"""The person who owns what is made on the page, in the terminal and by the API."""

Change = Callable[[Unit, Schedule], object]


@dataclass(frozen=True, slots=True)
class ScheduleControl:
    """The write side of schedules and their views, for an owner; `actor` is who does it."""

    units: Units
    actor: str

    async def create(
        self, asked: ScheduleCreateRequest, *, idempotency_key: str | None = None
    ) -> tuple[ScheduleView, bool]:
        """The schedule, and whether it was made now. Raises `NotFound`, `InvalidInput` and
        `Conflict`, also for a key that came with another request."""
        key = request_key("schedule", idempotency_key, asked.model_dump(mode="json"))

        def work(unit: Unit) -> tuple[ScheduleView, bool]:
            kept = idempotency.claim(unit.conn, key)
            if kept is not None:
                return one_schedule(unit.conn, str(kept["schedule_id"])), False
            made = self._made(unit, asked)
            idempotency.keep(unit.conn, key, {"schedule_id": made.schedule_id})
            return made, True

        return await self.units.run(work, name="schedule-create")

    def _made(self, unit: Unit, asked: ScheduleCreateRequest) -> ScheduleView:
        conn = unit.conn
        session = sessions.get(conn, asked.target_session_id)
        named = session.address if asked.place is None else _named(asked.place)
        owner = owner_of(conn, asked.owner_person_id, named)
        place = named
        if asked.place is not None:
            local = named.channel in LOCAL
            place = address_of(conn, named, asked.place.chat_kind, local=local)
        making = Making(
            owner=owner,
            place=place,
            by=self.actor,
            own_lane=asked.place is not None,
            worded_by_model=False,
        )
        schedule = changes.make(unit, asked, making)
        return one_schedule(conn, schedule.id)

    async def listing(
        self,
        *,
        session_id: str | None = None,
        status: ScheduleStatus | None = None,
        gate_status: GateStatus | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[ScheduleView]:
        """The newest first; those of a session are the ones made in it, or with runs in it."""
        which = rows.Which(session_id, status, gate_status)
        before = None if cursor is None else str(cursors.decode(cursor, str)[0])

        def work(conn: Connection) -> Page[ScheduleView]:
            found = rows.page(conn, which, limit=limit + 1, before=before)
            more = len(found) > limit
            return Page(
                items=tuple(view_of(conn, one) for one in found[:limit]),
                next_cursor=cursors.encode(found[limit - 1].id) if more else None,
                total_count=rows.count(conn, which),
            )

        return await self.units.database.read(work)

    async def get(self, schedule_id: str) -> ScheduleView:
        """One schedule. Raises `NotFound`."""
        return await self.units.database.read(lambda conn: one_schedule(conn, schedule_id))

    async def revise(self, schedule_id: str, asked: ScheduleChange) -> ScheduleView:
        """Give one other words, times or policies. Raises as `changes.revise`."""
        return await self._change(
            schedule_id,
            lambda unit, held: changes.revise(unit, held, asked, by=self.actor, by_model=False),
        )

    async def cancel(self, schedule_id: str, asked: CancelRequest) -> ScheduleView:
        """End one for good, and its run where that is asked for."""

        def work(unit: Unit) -> ScheduleView:
            held = changes.held(unit, schedule_id, with_run=asked.stop_run)
            changes.cancel(unit, held, by=self.actor, stop_run=asked.stop_run)
            return _changed(unit, held)

        return await self.units.run(work, name="schedule-cancel")

    async def pause(self, schedule_id: str) -> ScheduleView:
        """Stop one until it is resumed."""
        return await self._change(
            schedule_id, lambda unit, held: changes.pause(unit, held, by=self.actor)
        )

    async def resume(self, schedule_id: str) -> ScheduleView:
        """Let one that is paused go on."""
        return await self._change(
            schedule_id, lambda unit, held: changes.resume(unit, held, by=self.actor)
        )

    async def decide_gate(self, schedule_id: str, given: GateDecision) -> ScheduleView:
        """Approve or deny the gate of one. Raises as `gates.decide`."""
        return await self._change(
            schedule_id, lambda unit, held: gates.decide(unit, held, given, by=self.actor)
        )

    async def trigger(
        self, schedule_id: str, *, idempotency_key: str | None = None
    ) -> ScheduleView:
        """Let one fire now, once for all requests of a key."""
        key = request_key(f"trigger:{schedule_id}", idempotency_key, None)
        return await self._change(
            schedule_id, lambda unit, held: changes.trigger(unit, held, by=self.actor), key=key
        )

    async def _change(
        self, schedule_id: str, change: Change, *, key: RequestKey | None = None
    ) -> ScheduleView:
        def work(unit: Unit) -> ScheduleView:
            if idempotency.claim(unit.conn, key) is not None:
                return one_schedule(unit.conn, schedule_id)
            held = changes.held(unit, schedule_id)
            change(unit, held)
            idempotency.keep(unit.conn, key, {"schedule_id": schedule_id})
            return _changed(unit, held)

        return await self.units.run(work, name="schedule-change")


def _named(asked: AskedPlace) -> ChatAddress:
    return ChatAddress(
        channel=asked.channel, account=asked.account, chat_id=asked.chat, thread_id=asked.thread
    )


def owner_of(conn: Connection, person_id: str | None, place: ChatAddress) -> Owner:
    """With whose authority a schedule fires in a place. Raises `InvalidInput`."""
    if place.channel in LOCAL:
        if person_id not in (None, LOCAL_OWNER):
            raise InvalidInput("owner_person_id", f"must be {LOCAL_OWNER} on {place.channel}")
        return Owner(LOCAL_OWNER, OWNER.id, Trust.OWNER)
    if person_id is None:
        raise InvalidInput(
            "owner_person_id", f"must be given where the place is on {place.channel}"
        )
    for account in people.of_person(conn, person_id):
        speaker = account.speaker
        if (speaker.channel, speaker.account) == (place.channel, place.account):
            return Owner(person_id, speaker.user_id, speaker.trust)
    rule = f"must be a person with an account on {place.channel}"
    raise InvalidInput("owner_person_id", rule)


def _changed(unit: Unit, schedule: Schedule) -> ScheduleView:
    unit.save()
    return one_schedule(unit.conn, schedule.id)


def one_schedule(conn: Connection, schedule_id: str) -> ScheduleView:
    """A schedule by its id. Raises `NotFound`."""
    found = rows.find(conn, schedule_id)
    if found is None:
        raise NotFound("schedule", schedule_id)
    return view_of(conn, found)


def view_of(conn: Connection, schedule: Schedule) -> ScheduleView:
    """A schedule with what became of its last times."""
    recent = fires.recent(conn, schedule.id, most=MOST_EXECUTIONS_SHOWN)
    # A time that is being checked is tried again only if that check is lost.
    checked = schedule.check_token is not None
    # Not among the recent ones: times that are left out meanwhile push it out of them.
    first = next(iter(fires.at_work(conn, schedule.id)), None)
    try:
        cadence = cadence_in(schedule.cadence)
    except InvalidInput:
        cadence = None
    request, terms = schedule.asks, schedule.terms
    observed = None
    if terms is not None and terms.source is not None and schedule.session_id is not None:
        observed = ObservationMaterialization(
            target_session_id=schedule.session_id, source=terms.source, request=terms.request
        )
    return ScheduleView(
        schedule_id=schedule.id,
        name=schedule.name,
        target_session_id=schedule.session_id,
        run_session_id=schedule.run_session_id if request is not None else None,
        place=Place(
            channel=schedule.channel,
            account=schedule.account,
            chat=schedule.chat,
            chat_kind=schedule.chat_kind,
            thread=schedule.thread,
        ),
        owner_person_id=schedule.owner_person_id,
        timezone=schedule.timezone,
        deliver_text=schedule.deliver_text,
        request=request if observed is None else None,
        observation_materialization=observed,
        gate=None if terms is None else gates.view_of(schedule, terms),
        heartbeat=terms is not None and terms.heartbeat,
        cadence=cadence,
        overlap_policy=schedule.overlap,
        misfire_policy=misfire_of(schedule),
        max_executions=schedule.max_executions,
        status=schedule.status,
        next_fire_at_ms=schedule.next_fire_ms,
        next_fires_at_ms=tuple(coming(schedule)),
        remaining_ms=schedule.remaining_ms,
        queued_fire_at_ms=schedule.queued_fire_ms,
        in_flight_fire_at_ms=None if first is None else first.slot_ms,
        in_flight_run_id=None if first is None else first.run_id,
        last_fire_at_ms=schedule.last_fire_ms,
        last_dispatched_run_id=schedule.last_run_id,
        last_error=schedule.last_error,
        last_scheduler_error=schedule.last_scheduler_error,
        scheduler_retry_after_ms=None if checked else schedule.retry_after_ms,
        scheduler_retry_attempt=schedule.retry_attempt - checked,
        execution_count=schedule.execution_count,
        consecutive_failures=schedule.consecutive_failures,
        recent_executions=tuple(_execution(one, schedule) for one in recent),
        created_at_ms=schedule.created_ms,
        updated_at_ms=schedule.updated_ms,
        **json.loads(schedule.origin),
    )


def _execution(shown: Shown, schedule: Schedule) -> ExecutionView:
    fire = shown.fire
    said = fire.status == FIRED
    retried = fire.status == RETRYING and fire.slot_ms == schedule.retry_slot_ms
    return ExecutionView(
        fire_at_ms=fire.slot_ms,
        run_id=fire.run_id,
        run_status=shown.run_state,
        delivery_status=shown.delivery,
        spoke=fire.spoke,
        status=SETTLED if fire.status == FIRED else fire.status,
        attempt=1 if said else fire.attempt,
        from_queued_fire=fire.from_queued,
        claimed_at_ms=fire.fired_ms if fire.claimed_ms is None else fire.claimed_ms,
        dispatched_at_ms=fire.fired_ms if said else fire.dispatched_ms,
        settled_at_ms=fire.fired_ms if said else fire.settled_ms,
        retry_after_ms=schedule.retry_after_ms if retried else None,
        error=fire.reason or None,
    )
