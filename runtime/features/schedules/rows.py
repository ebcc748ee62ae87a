"""Schedules, and people's time zones. Statements only."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Text,
    and_,
    bindparam,
    case,
    delete,
    exists,
    func,
    insert,
    literal_column,
    or_,
    select,
    text,
    update,
)

from runtime.domain.messages import ChatAddress, ChatKind
from runtime.domain.people import Speaker
from runtime.domain.transcript import AssistantMessage, TranscriptMessage
from runtime.features.schedules.conditions import (
    GATE_STATES,
    WAITING,
    Conditions,
    GateState,
    Seen,
)
from runtime.features.schedules.fires import OVER, STILL_DISPATCHED
from runtime.features.schedules.model import (
    GateStatus,
    OverlapPolicy,
    ScheduledRequest,
    ScheduleStatus,
)
from runtime.features.schedules.tables import (
    person_zones,
    schedule_fires,
    schedule_lanes,
    schedules,
)
from runtime.sessions.due_work import DueCheck
from runtime.sessions.runs import Run
from runtime.sessions.tables import inputs, messages, runs
from runtime.store.database import now_ms
from runtime.store.dialect import lock_rows, upsert
from runtime.store.payloads import kept, kept_message
from runtime.store.statements import hot

AT_ONCE: Final = 100
"""Schedules that one unit fires."""
ACTIVE: Final = "active"
PAUSED: Final = "paused"
COMPLETED: Final = "completed"
CANCELLED: Final = "cancelled"
_OPEN: Final = (ACTIVE, PAUSED)
# The very words of the partial index: SQLite uses it for nothing else.
_ACTIVE: Final = text("schedules.status = 'active'")
# Those with none of these are a later version's, beside which this one may run.
_PLAIN: Final = schedules.c.deliver_text.is_not(None)
_ASKS: Final = or_(schedules.c.request.is_not(None), schedules.c.conditions.is_not(None))
_KNOWN: Final = or_(_PLAIN, _ASKS)
_IS_DUE: Final = or_(
    schedules.c.next_fire_ms <= bindparam("moment"), schedules.c.wake_ms <= bindparam("moment")
)
_EARLIER: Final = case(
    (schedules.c.wake_ms.is_(None), schedules.c.next_fire_ms),
    (schedules.c.next_fire_ms.is_(None), schedules.c.wake_ms),
    (schedules.c.wake_ms < schedules.c.next_fire_ms, schedules.c.wake_ms),
    else_=schedules.c.next_fire_ms,
)
_DUE = (
    select(schedules)
    .where(_ACTIVE, _PLAIN, _IS_DUE)
    .order_by(_EARLIER, schedules.c.id)
    .limit(AT_ONCE)
)
_DUE_IN = (
    select(schedules.c.session_id)
    .where(_ACTIVE, _PLAIN, _IS_DUE)
    .order_by(_EARLIER, schedules.c.id)
    .limit(AT_ONCE)
)
_DUE_REQUESTS = (
    select(schedules.c.id)
    .where(_ACTIVE, _ASKS, _IS_DUE)
    .order_by(_EARLIER, schedules.c.id)
    .limit(AT_ONCE)
)


_MOVE_ON = hot(
    update(schedules)
    .where(
        schedules.c.id == bindparam("the_schedule"),
        schedules.c.revision == bindparam("of_revision"),
    )
    .values(
        revision=schedules.c.revision + literal_column("1"),
        updated_ms=bindparam("at_ms"),
        wake_ms=bindparam("new_wake_ms"),
        trigger_ms=None,
        status=bindparam("new_status"),
        next_fire_ms=bindparam("new_next_ms"),
        execution_count=bindparam("new_count"),
        last_fire_ms=bindparam("new_last_ms"),
    )
)


def _earliest(column: ColumnElement[int]) -> ColumnElement[int]:
    """The first of an index: a minimum under this condition would read all that are active."""
    known = select(column).where(_ACTIVE, _KNOWN, column.is_not(None))
    return known.order_by(column).limit(literal_column("1")).scalar_subquery()


_FIRST = hot(
    select(
        _earliest(schedules.c.next_fire_ms).label("next_ms"),
        _earliest(schedules.c.wake_ms).label("wake_ms"),
    )
)


@dataclass(frozen=True, slots=True)
class Schedule:
    """One row, as it was read. `cadence`, `misfire`, `request`, `origin`, `conditions` and `seen`
    are JSON; `owner_user_id` is the owner's account on the platform of the place. Its runs are in
    the lane of `lane_id`, or where there is none in that of `session_id`."""

    id: str
    owner_person_id: str
    owner_user_id: str | None
    session_id: str | None
    channel: str
    account: str
    chat: str
    chat_kind: ChatKind
    thread: str | None
    timezone: str
    cadence: str
    anchor_ms: int
    deliver_text: str | None
    next_fire_ms: int | None
    created_ms: int
    updated_ms: int
    misfire: str = '{"type":"coalesce_once"}'
    max_executions: int | None = None
    status: ScheduleStatus = ACTIVE
    remaining_ms: int | None = None
    execution_count: int = 0
    revision: int = 1
    last_error: str | None = None
    request: str | None = None
    name: str = ""
    lane_id: str | None = None
    origin: str = "{}"
    overlap: OverlapPolicy = "skip"
    queued_fire_ms: int | None = None
    trigger_ms: int | None = None
    retry_slot_ms: int | None = None
    retry_after_ms: int | None = None
    retry_attempt: int = 0
    last_scheduler_error: str | None = None
    last_fire_ms: int | None = None
    last_run_id: str | None = None
    consecutive_failures: int = 0
    wake_ms: int | None = None
    conditions: str | None = None
    gate_state: GateState | None = None
    gate_card: str | None = None
    gate_asked: str | None = None
    gate_digest: str | None = None
    seen: str | None = None
    check_token: str | None = None
    prepare_ms: int | None = None
    worded_by_model: bool = True

    @property
    def terms(self) -> Conditions | None:
        """Its conditions; None where it has none."""
        return None if self.conditions is None else kept(Conditions, self.conditions)

    @property
    def asks(self) -> ScheduledRequest | None:
        """What its runs are asked; None for a plain reminder."""
        if self.request is not None:
            return ScheduledRequest.model_validate_json(self.request)
        return None if self.terms is None else self.terms.request

    @property
    def saw(self) -> Seen:
        """What its checks have seen so far."""
        return Seen() if self.seen is None else kept(Seen, self.seen)

    @property
    def run_session_id(self) -> str | None:
        """The session that its runs are of."""
        return self.lane_id or self.session_id

    @property
    def is_spent(self) -> bool:
        """Whether no time of it comes or waits any more; one may be at work."""
        waits = (self.next_fire_ms, self.queued_fire_ms, self.trigger_ms, self.retry_slot_ms)
        return all(one is None for one in waits)

    @property
    def place(self) -> ChatAddress:
        """Where it speaks."""
        return ChatAddress(
            channel=self.channel,
            account=self.account,
            chat_id=self.chat,
            chat_kind=self.chat_kind,
            thread_id=self.thread,
        )


def add(conn: Connection, schedule: Schedule) -> None:
    """Keep a new one."""
    conn.execute(insert(schedules).values(asdict(schedule)))


def due_in(conn: Connection, now: int) -> Sequence[str]:
    """The conversations of the first `AT_ONCE` reminders that are due."""
    found = conn.execute(_DUE_IN, {"moment": now}).scalars()
    return list(dict.fromkeys(one for one in found if one is not None))


def take_due(conn: Connection, now: int, sessions: Collection[str]) -> Sequence[Schedule]:
    """The first `AT_ONCE` that are due, of these conversations or of none, locked; those that
    another unit holds are left to it."""
    found = (_read(row) for row in conn.execute(lock_rows(_DUE), {"moment": now}))
    return [one for one in found if one.session_id is None or one.session_id in sessions]


def left_ms(conn: Connection) -> int | None:
    """The milliseconds until the first one is due, 0 or less where it is; None: there is none."""
    first = _FIRST.first(conn)
    found = () if first is None else [one for one in first if one is not None]
    return min(found) - now_ms(conn) if found else None


def due_requests(conn: Connection) -> Sequence[str]:
    """The first `AT_ONCE` that ask the model and are due."""
    return list(conn.execute(_DUE_REQUESTS, {"moment": now_ms(conn)}).scalars())


def find(conn: Connection, schedule_id: str) -> Schedule | None:
    """One as it is, which another unit may change meanwhile."""
    row = conn.execute(select(schedules).where(schedules.c.id == schedule_id)).first()
    return None if row is None else _read(row)


def locked(conn: Connection, schedule_id: str) -> Schedule | None:
    """One as it is now, which no other unit changes before this one ends."""
    query = select(schedules).where(schedules.c.id == schedule_id)
    row = conn.execute(lock_rows(query, skip_locked=False)).first()
    return None if row is None else _read(row)


def open_in(conn: Connection, place: ChatAddress, session_id: str) -> Sequence[Schedule]:
    """Those of a chat that are not over, the next first; also those of the session that is of it
    alone, where it has one."""
    column = schedules.c
    rows = conn.execute(
        select(schedules)
        .where(_of_chat(place, session_id), column.status.in_(_OPEN))
        .order_by(column.next_fire_ms.is_(None), column.next_fire_ms, column.id)
    )
    return [_read(row) for row in rows]


def named_in(
    conn: Connection, place: ChatAddress, session_id: str, code: str
) -> Sequence[Schedule]:
    """Those of a chat with this code, over or not."""
    named = schedules.c.id.endswith(code, autoescape=True)
    query = select(schedules).where(_of_chat(place, session_id), named).order_by(schedules.c.id)
    return [_read(row) for row in conn.execute(query)]


def _of_chat(place: ChatAddress, session_id: str) -> ColumnElement[bool]:
    column = schedules.c
    there = and_(
        column.channel == place.channel,
        column.account == place.account,
        column.chat == place.chat_id,
    )
    return or_(there, column.session_id == session_id)


def open_of(conn: Connection, person_id: str, most: int) -> Sequence[Schedule]:
    """The first of a person's that are not over, the next to come first."""
    column = schedules.c
    rows = conn.execute(
        select(schedules)
        .where(column.owner_person_id == person_id, column.status.in_(_OPEN))
        .order_by(column.next_fire_ms.is_(None), column.next_fire_ms, column.id)
        .limit(most)
    )
    return [_read(row) for row in rows]


