"""The approval of a gate: who is asked by which card, and what an answer allows (SCH-9).

An approval is given to one action: the command, its folder and the files that it runs, by digest.
A gate that is edited, or whose files change, needs another one. No gate runs without.
"""

from dataclasses import dataclass
from typing import Final

from runtime.domain.actions import Action
from runtime.domain.errors import Conflict
from runtime.domain.ids import IdPrefix, code_of, new_id
from runtime.domain.messages import ApprovalPart, ChatAddress, OutboundMessage, TextPart
from runtime.domain.people import Approvers, Speaker, Trust
from runtime.domain.printable import code_block, one_line, printable, quoted
from runtime.domain.value import Value
from runtime.features.schedules import rows
from runtime.features.schedules.cadence import Cron, Interval, cadence_in, next_fires_ms
from runtime.features.schedules.changes import held_if_any, record
from runtime.features.schedules.conditions import (
    APPROVED,
    DENIED,
    GATE_STATES,
    NEW,
    WAITING,
    Conditions,
)
from runtime.features.schedules.model import Gate, GateDecision, GateStatus, GateView
from runtime.features.schedules.reminders import plain
from runtime.features.schedules.rows import ACTIVE, PAUSED, Schedule
from runtime.features.schedules.times_in_words import told
from runtime.intake.access import LOCAL
from runtime.ports.bus import OUTBOX
from runtime.sessions import outbox, people
from runtime.sessions.outbox import NewRow
from runtime.sessions.unit import CardAnswer, CardKind, Unit
from runtime.store import Connection
from runtime.store.database import now_ms
from runtime.store.payloads import kept

PREFIX: Final = "gate_"
ONLY_APPROVERS: Final = "Only an approver may answer that."
UNKNOWN: Final = "I do not know this card."
OVER: Final = "This was answered already."
_CHOICES: Final = ("approve", "deny")
_SHOWN_TIMES: Final = 3


class Asked(Value):
    """What a card asked about: the digest of the action, and what it said of the command; and what
    was answered, empty while the card is open."""

    digest: str
    command: str
    reason: str
    outcome: str = ""


def asked_of(schedule: Schedule, action: Action, gate: Gate, *, now: int) -> Asked:
    """What a card says of a gate: the exact command, where and when it runs, and what for."""
    place = schedule.place
    lines = [
        f"The gate of the schedule {quoted(schedule.name, 100)} runs by itself at each time "
        "and decides whether I am asked.",
        action.circumstances,
        f"It may take {gate.timeout_s:g} seconds.",
        f"What comes of it goes to {place.channel} {one_line(place.chat_id, 100)}.",
        _times(schedule, now),
    ]
    if not action.known:
        lines.append("It is not known which files it runs, so a change of these is not noticed.")
    return Asked(
        digest=action.digest(),
        command=gate.command,
        reason=" ".join(line for line in lines if line),
    )


def _times(schedule: Schedule, now: int) -> str:
    cadence = cadence_in(schedule.cadence)
    often = ""
    if isinstance(cadence, Interval):
        often = f"It runs every {cadence.every_seconds:,} seconds. "
    elif isinstance(cadence, Cron):
        often = f"It runs by the cron expression {cadence.expression} ({cadence.timezone}). "
    coming = next_fires_ms(cadence, now, schedule.anchor_ms, most=_SHOWN_TIMES)
    times = "; ".join(told(one, schedule.timezone) for one in coming)
    return f"{often}Next: {times}." if times else often.strip()


@dataclass(frozen=True, slots=True)
class Asking:
    """Who is asked: the owner of the schedule where they may approve, else an owner of the
    gateway."""

    owner: Speaker
    approvers: Approvers


def ask(unit: Unit, schedule: Schedule, asked: Asked, by: Asking) -> dict[str, object]:
    """Post the card of a gate; what the schedule keeps of that. An earlier card that is open still
    says that it was replaced."""
    before = None if schedule.gate_asked is None else kept(Asked, schedule.gate_asked)
    if before is not None and not before.outcome:
        _close(unit, schedule, "Replaced: the gate is another one now")
    now = now_ms(unit.conn)
    card_id = f"{PREFIX}{new_id(IdPrefix.APPROVAL, now).partition('_')[2]}"
    part = card_of(asked, card_id)
    chat = _chat(unit.conn, schedule, by)
    if chat.channel in LOCAL:
        _tell(unit, chat, schedule, part)
    else:
        _post(unit, chat, part, "card")
    record(unit, schedule, "gate_asked", by="system")
    return {
        "gate_state": WAITING,
        "gate_card": card_id,
        "gate_asked": asked.model_dump_json(),
        "gate_digest": None,
    }


def card_of(asked: Asked, card_id: str, outcome: str = "") -> ApprovalPart:
    """The card of a gate, as it looks now."""
    return ApprovalPart(
        open_call_id=card_id,
        code=code_of(card_id),
        tool="schedule gate",
        arguments=printable(asked.command),
        reason=asked.reason,
        choices=_CHOICES,
        outcome=outcome,
    )


def _chat(conn: Connection, schedule: Schedule, by: Asking) -> ChatAddress:
    place = schedule.place
    if by.approvers.include(by.owner):
        return place
    for account in people.with_trust(conn, Trust.OWNER):
        chat = account.direct_chat
        if chat is not None and (chat.channel, chat.account) == (place.channel, place.account):
            return chat
    return place


