"""What people and models are told of one schedule: its times, its zone and its place. Pure."""

from collections.abc import Callable, Sequence
from typing import Final

from runtime.domain.errors import InvalidInput
from runtime.domain.ids import code_of
from runtime.domain.messages import ChatAddress
from runtime.domain.people import Speaker
from runtime.features.schedules import gates
from runtime.features.schedules.cadence import cadence_in, next_fires_ms
from runtime.features.schedules.kind import SPEAK
from runtime.features.schedules.rows import ACTIVE, Schedule
from runtime.features.schedules.times_in_words import rule, told

NEXT_SHOWN: Final = 3
"""Times that are told of a schedule."""


def coming(schedule: Schedule) -> Sequence[int]:
    """Its next times; only the first where its cadence cannot be read."""
    first = schedule.next_fire_ms
    if first is None:
        return ()
    try:
        cadence = cadence_in(schedule.cadence)
    except InvalidInput:
        return (first,)
    return (first, *next_fires_ms(cadence, first, schedule.anchor_ms, most=NEXT_SHOWN - 1))


def rule_of(schedule: Schedule) -> str:
    """How often it comes, in words; empty where its cadence cannot be read."""
    try:
        return rule(cadence_in(schedule.cadence), schedule.timezone)
    except InvalidInput:
        return ""


def where(place: ChatAddress) -> str:
    """A place as it is called in itself."""
    if place.chat_kind == "direct":
        return "in this chat"
    return f"in this {'thread' if place.thread_id else place.chat_kind}"


def belongs_to(speaker: Speaker, schedule: Schedule) -> bool:
    """Whether somebody asked for a schedule."""
    account = (schedule.channel, schedule.account, schedule.owner_user_id)
    # Whom the rules of a group let in may be a new person after a restart.
    return schedule.owner_person_id == speaker.person_id or account == speaker.platform_account


def words_of(schedule: Schedule) -> str:
    """What it says, or what it asks."""
    asked = schedule.asks
    return (schedule.deliver_text or "") if asked is None else asked.text


def _conditions(schedule: Schedule, written: Callable[[str], str]) -> Sequence[str]:
    """Under which conditions it asks."""
    terms = schedule.terms
    if terms is None:
        return ()
    lines = []
    if terms.gate is not None:
        status = gates.status_of(schedule).replace("_", " ")
        lines.append(f"only if its gate prints news ({status}): {written(terms.gate.command)}")
    if terms.watches is not None:
        lines.append(f"only if something changed under: {written(terms.watches)}")
    if terms.listens_to is not None:
        lines.append(f"only if something was said in: {written(terms.listens_to)}")
    if terms.heartbeat:
        lines.append(f"as a heartbeat: only what is given by {SPEAK} is heard")
    return lines


def described(
    schedule: Schedule, here: ChatAddress, *, asks: str, written: Callable[[str], str] = str
) -> str:
    """All of it as `here` is told; `written` turns what somebody wrote into what is shown."""
    there = schedule.place
    place = where(there) if there == here else f"in {there.channel} {written(there.chat_id)}"
    lines = [
        f"id: {schedule.id}, code: {code_of(schedule.id)}",
        f"name: {written(schedule.name)}",
        f"{'says' if schedule.asks is None else asks}: {written(words_of(schedule))}",
        *_conditions(schedule, written),
        f"status: {schedule.status}; place: {place}; zone: {schedule.timezone}",
    ]
    often = rule_of(schedule)
    if often:
        lines.append(f"times: {written(often)}")
    if schedule.last_error is not None:
        lines.append(f"last error: {written(schedule.last_error)}")
    times = coming(schedule) if schedule.status == ACTIVE else ()
    if times:
        lines.append("next times:")
        lines += [f"- {told(one, schedule.timezone)}" for one in times]
    return "\n".join(lines)