def count_open(conn: Connection, person_id: str) -> int:
    """How many of a person's are not over."""
    mine = (schedules.c.owner_person_id == person_id) & schedules.c.status.in_(_OPEN)
    return conn.execute(select(func.count()).select_from(schedules).where(mine)).scalar_one()


def change(conn: Connection, schedule: Schedule, *, now: int, **values: object) -> None:
    """Change one that this unit holds."""
    after = {"trigger_ms": schedule.trigger_ms, "retry_after_ms": schedule.retry_after_ms, **values}
    wakes = [one for one in (after["trigger_ms"], after["retry_after_ms"]) if isinstance(one, int)]
    same = (schedules.c.id == schedule.id) & (schedules.c.revision == schedule.revision)
    conn.execute(
        update(schedules)
        .where(same)
        .values(
            revision=schedule.revision + 1,
            updated_ms=now,
            wake_ms=min(wakes, default=None),
            **values,
        )
    )


@dataclass(frozen=True, slots=True)
class Moved:
    """A schedule that fired, or passed over its time, and how it goes on."""

    schedule: Schedule
    status: ScheduleStatus
    next_fire_ms: int | None
    execution_count: int
    last_fire_ms: int | None


def move_on(conn: Connection, moved: Sequence[Moved], *, now: int) -> None:
    """Change those that this unit holds as `change` does; a time that was asked for by hand is over
    then."""
    _MOVE_ON.each(
        conn,
        [
            {
                "the_schedule": one.schedule.id,
                "of_revision": one.schedule.revision,
                "at_ms": now,
                "new_wake_ms": one.schedule.retry_after_ms,
                "new_status": one.status,
                "new_next_ms": one.next_fire_ms,
                "new_count": one.execution_count,
                "new_last_ms": one.last_fire_ms,
            }
            for one in moved
        ],
    )


