"""Plain reminders: what is said at a time, word for word, in the place where it was asked (SCH-9).

Firing is one unit: it notes the time, puts the words into the outbox and moves on to the next time.
It asks no model and waits for no run; it holds the lanes of the conversations for its moment, to
tell of it in their events. What was missed while nothing ran is said once (SCH-3).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from pydantic import TypeAdapter

from runtime.domain.counts import counted
from runtime.domain.errors import InvalidInput, NotFound
from runtime.domain.events import EventKind
from runtime.domain.ids import IdPrefix, code_of, new_id
from runtime.domain.messages import Button, ChatAddress, OutboundMessage, TextPart
from runtime.domain.people import Sender, Speaker, Trust
from runtime.domain.printable import person_name
from runtime.domain.value import JsonObject
from runtime.engine.feature import Admitted
from runtime.features.schedules import fires, rows
from runtime.features.schedules.cadence import cadence_in
from runtime.features.schedules.changes import paused, record
from runtime.features.schedules.fires import UNDELIVERED, Fire
from runtime.features.schedules.missed_times import Later, due_times, missed_after
from runtime.features.schedules.model import CoalesceOnce, Misfire, SkipMissed
from runtime.features.schedules.rows import ACTIVE, COMPLETED, PAUSED, Moved, Schedule
from runtime.features.schedules.times_in_words import told
from runtime.ports.bus import OUTBOX
from runtime.sessions import outbox, sessions
from runtime.sessions.keys import session_key
from runtime.sessions.lanes import Lane
from runtime.sessions.outbox import UNSETTLED, NewRow
from runtime.sessions.sessions import Session
from runtime.sessions.unit import Unit
from runtime.store import Connection
from runtime.store.database import now_ms

MOST_OPEN: Final = 100
"""Schedules of one person that are not over."""
LATE_MS: Final = 60_000
"""Behind its time by more, a reminder says when it was due."""


class Snooze(NamedTuple):
    """After how long a reminder that came may come again: as people write it, and in seconds."""

    words: str
    seconds: int


SNOOZES: Final[Mapping[str, Snooze]] = {
    "snooze": Snooze("10 min", 600),
    "snoozelong": Snooze("1 h", 3600),
}
NOT_LET_IN: Final = "its owner is no longer let in here"
STILL_ON_ITS_WAY: Final = "what it said before is still on its way"
DEAD: Final = "dead"
_SYSTEM: Final = "system"
_MISFIRE: Final[TypeAdapter[CoalesceOnce | SkipMissed]] = TypeAdapter(Misfire)
_NAME: Final = re.compile(r"(?<!\w)@(?=\w)")
_MARKS: Final = re.compile(
    r"[\\`*_\[\]<>|~&!$#]|^[-+=](?=\s|[-=]|\Z)|(?<=\d)[.)](?=\s|\Z)", re.MULTILINE
)
_INDENT: Final = re.compile(r"^ +", re.MULTILINE)
_HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff\U000e0000-\U000e0fff]"
)
"""Controls, changes of direction and tags. Joiners stay: emoji and several scripts need them."""


def plain(text: str) -> str:
    """Words of a person as Markdown that shows them as they are and calls nobody."""
    bare = _NAME.sub("@\N{WORD JOINER}", _HIDDEN.sub("", text))
    # A backslash before a bracket would begin a formula.
    return _MARKS.sub(lambda mark: f"&#{ord(mark[0])};", _INDENT.sub("", bare))


def is_of_one_chat(session: Session) -> bool:
    """Whether a session is of the chat of its address alone, so that both move together (TEL-6)."""
    chat = session.address.model_copy(update={"thread_id": None})
    key = session_key(chat, Sender(id=""), scope="room")
    return session.key == key or session.key.startswith(f"{key}:")


def followed(conn: Connection, schedule: Schedule) -> Schedule:
    """The same, in the chat that its own became."""
    if schedule.chat_kind == "direct" or schedule.session_id is None:
        return schedule
    return _in_chat_of(schedule, sessions.get(conn, schedule.session_id))


def _in_chat_of(schedule: Schedule, session: Session) -> Schedule:
    moved = is_of_one_chat(session) and session.address.chat_id != schedule.chat
    return replace(schedule, chat=session.address.chat_id) if moved else schedule


@dataclass(frozen=True, slots=True)
class Fired:
    """How many a unit dealt with, and why it paused some, by their ids."""

    total: int
    paused: Mapping[str, str]


def fire(unit: Unit, admitted: Admitted) -> Fired:
    """Deal with the first of those that are due."""
    conn = unit.conn
    now = now_ms(conn)
    try:
        # Lanes come before schedules, in every unit.
        held = {lane.session_id for lane in unit.lanes(rows.due_in(conn, now))}
    except NotFound:
        # One was deleted at this moment, and its reminders with it: the next look finds the others.
        return Fired(1, {})
    due = rows.take_due(conn, now, held)
    if not due:
        return Fired(0, {})
    firing = _Firing(unit, _known(conn, due, admitted, now), now)
    for schedule in due:
        firing.one(schedule)
    firing.save()
    return Fired(len(due), firing.paused)


@dataclass(frozen=True, slots=True)
class Owners:
    """Who the owners of schedules are now, each looked up once in a unit."""

    conn: Connection
    admitted: Admitted
    _known: dict[tuple[ChatAddress, str], Speaker | None] = field(default_factory=dict)

    def of(self, schedule: Schedule) -> Speaker | None:
        """Who may still ask for it: guests may not."""
        user_id = schedule.owner_user_id
        if user_id is None:
            return None
        key = (schedule.place, user_id)
        if key not in self._known:
            self._look_up([key])
        owner = self._known[key]
        return owner if owner and owner.trust in (Trust.OWNER, Trust.MEMBER) else None

    def look_up(self, schedules: Sequence[Schedule]) -> None:
        """Look up those of several at once. Raises `ValueError` where one cannot be read."""
        asked = [(one.place, one.owner_user_id) for one in schedules]
        self._look_up([(place, user_id) for place, user_id in dict.fromkeys(asked) if user_id])

    def _look_up(self, asked: Sequence[tuple[ChatAddress, str]]) -> None:
        if asked:
            found = self.admitted(self.conn, asked)
            self._known.update(zip(asked, found, strict=True))


@dataclass(frozen=True, slots=True)
class _Known:
    """What a unit knows of those that it deals with, read for all of them at once. `schedules` are
    by their ids, each in the chat that its own became; `deliveries` is what became of their last
    words, `slots` the times that were settled before."""

    owners: Owners
    schedules: Mapping[str, Schedule]
    deliveries: Mapping[str, str | None]
    slots: set[tuple[str, int]]


def _known(conn: Connection, due: Sequence[Schedule], admitted: Admitted, now: int) -> _Known:
    owners = Owners(conn, admitted)
    moved: dict[str, Schedule] = {}
    try:
        moved = _followed(conn, due)
        owners.look_up(list(moved.values()))
    except (InvalidInput, ValueError):
        # One cannot be read. Each is read by itself then, which pauses that one alone.
        pass
    # One that never fired has said nothing; an earlier version only counted.
    spoke = [one.id for one in due if one.execution_count > 0 or one.last_fire_ms is not None]
    deliveries = fires.last_deliveries(conn, spoke) if spoke else {}
    return _Known(owners, moved, deliveries, fires.known_slots(conn, [one.id for one in due], now))


def _followed(conn: Connection, due: Sequence[Schedule]) -> dict[str, Schedule]:
    wanted = {one.session_id for one in due if one.chat_kind != "direct" and one.session_id}
    found = sessions.get_all(conn, wanted) if wanted else {}
    moved = {}
    for schedule in due:
        if schedule.chat_kind == "direct" or schedule.session_id is None:
            moved[schedule.id] = schedule
        elif schedule.session_id in found:
            session = found[schedule.session_id]
            moved[schedule.id] = _in_chat_of(schedule, session)
    return moved


@dataclass(frozen=True, slots=True)
class _Firing:
    """One unit's work. One that cannot be read is paused, so that it delays no other. What it
    writes is collected, and saved for all of them at once."""

    unit: Unit
    known: _Known
    now: int
    paused: dict[str, str] = field(default_factory=dict)
    _fires: list[Fire] = field(default_factory=list)
    _messages: list[NewRow] = field(default_factory=list)
    _moved: list[Moved] = field(default_factory=list)

    def save(self) -> None:
        conn = self.unit.conn
        fires.add_fires(conn, self._fires)
        outbox.add_all(conn, self._messages, now=self.now)
        rows.move_on(conn, self._moved, now=self.now)

    def one(self, schedule: Schedule) -> None:
        conn, now = self.unit.conn, self.now
        slot_ms = schedule.next_fire_ms
        due_ms = slot_ms if slot_ms is not None and slot_ms <= now else None
        at_ms = now if due_ms is None else due_ms
        last = self.known.deliveries.get(schedule.id)
        if last == DEAD:
            # Nobody hears it, and each further one would end in the same way.
            self._pause(schedule, at_ms, UNDELIVERED)
            return
        try:
            schedule = self.known.schedules.get(schedule.id) or followed(conn, schedule)
            owner = self.known.owners.of(schedule)
            cadence = cadence_in(schedule.cadence)
            misfire = misfire_of(schedule)
        except (InvalidInput, ValueError) as error:
            self._pause(schedule, at_ms, str(error))
            return
        if owner is None:
            self._pause(schedule, at_ms, NOT_LET_IN)
            return
        said = _Said(schedule, owner, last in UNSETTLED)
        if schedule.trigger_ms is not None:
            self._say(said, self._free_slot(schedule), Later(0, now))
        coming = slot_ms
        if due_ms is not None:
            due = due_times(cadence, misfire, due_ms, now, schedule.anchor_ms)
            coming = due.coming
            later = Later(0, due_ms)
            if isinstance(misfire, CoalesceOnce):
                later = missed_after(cadence, due_ms, now, schedule.anchor_ms)
            for slot in due.fire:
                self._say(said, slot, later)
            for skipped in due.skipped:
                self._skip(schedule, skipped.slot_ms, skipped.reason)
        over = coming is None or said.executions == schedule.max_executions
        self._moved.append(
            Moved(
                schedule,
                status=COMPLETED if over else ACTIVE,
                next_fire_ms=None if over else coming,
                execution_count=said.executions,
                last_fire_ms=said.last_ms,
            )
        )

    def _free_slot(self, schedule: Schedule) -> int:
        slot_ms = self.now
        while (schedule.id, slot_ms) in self.known.slots:
            slot_ms += 1
        return slot_ms

    def _add_fire(self, fire: Fire) -> bool:
        """Note what became of a time; False where that was noted before."""
        slot = (fire.schedule_id, fire.slot_ms)
        if slot in self.known.slots:
            return False
        self.known.slots.add(slot)
        self._fires.append(fire)
        return True

    def _say(self, said: "_Said", slot_ms: int, later: Later) -> None:
        schedule = said.schedule
        if said.executions == schedule.max_executions:
            return
        if said.busy and schedule.overlap != "parallel":
            # One at a time: a platform that is slow or away is not to get a heap of old ones.
            self._skip(schedule, slot_ms, STILL_ON_ITS_WAY)
        elif self._deliver(schedule, slot_ms, _words(said, slot_ms, later, self.now)):
            said.busy, said.last_ms = True, slot_ms
            said.executions += 1

    def _skip(self, schedule: Schedule, slot_ms: int, reason: str) -> None:
        skipped = Fire(schedule.id, slot_ms, self.now, "skipped", reason)
        if self._add_fire(skipped):
            self._tell(EventKind.SCHEDULE_SKIPPED, schedule, slot_ms, {"reason": reason})

    def _tell(self, kind: EventKind, schedule: Schedule, slot_ms: int, more: JsonObject) -> None:
        if schedule.session_id is not None:
            lane = self.unit.lane(schedule.session_id)
            lane.record(kind, None, {"schedule_id": schedule.id, "fire_at_ms": slot_ms, **more})
            self.unit.changed(lane.session_id)

    def _deliver(self, schedule: Schedule, slot_ms: int, words: str) -> bool:
        """Put the words into the outbox; False where that was done for this time before."""
        outbox_id = new_id(IdPrefix.OUTBOX, self.now)
        fired = Fire(schedule.id, slot_ms, self.now, outbox_id=outbox_id)
        if not self._add_fire(fired):
            return False
        message = OutboundMessage(
            outbox_id=outbox_id,
            target=schedule.place,
            parts=(TextPart(markdown=words, buttons=_snooze_buttons(schedule)),),
            session_id=schedule.session_id,
        )
        self._messages.append(NewRow(kind="notice", message=message))
        self.unit.say(OUTBOX, {"channel": schedule.channel, "account": schedule.account})
        self._tell(EventKind.SCHEDULE_FIRED, schedule, slot_ms, {"outbox_id": outbox_id})
        return True

    def _pause(self, schedule: Schedule, slot_ms: int, reason: str) -> None:
        self._skip(schedule, slot_ms, reason)
        pause_for(self.unit, schedule, 0, reason)
        self.paused[schedule.id] = reason


@dataclass(slots=True)
class _Said:
    """What a unit says of one schedule; it counts as it goes on. `busy`: what it said before is
    still on its way."""

    schedule: Schedule
    owner: Speaker
    busy: bool
    executions: int = field(init=False)
    last_ms: int | None = field(init=False)

    def __post_init__(self) -> None:
        self.executions = self.schedule.execution_count
        self.last_ms = self.schedule.last_fire_ms


def pause_for(
    unit: Unit, schedule: Schedule, left_ms: int | None, reason: str, lane: Lane | None = None
) -> None:
    """Pause one because of a `reason`, which the operator finds in the audit log."""
    changed = {**paused(left_ms, reason), "trigger_ms": None}
    rows.change(unit.conn, schedule, now=now_ms(unit.conn), **changed)
    record(unit, schedule, PAUSED, by=_SYSTEM, reason=reason, lane=lane)


def misfire_of(schedule: Schedule) -> CoalesceOnce | SkipMissed:
    """Its policy for missed times. Raises `ValueError` for one that cannot be read."""
    return _MISFIRE.validate_json(schedule.misfire)


def free_slot(conn: Connection, schedule: Schedule, now: int) -> int:
    """A time of which nothing is known yet, from now on."""
    while fires.fire_at(conn, schedule.id, now) is not None:
        now += 1
    return now


def _snooze_buttons(schedule: Schedule) -> tuple[Button, ...]:
    return tuple(
        Button(
            label=f"Snooze {one.words}",
            command=f"/schedules snooze {code_of(schedule.id)} {one.words}",
            about=schedule.id,
            choice=choice,
        )
        for choice, one in SNOOZES.items()
    )


def _words(said: _Said, first: int, later: Later, now: int) -> str:
    schedule, zone = said.schedule, said.schedule.timezone
    whose = ""
    if schedule.chat_kind != "direct":
        whose = f" from {plain(person_name(said.owner.name))}"
    lines = [f"Reminder{whose}: {plain(schedule.deliver_text or '')}"]
    if now - first > LATE_MS:
        lines.append(f"It was due on {told(first, zone)}.")
    if later.more:
        lines.append(f"It was due at least {later.total:,} times more; I say it once.")
    elif later.total:
        more = counted(later.total, "time")
        lines.append(f"It was due {more} more, last on {told(later.last_ms, zone)}; I say it once.")
    return "\n\n".join(lines)
