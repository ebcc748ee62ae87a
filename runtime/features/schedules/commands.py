"""The words ``/remind``, ``/schedules`` and ``/timezone``: people have themselves reminded (SCH-8).

They run in the unit that accepts the message, so that one that comes twice is obeyed once.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final

from runtime.commands.table import Call, Command
from runtime.domain.errors import InvalidInput
from runtime.domain.ids import CODE_LENGTH, code_of
from runtime.domain.people import Speaker, Trust
from runtime.domain.printable import code_name, one_line
from runtime.domain.tools import TO_THE_PERSON
from runtime.features.schedules import changes, rows
from runtime.features.schedules.buttons import (
    BUTTONS,
    MOVES,
    NOT_YOURS,
    OVER,
    PAUSED_NOW,
    PREVIEW,
    By,
    buttons_of,
    preview,
    snooze,
)
from runtime.features.schedules.cadence import Once, any_case, next_fires_ms, zone_named
from runtime.features.schedules.changes import Making, Owner
from runtime.features.schedules.descriptions import belongs_to, described, rule_of, where
from runtime.features.schedules.model import (
    ScheduleChange,
    ScheduleCreateRequest,
    ScheduledRequest,
)
from runtime.features.schedules.reminders import MOST_OPEN, SNOOZES, is_of_one_chat, plain
from runtime.features.schedules.rows import ACTIVE, PAUSED, Schedule
from runtime.features.schedules.times_in_words import ONCE, Asked, Read, read, told
from runtime.sessions import people
from runtime.store import Connection

USUAL: Final = "UTC"
"""Whose times are told to a person who never said their zone."""
LEAST_S: Final = 300
"""Between two reminders that are asked for in a chat: a hundred of a person are then as many as a
group of Telegram takes."""
MOST_LISTED: Final = 40
_FAR: Final = "Asia/Kathmandu"
"""A zone that shares no wall clock time with `USUAL`."""
MOST_WITH_BUTTONS: Final = 10
"""Of those that are listed: the next to come."""
USAGE: Final = (
    "Say when and what: `/remind in 10 minutes to call Bob`, `/remind tomorrow at 9: stand-up`, "
    "`/remind every weekday at 9: post the numbers`. `/schedules` lists what I will remind you of."
)
HOW_TO_CHANGE: Final = (
    "`/schedules cancel CODE` ends one, `/schedules pause CODE` stops it for a while, and "
    "`/schedules resume CODE` lets it go on. `show`, `trigger` and `change CODE WHEN` work too."
)
USAGE_OF_SCHEDULES: Final = f"`/schedules` lists what is to come. {HOW_TO_CHANGE}"
NOT_YET: Final = "It has not come yet. A reminder can be snoozed once it came."
ZONE_FIRST: Final = (
    "I do not know your time zone, and this depends on it. Tell me once, for example "
    "`/timezone Europe/Berlin`, and then ask me again."
)
ZONE_LATER: Final = "I do not know your time zone: `/timezone Europe/Berlin`, for example, sets it."
TAINTED: Final = (
    f"tell the person, {TO_THE_PERSON}This conversation contains text from outside, so I may not "
    "make or change schedules here. Write `/remind WHEN: TEXT` or `/schedules change CODE WHEN: "
    "TEXT` yourself, or begin anew with `/new`."
)
UNKNOWN_ZONE: Final = "I know no time zone {}. Write an area and a city: `/timezone Europe/Berlin`."


def _remind(call: Call) -> str:
    if not call.rest:
        return USAGE
    now, person_id = call.lane.now_ms, call.speaker.person_id
    known = zone_for(call.unit.conn, call.speaker)
    # Who said "in 10 minutes" and was heard late meant those behind their words.
    found = understood(call.rest, now if call.said_ms is None else call.said_ms, known)
    if found is None:
        return ZONE_FIRST
    if isinstance(found, Asked):
        return plain(found.sentence)
    cadence, zone = found.cadence, known or USUAL
    coming = next_fires_ms(cadence, now, now)
    if not coming:
        return "That time is over by now."
    if rows.count_open(call.unit.conn, person_id) >= MOST_OPEN:
        return f"You have {MOST_OPEN} reminders already, in all chats together. {HOW_TO_CHANGE}"
    place = call.place
    asked = ScheduleCreateRequest(
        name=one_line(found.text, PREVIEW),
        target_session_id=call.session.id,
        owner_person_id=person_id,
        timezone=zone,
        deliver_text=found.text,
        cadence=cadence,
    )
    owner = Owner(person_id, call.speaker.user_id)
    making = Making(owner, place, by=person_id, own_lane=True, worded_by_model=False)
    schedule = changes.make(call.unit, asked, making)
    if isinstance(cadence, Once):
        when = f" on {told(coming[0], zone)}: {preview(schedule)}"
    else:
        times = "\n".join(f"- {told(one, zone)}" for one in coming)
        when = f": {preview(schedule)}\n\nThe next times are:\n\n{times}\n"
    lines = [f"I will remind you {where(place)}{when}"]
    lines.append(f"`/schedules cancel {code_of(schedule.id)}` takes it back.")
    return "\n".join([*lines, *([] if known else [ZONE_LATER])])


def zone_for(conn: Connection, speaker: Speaker) -> str | None:
    """The zone that somebody said, else the one of their profile or browser; None without both."""
    said = rows.zone_of(conn, speaker.person_id)
    if said is not None or not speaker.timezone:
        return said
    try:
        return zone_named(speaker.timezone).key
    except InvalidInput:
        return None


def understood(
    words: str, now_ms: int, zone: str | None, *, text_needed: bool = True
) -> Read | Asked | None:
    """What was asked for, or what to ask back; None where it depends on a zone that is not
    known."""
    reads = partial(read, words, now_ms, least_s=LEAST_S, text_needed=text_needed)
    found = reads(zone or USUAL)
    return None if zone is None and found != reads(_FAR) else found


def _schedules(call: Call) -> str:
    words = call.rest.split(maxsplit=2)
    if not words or call.rest.strip().lower() == "list":
        return _listed(call)
    verb = words[0].lower()
    if verb not in _VERBS:
        return f"I do not know {code_name(verb, 20)} here. {USAGE_OF_SCHEDULES}"
    if len(words) < 2:
        return USAGE_OF_SCHEDULES
    code = words[1].strip("`").lower()
    named = _named(call, code, snoozes=verb == "snooze")
    if named is None:
        return f"There is no reminder {code_name(code, 20)} here. `/schedules` lists them."
    if verb == "show":
        return _shown(call, named)
    if not _mine(call, named) and call.speaker.trust is not Trust.OWNER:
        return NOT_YOURS
    # It may have fired since it was read.
    held = rows.locked(call.unit.conn, named.id)
    rest = words[2] if len(words) > 2 else ""
    return OVER if held is None else _done(call, held, verb, rest)


def _done(call: Call, held: Schedule, verb: str, rest: str) -> str:
    """What came of a word that changes one."""
    if verb == "snooze" and held.last_fire_ms is not None:
        return _snoozed(call, held, rest)
    if held.status not in (ACTIVE, PAUSED):
        return OVER
    if verb == "snooze":
        return NOT_YET
    if verb == "change":
        return _change(call, held, rest)
    said = MOVES[verb](call.unit, held, By(call.speaker.person_id, call.lane))
    resume = f"`/schedules resume {code_of(held.id)}` lets it go on."
    return f"{said} {resume}" if said == PAUSED_NOW else said


def _shown(call: Call, schedule: Schedule) -> str:
    lines = described(schedule, call.place, asks="asks", written=_written).split("\n")
    # A list of lines, with the times as a list in it.
    return "\n".join(f"  {line}" if line.startswith("- ") else f"- {line}" for line in lines)


def _written(text: str) -> str:
    return plain(one_line(text, PREVIEW))


def _open(call: Call) -> Sequence[Schedule]:
    own = call.session.id if is_of_one_chat(call.session) else ""
    return rows.open_in(call.unit.conn, call.place, own)


def _named(call: Call, code: str, *, snoozes: bool) -> Schedule | None:
    """The one with this code, over or not. Where several have it, the one that the word fits: one
    that came for a snooze, one that is not over for any other."""
    own = call.session.id if is_of_one_chat(call.session) else ""
    if len(code) != CODE_LENGTH:
        return None
    named = rows.named_in(call.unit.conn, call.place, own, code)
    fitting = [
        one
        for one in named
        if (one.last_fire_ms is not None if snoozes else one.status in (ACTIVE, PAUSED))
    ]
    found = fitting or named
    return found[0] if len(found) == 1 else None


def _mine(call: Call, schedule: Schedule) -> bool:
    return belongs_to(call.speaker, schedule)


def _listed(call: Call) -> str:
    here = _open(call)
    if not here:
        return "Nothing is scheduled here. `/remind` says how to have yourself reminded."
    lines = [_line(call, one) for one in here[:MOST_LISTED]]
    for one in here[:MOST_WITH_BUTTONS]:
        call.buttons.extend(buttons_of(one))
    if len(here) > MOST_LISTED:
        lines.append(f"- and {len(here) - MOST_LISTED:,} more")
    return "\n".join([*lines, "", HOW_TO_CHANGE])


def _line(call: Call, schedule: Schedule) -> str:
    when = "paused"
    if schedule.next_fire_ms is not None:
        when = told(schedule.next_fire_ms, schedule.timezone)
    elif schedule.last_error is not None:
        when = f"paused, because {plain(schedule.last_error)}"
    often = rule_of(schedule)
    if often and often != ONCE:
        when = f"{when}, {plain(often)}"
    whose = ""
    if not _mine(call, schedule):
        account = people.find(
            call.unit.conn,
            channel=schedule.channel,
            account=schedule.account,
            user_id=schedule.owner_user_id or "",
        )
        whose = f", of {plain(account.speaker.name) if account else 'somebody else'}"
    return f"- `{code_of(schedule.id)}` {when}{whose}: {preview(schedule)}"


def _change(call: Call, schedule: Schedule, words: str) -> str:
    if not words:
        return "Say the other time: `/schedules change CODE every day at 10`."
    known = zone_for(call.unit.conn, call.speaker)
    found = understood(words, call.lane.now_ms, known, text_needed=False)
    if found is None:
        return ZONE_FIRST
    if isinstance(found, Asked):
        return plain(found.sentence)
    asked: dict[str, object] = {"cadence": found.cadence, "timezone": known or USUAL}
    if found.text:
        if schedule.asks is None:
            asked["deliver_text"] = found.text
        else:
            asked["request"] = ScheduledRequest(content=found.text)
    change = ScheduleChange.model_validate(asked)
    try:
        by = call.speaker.person_id
        changes.revise(call.unit, schedule, change, by=by, by_model=False, lane=call.lane)
    except InvalidInput as error:
        return f"It cannot be changed so: {plain(str(error))}."
    return _shown(call, rows.find(call.unit.conn, schedule.id) or schedule)


def _snoozed(call: Call, schedule: Schedule, words: str) -> str:
    wanted = " ".join(words.lower().split())
    for one in SNOOZES.values():
        if wanted in ("", one.words):
            return snooze(call.unit, schedule, call.speaker, one.seconds, said_in=call.lane).text
    known = " or ".join(f"`{one.words}`" for one in SNOOZES.values())
    return f"I snooze by {known}, for example `/schedules snooze {code_of(schedule.id)} 10 min`."


_VERBS: Final = (*MOVES, "change", "show", "snooze")


def _timezone(call: Call) -> str:
    conn, person_id = call.unit.conn, call.speaker.person_id
    if not call.rest:
        known = zone_for(conn, call.speaker)
        if known is None:
            return ZONE_LATER
        by = "" if rows.zone_of(conn, person_id) else ", as your profile or your browser says"
        return f"Your time zone is {known}{by}."
    try:
        zone = any_case(call.rest.strip()).key
    except InvalidInput:
        return UNKNOWN_ZONE.format(plain(one_line(call.rest, 64)))
    rows.set_zone(conn, person_id, zone)
    now = told(call.lane.now_ms, zone)
    return f"It is {now} for you. Reminders that you asked for before keep their times."


REMIND: Final = Command("remind", "`WHEN to WHAT` reminds you here", _remind)
SCHEDULES: Final = Command(
    "schedules",
    "lists reminders; `cancel`, `pause`, `resume CODE` change one",
    _schedules,
    buttons=BUTTONS,
)
TIMEZONE: Final = Command("timezone", "`ZONE` says where your clocks are", _timezone)