def add_lane(conn: Connection, session_id: str, schedule_id: str) -> None:
    """Keep whose lane a session is."""
    conn.execute(insert(schedule_lanes).values(session_id=session_id, schedule_id=schedule_id))


def lanes_left(conn: Connection) -> Sequence[str]:
    """The sessions whose schedules were deleted with their conversations."""
    left = text("schedule_lanes.schedule_id IS NULL")
    query = select(schedule_lanes.c.session_id).where(left).limit(AT_ONCE)
    return list(conn.execute(query).scalars())


def conversation_of(conn: Connection, lane_id: str) -> str | None:
    """The conversation that a lane's schedule was asked for in."""
    query = select(schedules.c.session_id).where(
        schedules.c.id
        == select(schedule_lanes.c.schedule_id)
        .where(schedule_lanes.c.session_id == lane_id)
        .scalar_subquery()
    )
    return conn.execute(query).scalar()


def forget_lane(conn: Connection, session_id: str) -> None:
    """Know no more of a lane that was erased."""
    conn.execute(delete(schedule_lanes).where(schedule_lanes.c.session_id == session_id))


def last_words(conn: Connection, run: Run) -> str:
    """What a run said last; empty where it said nothing."""
    query = (
        select(messages.c.payload)
        .where(
            messages.c.session_id == run.session_id,
            messages.c.run_id == run.id,
            messages.c.role == "assistant",
        )
        .order_by(messages.c.seq.desc())
        .limit(1)
    )
    payload = conn.execute(query).scalar()
    found = None if payload is None else kept_message(payload)
    return found.text.strip() if isinstance(found, AssistantMessage) else ""


