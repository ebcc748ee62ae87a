"""The times of schedules and what became of them. Statements only."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final, Literal

from sqlalchemy import (
    ColumnElement,
    Connection,
    and_,
    case,
    func,
    insert,
    or_,
    select,
    text,
    update,
)

from runtime.domain.runs import TERMINAL
from runtime.features.schedules.tables import schedule_fires, schedules
from runtime.sessions.tables import outbox, runs
from runtime.store.statements import hot, insert_new

AT_ONCE: Final = 100
"""Times that are settled at once."""
CLAIMED: Final = "claimed"
DISPATCHED: Final = "dispatched"
RETRYING: Final = "retrying"
FIRED: Final = "fired"
SKIPPED: Final = "skipped"
ROLLED_BACK: Final = "rolled_back"
SETTLED: Final = "settled"
_AT_WORK: Final = (DISPATCHED, RETRYING)
UNDELIVERED: Final = "what it said last could not be delivered"
"""The reason of a skipped time: nobody would hear the words."""
OVER: Final = tuple(state.value for state in TERMINAL)
# The very words of the partial index: SQLite uses it for nothing else.
STILL_DISPATCHED: Final = text("schedule_fires.status = 'dispatched'")

_ADD: Final = hot(insert(schedule_fires))

FireStatus = Literal[
    "claimed", "dispatched", "retrying", "fired", "skipped", "rolled_back", "settled"
]


@dataclass(frozen=True, slots=True)
class Fire:
    """What became of one time of a schedule. `reason` says why it was skipped, or what went wrong;
    a plain reminder is `fired` where a run would be dispatched and settled."""

    schedule_id: str
    slot_ms: int
    fired_ms: int
    status: FireStatus = FIRED
    reason: str = ""
    outbox_id: str | None = None
    run_id: str | None = None
    attempt: int = 0
    from_queued: bool = False
    claimed_ms: int | None = None
    dispatched_ms: int | None = None
    settled_ms: int | None = None
    spoke: bool | None = None


@dataclass(frozen=True, slots=True)
class Shown:
    """A fire, with how its run and the delivery of its words stand now."""

    fire: Fire
    run_state: str | None
    delivery: str | None


def add_fire(conn: Connection, fire: Fire) -> bool:
    """Note what became of a time; False where that was noted before."""
    return insert_new(conn, schedule_fires, asdict(fire))


def add_fires(conn: Connection, new: Sequence[Fire]) -> None:
    """Note what became of times of which nothing is known, in a unit that holds their schedules.
    One that was noted after all ends the unit."""
    _ADD.each(conn, [asdict(one) for one in new])


def known_slots(conn: Connection, schedule_ids: Sequence[str], now: int) -> set[tuple[str, int]]:
    """The times of schedules of which something is known, from the next of each on, or from `now`
    on where that is earlier."""
    due = schedules.c.next_fire_ms
    query = (
        select(schedule_fires.c.schedule_id, schedule_fires.c.slot_ms)
        .join(schedules, schedules.c.id == schedule_fires.c.schedule_id)
        .where(
            schedules.c.id.in_(schedule_ids),
            schedule_fires.c.slot_ms >= case((due < now, due), else_=now),
        )
    )
    return {(row.schedule_id, row.slot_ms) for row in conn.execute(query)}


def fire_at(conn: Connection, schedule_id: str, slot_ms: int) -> Fire | None:
    """What is known of one time of a schedule."""
    row = conn.execute(select(schedule_fires).where(_slot(schedule_id, slot_ms))).first()
    return None if row is None else Fire(**row._mapping)


def change_fire(conn: Connection, schedule_id: str, slot_ms: int, **values: object) -> None:
    """Change what is known of one time, in a unit that holds the schedule."""
    conn.execute(update(schedule_fires).where(_slot(schedule_id, slot_ms)).values(**values))


def at_work(conn: Connection, schedule_id: str) -> Sequence[Fire]:
    """The times of a schedule that are not over, the earliest first, also one that is being
    checked; without one that waits."""
    checked = select(schedules.c.retry_slot_ms).where(schedules.c.id == schedule_id)
    is_checked = schedule_fires.c.slot_ms == checked.scalar_subquery()
    open_now = or_(schedule_fires.c.status.in_(_AT_WORK), is_checked)
    query = (
        select(schedule_fires)
        .where(schedule_fires.c.schedule_id == schedule_id, open_now)
        .order_by(schedule_fires.c.slot_ms)
    )
    return [Fire(**row._mapping) for row in conn.execute(query)]


def finished(conn: Connection) -> Sequence[Fire]:
    """Times that were dispatched and whose runs are over, the earliest dispatch first."""
    query = (
        select(schedule_fires)
        .join(runs, runs.c.id == schedule_fires.c.run_id)
        .where(STILL_DISPATCHED, runs.c.state.in_(OVER))
        .order_by(schedule_fires.c.dispatched_ms, schedule_fires.c.schedule_id)
        .limit(AT_ONCE)
    )
    return [Fire(**row._mapping) for row in conn.execute(query)]


def sessions_at_work(conn: Connection) -> frozenset[str]:
    """The sessions in which a run of a schedule is not over, or is not settled yet."""
    query = select(runs.c.session_id).join(schedule_fires, schedule_fires.c.run_id == runs.c.id)
    return frozenset(conn.execute(query.where(STILL_DISPATCHED)).scalars())


def recent(conn: Connection, schedule_id: str, *, most: int) -> Sequence[Shown]:
    """The last times of a schedule, the newest first."""
    said = select(outbox.c.state).where(outbox.c.id == schedule_fires.c.outbox_id)
    # The very words of the partial index, as above.
    final = text("outbox.kind = 'final'")
    replied = select(outbox.c.state).where(outbox.c.run_id == schedule_fires.c.run_id, final)
    query = (
        select(
            schedule_fires,
            runs.c.state.label("run_state"),
            func.coalesce(said.scalar_subquery(), replied.scalar_subquery()).label("delivery"),
        )
        .select_from(schedule_fires.outerjoin(runs, runs.c.id == schedule_fires.c.run_id))
        .where(schedule_fires.c.schedule_id == schedule_id)
        .order_by(schedule_fires.c.slot_ms.desc())
        .limit(most)
    )
    found = []
    for row in conn.execute(query):
        values = dict(row._mapping)
        run_state, delivery = values.pop("run_state"), values.pop("delivery")
        found.append(Shown(Fire(**values), run_state, delivery))
    return found


def last_deliveries(conn: Connection, schedule_ids: Sequence[str]) -> Mapping[str, str | None]:
    """What became of the words of the time that fired last, as the outbox says, by the ids of
    schedules; None where it knows of none, or where it was `UNDELIVERED` for that and went on
    since."""
    mine = schedule_fires.c.schedule_id == schedules.c.id
    mine &= schedule_fires.c.outbox_id.is_not(None) | (schedule_fires.c.reason == UNDELIVERED)
    last = (
        select(outbox.c.state)
        .select_from(schedule_fires.outerjoin(outbox, outbox.c.id == schedule_fires.c.outbox_id))
        .where(mine)
        .order_by(schedule_fires.c.slot_ms.desc())
        .limit(1)
        .correlate(schedules)
        .scalar_subquery()
    )
    query = select(schedules.c.id, last.label("state")).where(schedules.c.id.in_(schedule_ids))
    return {row.id: row.state for row in conn.execute(query)}


def _slot(schedule_id: str, slot_ms: int) -> ColumnElement[bool]:
    return and_(schedule_fires.c.schedule_id == schedule_id, schedule_fires.c.slot_ms == slot_ms)
