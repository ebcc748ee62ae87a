"""What a person does with one schedule by a word or a button, each in the unit that hears of it.

A button carries the id of the schedule and a choice. Whoever presses it does it by their own right:
it must be theirs, or they an owner of the gateway.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from runtime.commands.table import Buttons
from runtime.domain.errors import Conflict, InvalidInput, NotFound
from runtime.domain.ids import IdPrefix, code_of
from runtime.domain.messages import Button, ButtonPress
from runtime.domain.people import Speaker, Trust
from runtime.domain.printable import one_line
from runtime.domain.request_keys import RequestKey
from runtime.features.schedules import changes, rows
from runtime.features.schedules.cadence import Once
from runtime.features.schedules.changes import Making, Owner
from runtime.features.schedules.descriptions import belongs_to, words_of
from runtime.features.schedules.model import ScheduleCreateRequest
from runtime.features.schedules.reminders import MOST_OPEN, SNOOZES, followed, plain
from runtime.features.schedules.rows import ACTIVE, PAUSED, Schedule
from runtime.features.schedules.times_in_words import told
from runtime.ports.gatehouse import HomeItem, Pressed
from runtime.sessions import idempotency
from runtime.sessions.lanes import Lane
from runtime.sessions.unit import Unit
from runtime.store import Connection
from runtime.store.database import now_ms

PREVIEW: Final = 100
NOT_YOURS: Final = "Only who asked for it may change it, or an owner."
PAUSED_NOW: Final = "Paused."
OVER: Final = "It is over already."
UNKNOWN: Final = "I do not know this schedule any more."
HEADING: Final = "Reminders and schedules"
MOST_ON_HOME: Final = 10


@dataclass(frozen=True, slots=True)
class By:
    """Who does it, and the lane that they said it in, where they said it in one."""

    person_id: str
    lane: Lane | None = None


def preview(schedule: Schedule) -> str:
    """Its words in one line, as Markdown that shows them as they are."""
    return plain(one_line(schedule.deliver_text or schedule.name, PREVIEW))


def cancel(unit: Unit, schedule: Schedule, by: By) -> str:
    """End it."""
    changes.cancel(unit, schedule, by=by.person_id, lane=by.lane)
    return f"Cancelled: {preview(schedule)}"


def pause(unit: Unit, schedule: Schedule, by: By) -> str:
    """Stop it for a while."""
    if schedule.status == PAUSED:
        return "It is paused already."
    changes.pause(unit, schedule, by=by.person_id, lane=by.lane)
    return PAUSED_NOW


def resume(unit: Unit, schedule: Schedule, by: By) -> str:
    """Let it go on."""
    if schedule.status == ACTIVE:
        return "It is not paused."
    try:
        coming = changes.resume(unit, schedule, by=by.person_id, lane=by.lane)
    except InvalidInput as error:
        return f"It cannot go on: {plain(str(error))}."
    if coming is None:
        return "No further time of it comes, so it is over."
    return f"It goes on: next on {told(coming, schedule.timezone)}."


def trigger(unit: Unit, schedule: Schedule, by: By) -> str:
    """Let it come now."""
    if schedule.status == PAUSED:
        return "It is paused: let it go on first."
    changes.trigger(unit, schedule, by=by.person_id, lane=by.lane)
    return f"It comes now, beside its own times: {preview(schedule)}"


MOVES: Final[dict[str, Callable[[Unit, Schedule, By], str]]] = {
    "cancel": cancel,
    "pause": pause,
    "resume": resume,
    "trigger": trigger,
}
_PRESSED: Final = ("cancel", "pause", "resume")


def buttons_of(schedule: Schedule) -> tuple[Button, ...]:
    """What one that is not over may be told by a button, with its code, because several are below
    one text."""
    code = code_of(schedule.id)
    held = schedule.status == PAUSED
    verb, label = ("resume", "Resume") if held else ("pause", "Pause")
    return (
        _button(f"{label} {code}", schedule, verb),
        _button(f"Cancel {code}", schedule, "cancel"),
    )


def _button(label: str, schedule: Schedule, choice: str) -> Button:
    command = f"/schedules {choice} {code_of(schedule.id)}"
    return Button(label=label, command=command, about=schedule.id, choice=choice)


def _press(unit: Unit, speaker: Speaker, press: ButtonPress, _found: object) -> Pressed:
    try:
        held = changes.held(unit, press.open_call_id)
    except NotFound:
        return Pressed(accepted=False, text=UNKNOWN)
    if not belongs_to(speaker, held) and speaker.trust is not Trust.OWNER:
        return Pressed(accepted=False, text=NOT_YOURS)
    if press.choice in SNOOZES:
        return snooze(unit, held, speaker, SNOOZES[press.choice].seconds)
    if press.choice not in _PRESSED:
        return Pressed(accepted=False, text="There is no such button.")
    if held.status not in (ACTIVE, PAUSED):
        return Pressed(accepted=False, text=OVER)
    return Pressed(accepted=True, text=MOVES[press.choice](unit, held, By(speaker.person_id)))


def snooze(
    unit: Unit, schedule: Schedule, speaker: Speaker, seconds: int, *, said_in: Lane | None = None
) -> Pressed:
    """Let a reminder that came come once more, for whom it was. A command holds no lane but the one
    that it was `said_in`, so the new reminder belongs to that conversation."""
    conn, user_id = unit.conn, schedule.owner_user_id
    session_id = schedule.session_id if said_in is None else said_in.session_id
    if session_id is None or user_id is None or schedule.deliver_text is None:
        return Pressed(accepted=False, text=UNKNOWN)
    if rows.count_open(conn, schedule.owner_person_id) >= MOST_OPEN:
        text = f"There are {MOST_OPEN} reminders already, in all chats together."
        return Pressed(accepted=False, text=text)
    once = RequestKey(f"snooze:{schedule.id}:{schedule.last_fire_ms}", "", kept_ms=None)
    if not idempotency.first_time(conn, once.name):
        return Pressed(accepted=False, text="It was snoozed already.")
    due_ms = now_ms(conn) + seconds * 1000
    asked = ScheduleCreateRequest(
        name=schedule.name or one_line(words_of(schedule), PREVIEW),
        target_session_id=session_id,
        owner_person_id=schedule.owner_person_id,
        timezone=schedule.timezone,
        deliver_text=schedule.deliver_text,
        cadence=Once(fire_at_ms=due_ms),
    )
    making = Making(
        owner=Owner(schedule.owner_person_id, user_id),
        place=followed(conn, schedule).place,
        by=speaker.person_id,
        own_lane=True,
        worded_by_model=schedule.worded_by_model,
    )
    try:
        made = changes.make(unit, asked, making)
    except Conflict as error:
        idempotency.give_back(conn, once)
        return Pressed(accepted=False, text=f"It cannot come again: {error}.")
    when = f"It comes again on {told(due_ms, made.timezone)}, with the code {code_of(made.id)}"
    return Pressed(accepted=True, text=f"{when}: {preview(made)}")


def _home(conn: Connection, speaker: Speaker) -> Sequence[HomeItem]:
    """Those that the person asked for, wherever on this account."""
    mine = rows.open_of(conn, speaker.person_id, MOST_ON_HOME)
    here = (speaker.channel, speaker.account)
    return [
        HomeItem(heading=HEADING, text=_item(one), buttons=buttons_of(one))
        for one in mine
        if (one.channel, one.account) == here
    ]


def _item(schedule: Schedule) -> str:
    when = "paused"
    if schedule.next_fire_ms is not None:
        when = told(schedule.next_fire_ms, schedule.timezone)
    words = one_line(schedule.deliver_text or schedule.name, PREVIEW)
    return f"{code_of(schedule.id)} · {when}\n{words}"


BUTTONS: Final = Buttons(prefix=f"{IdPrefix.SCHEDULE.value}_", press=_press, home=_home)