def to_prepare(conn: Connection) -> Sequence[str]:
    """The first `AT_ONCE` schedules for which something is to be got ready."""
    there = text("schedules.prepare_ms IS NOT NULL")
    query = select(schedules.c.id).where(there).order_by(schedules.c.prepare_ms).limit(AT_ONCE)
    return list(conn.execute(query).scalars())


def of_card(conn: Connection, card_id: str) -> str | None:
    """The schedule whose gate a card asks about."""
    return conn.execute(select(schedules.c.id).where(schedules.c.gate_card == card_id)).scalar()


def of_code(conn: Connection, code: str) -> Sequence[str]:
    """The cards of gates that wait for an answer and end with these characters."""
    card, waits = schedules.c.gate_card, schedules.c.gate_state == WAITING
    found = conn.execute(select(card).where(card.endswith(code, autoescape=True), waits))
    return [one for one in found.scalars() if one is not None]


def with_open_cards(conn: Connection, channel: str, account: str, most: int) -> Sequence[Schedule]:
    """Those of an account whose gates wait for an answer, the newest card first."""
    column = schedules.c
    here = (column.channel == channel, column.account == account)
    waits = column.gate_state == WAITING
    query = select(schedules).where(*here, waits, column.status.in_(_OPEN))
    found = conn.execute(query.order_by(column.gate_card.desc()).limit(most))
    return [_read(row) for row in found]


def last_message(conn: Connection, session_id: str) -> int:
    """The number of a session's last message; 0 where there is none."""
    newest = select(func.max(messages.c.seq)).where(messages.c.session_id == session_id)
    return conn.execute(newest).scalar() or 0


def said_between(
    conn: Connection, schedule: Schedule, session_id: str, numbers: tuple[int, int], *, most: int
) -> tuple[Sequence[TranscriptMessage], int]:
    """The newest that people and the agent said in a session behind the first of two messages and
    up to the second, the oldest first, and how many more there are; without the runs of the
    schedule itself."""
    after, last = numbers
    own = (schedule_fires.c.schedule_id == schedule.id, schedule_fires.c.run_id.is_not(None))
    mine = select(schedule_fires.c.run_id).where(*own)
    undone = runs.c.undone_ms.is_not(None)
    taken_back = select(runs.c.id).where(runs.c.session_id == session_id, undone)
    there = and_(
        messages.c.session_id == session_id,
        messages.c.seq > after,
        messages.c.seq <= last,
        messages.c.role.in_(("user", "assistant")),
        or_(
            messages.c.run_id.is_(None),
            and_(messages.c.run_id.not_in(mine), messages.c.run_id.not_in(taken_back)),
        ),
    )
    total = conn.execute(select(func.count()).select_from(messages).where(there)).scalar_one()
    newest = select(messages.c.payload).where(there).order_by(messages.c.seq.desc()).limit(most)
    found = [kept_message(one) for one in conn.execute(newest).scalars()]
    return found[::-1], total - len(found)


def speakers_in(conn: Connection, session_id: str, *, most: int) -> Sequence[Speaker]:
    """Who wrote the newest inputs of a session."""
    query = (
        select(inputs.c.speaker)
        .where(inputs.c.session_id == session_id, inputs.c.origin == "person")
        .order_by(inputs.c.seq.desc())
        .limit(most)
    )
    return [kept(Speaker, one) for one in conn.execute(query).scalars()]