def _tell(unit: Unit, chat: ChatAddress, schedule: Schedule, part: ApprovalPart) -> None:
    """Ask in words where cards are those of a run's calls alone: on the page and in the
    terminal."""
    text = (
        f"May this command run?\n\n{code_block(part.arguments)}\n\n{plain(part.reason)}\n\n"
        f"`/approve {part.code}` approves it, `/deny {part.code}` denies it."
    )
    message = OutboundMessage(
        outbox_id=new_id(IdPrefix.OUTBOX, now_ms(unit.conn)),
        target=chat,
        parts=(TextPart(markdown=text, names_commands=True),),
        session_id=schedule.session_id,
    )
    outbox.add(unit.conn, NewRow(kind="notice", message=message))
    unit.say(OUTBOX, {"channel": chat.channel, "account": chat.account})
    if schedule.session_id is not None:
        unit.changed(schedule.session_id)


def _post(unit: Unit, chat: ChatAddress, part: ApprovalPart, kind: str) -> None:
    message = OutboundMessage(
        outbox_id=new_id(IdPrefix.OUTBOX, now_ms(unit.conn)), target=chat, parts=(part,)
    )
    outbox.add(unit.conn, NewRow(kind=kind, message=message, open_call_id=part.open_call_id))
    unit.say(OUTBOX, {"channel": chat.channel, "account": chat.account})


def _close(unit: Unit, schedule: Schedule, outcome: str) -> None:
    card_id = schedule.gate_card
    shown = None if card_id is None else outbox.card_of(unit.conn, card_id)
    if shown is None or card_id is None or schedule.gate_asked is None:
        return
    asked = kept(Asked, schedule.gate_asked)
    _post(unit, shown.message.target, card_of(asked, card_id, outcome), "edit")


def answer(
    unit: Unit, card_id: str, choice: str, speaker: Speaker, approvers: Approvers
) -> CardAnswer:
    """Settle the card of a gate, if this person may."""
    schedule_id = rows.of_card(unit.conn, card_id)
    schedule = None if schedule_id is None else held_if_any(unit, schedule_id)
    if schedule is None or choice not in _CHOICES:
        return CardAnswer(False, UNKNOWN)
    if not approvers.include(speaker):
        record(unit, schedule, "gate_refused", by=speaker.person_id)
        return CardAnswer(False, ONLY_APPROVERS)
    fits = (schedule.gate_card, schedule.gate_state) == (card_id, WAITING)
    if not fits or schedule.status not in (ACTIVE, PAUSED):
        return CardAnswer(False, OVER)
    allowed = choice == "approve"
    outcome = _settle(unit, schedule, allowed=allowed, by=speaker.person_id, name=speaker.name)
    return CardAnswer(True, f"{outcome}.")


def decide(unit: Unit, schedule: Schedule, given: GateDecision, *, by: str) -> None:
    """Approve or deny by the API what was shown under a digest. An answer may be changed. Raises
    `Conflict`."""
    if schedule.gate_state is None:
        raise Conflict("the schedule has no gate", schedule.status)
    if schedule.status not in (ACTIVE, PAUSED):
        raise Conflict(f"the schedule is {schedule.status}", schedule.status)
    if schedule.gate_state == NEW or schedule.gate_asked is None:
        raise Conflict("nobody was asked about this gate yet", "waiting_for_approval")
    status = status_of(schedule)
    if kept(Asked, schedule.gate_asked).digest != given.digest:
        raise Conflict("the digest is of another gate than the one that waits", status)
    if given.request_id not in (None, schedule.gate_card):
        raise Conflict("the request_id is of an earlier card than the one that waits", status)
    _settle(unit, schedule, allowed=given.behavior == "allow", by=by, name="the owner")


def _settle(unit: Unit, schedule: Schedule, *, allowed: bool, by: str, name: str) -> str:
    asked = kept(Asked, schedule.gate_asked or "")
    outcome = f"{'Approved' if allowed else 'Denied'} by {name}"
    values: dict[str, object] = {
        "gate_state": APPROVED if allowed else DENIED,
        "gate_digest": asked.digest if allowed else None,
        "gate_asked": asked.model_copy(update={"outcome": outcome}).model_dump_json(),
    }
    rows.change(unit.conn, schedule, now=now_ms(unit.conn), **values)
    what = "gate_approved" if allowed else "gate_denied"
    record(unit, schedule, what, by=by, reason=asked.digest)
    _close(unit, schedule, outcome)
    return outcome


def status_of(schedule: Schedule) -> GateStatus:
    """How the approval of a gate stands, as the API says it."""
    state = schedule.gate_state or NEW
    return next(status for status, states in GATE_STATES.items() if state in states)


def view_of(schedule: Schedule, terms: Conditions) -> GateView | None:
    """The gate of a schedule, as the API shows it."""
    gate = terms.gate
    if gate is None:
        return None
    fresh = schedule.gate_state == NEW or schedule.gate_asked is None
    asked = None if fresh else kept(Asked, schedule.gate_asked or "")
    return GateView.model_validate(
        {
            **gate.model_dump(),
            "status": status_of(schedule),
            "digest": None if asked is None else asked.digest,
            "request_id": None if asked is None else schedule.gate_card,
            "shown": None if asked is None else asked.reason,
        }
    )


def waiting(conn: Connection, channel: str, account: str, most: int) -> list[ApprovalPart]:
    """The open cards of an account's gates, the newest first."""
    found = rows.with_open_cards(conn, channel, account, most)
    return [card_of(kept(Asked, one.gate_asked or ""), one.gate_card or "") for one in found]


CARDS: Final = CardKind(prefix=PREFIX, answer=answer, named=rows.of_code, waiting=waiting)