def waiting_runs(conn: Connection, session_id: str, *, most: int) -> int:
    """How many runs wait in a lane, counted up to `most`."""
    query = select(runs.c.id).where(runs.c.session_id == session_id, runs.c.state == "queued")
    return len(conn.execute(query.limit(most)).all())


@dataclass(frozen=True, slots=True)
class Which:
    """Which schedules a list shows: those made in a session or with their runs in it, in a state,
    and with a gate whose approval stands so."""

    session_id: str | None = None
    status: ScheduleStatus | None = None
    gate_status: GateStatus | None = None

    def conditions(self) -> Sequence[ColumnElement[bool]]:
        column = schedules.c
        found: list[ColumnElement[bool]] = []
        if self.session_id is not None:
            mine = (column.session_id == self.session_id, column.lane_id == self.session_id)
            found.append(or_(*mine))
        if self.status is not None:
            found.append(column.status == self.status)
        if self.gate_status is not None:
            found.append(column.gate_state.in_(GATE_STATES[self.gate_status]))
            if self.gate_status == "waiting_for_approval":
                # Those that are over wait for nobody.
                found.append(column.status.in_(_OPEN))
        return found


def page(conn: Connection, which: Which, *, limit: int, before: str | None) -> Sequence[Schedule]:
    """Schedules, the newest first; `before` is the id of the last one seen."""
    query = select(schedules).where(*which.conditions())
    if before is not None:
        query = query.where(schedules.c.id < before)
    rows = conn.execute(query.order_by(schedules.c.id.desc()).limit(limit))
    return [_read(row) for row in rows]


def count(conn: Connection, which: Which) -> int:
    """How many there are."""
    query = select(func.count()).select_from(schedules).where(*which.conditions())
    return conn.execute(query).scalar_one()


def standing(conn: Connection) -> Mapping[str, int]:
    """How many there are that are active, due at this moment, paused, and whose last execution
    failed or could not be dispatched. A paused one may have failed too."""
    column, active = schedules.c, schedules.c.status == ACTIVE
    failed = or_(column.consecutive_failures > 0, column.last_scheduler_error.is_not(None))
    states = {
        "active": active,
        "due": and_(
            active, or_(column.next_fire_ms <= now_ms(conn), column.wake_ms <= now_ms(conn))
        ),
        "paused": column.status == PAUSED,
        "failed": failed,
    }
    counts = (func.count(case((state, 1))).label(name) for name, state in states.items())
    query = select(*counts).where(column.status.in_(_OPEN))
    return dict(conn.execute(query).one()._mapping)


def zone_of(conn: Connection, person_id: str) -> str | None:
    """The name of a person's time zone; None where they never said it."""
    mine = person_zones.c.person_id == person_id
    return conn.execute(select(person_zones.c.zone).where(mine)).scalar()


def set_zone(conn: Connection, person_id: str, zone: str) -> None:
    """Keep a person's time zone."""
    values = {"person_id": person_id, "zone": zone, "updated_ms": now_ms(conn)}
    keep = upsert(conn, person_zones, key=("person_id",), change=("zone", "updated_ms"))
    conn.execute(keep.values(values))


def _read(row: Row[tuple[object, ...]]) -> Schedule:
    return Schedule(**row._mapping)


def _due(now: ColumnElement[int]) -> ColumnElement[bool]:
    due = (
        exists().where(_ACTIVE, _KNOWN, schedules.c.next_fire_ms <= now).select_from(schedules),
        exists().where(_ACTIVE, _KNOWN, schedules.c.wake_ms <= now).select_from(schedules),
        exists()
        .where(STILL_DISPATCHED, runs.c.state.in_(_over_literals()))
        .select_from(schedule_fires.join(runs, runs.c.id == schedule_fires.c.run_id)),
        exists().where(text("schedule_lanes.schedule_id IS NULL")).select_from(schedule_lanes),
        exists().where(text("schedules.prepare_ms IS NOT NULL")).select_from(schedules),
    )
    return or_(*due)


def _over_literals() -> Sequence[ColumnElement[str]]:
    # Written out: the one statement of all looks takes no parameters of a feature.
    return [literal_column(f"'{state}'", Text()) for state in OVER]


SCHEDULES_DUE: Final = DueCheck("schedules", _due)
