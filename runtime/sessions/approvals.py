"""Parking: a run that waits for a person is a row, not a coroutine (APR-1, APR-6).

A step's calls that wait are opened in one unit, so that a crash leaves all of them open or none.
The card's answer fills its open call; when none of the run is left open, the same run is queued
again at the head of its lane. Answering makes no new run and needs no process to have survived.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final, Literal

from runtime.domain.decisions import Decision, Risk
from runtime.domain.errors import Conflict
from runtime.domain.events import EventKind
from runtime.domain.grants import Grant
from runtime.domain.ids import IdPrefix, code_of, new_id
from runtime.domain.messages import (
    ApprovalPart,
    ChatAddress,
    OutboundMessage,
    OutboundPart,
    QuestionPart,
)
from runtime.domain.people import Approvers, Trust
from runtime.domain.printable import printable
from runtime.domain.runs import Holder, RunState
from runtime.domain.value import JsonObject
from runtime.ports.bus import OUTBOX, RUNS
from runtime.sessions import (
    audit,
    calls,
    inputs,
    lanes,
    open_calls,
    outbox,
    people,
    runs,
    sessions,
    streams,
)
from runtime.sessions.calls import CallRow
from runtime.sessions.keys import OF_USER, place_of
from runtime.sessions.lanes import Lane
from runtime.sessions.open_calls import APPROVAL, FOR_PEOPLE, QUESTION, OpenCall
from runtime.sessions.outbox import NewRow
from runtime.sessions.run_close import end_as_asked
from runtime.sessions.runs import Run
from runtime.sessions.unit import Opening, Reach, Unit, WaitKind
from runtime.store import Connection
from runtime.store.payloads import kept

Choice = Literal["once", "session", "deny"]
DAY_MS: Final = 24 * 3600 * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class CardOpening(Opening):
    """A call that a person must answer: an approval or a question. `grant` is what "for this
    session" adds; None where the card does not offer it. `risk` is what an approval's card says of
    it. The card goes where one of the `approvers` is."""

    reason: str = ""
    decision: Decision | None = None
    question: str = ""
    options: tuple[str, ...] = ()
    grant: Grant | None = None
    risk: Risk | None = None
    approvers: Approvers = field(default_factory=Approvers)
    expires_in_ms: int = DAY_MS


@dataclass(frozen=True, slots=True)
class Parked:
    """`waits` is False where nothing is left to wait for: then `rows` are the step's as they are
    now."""

    waits: bool
    rows: Sequence[CallRow] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """What a person said: `choice` of an approval, `text` of a question; who they are."""

    by: str
    name: str
    choice: Choice | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Answered:
    """The open call as it was settled."""

    call: OpenCall
    outcome: str


def park(
    unit: Unit, holder: Holder, run_id: str, openings: Sequence[Opening], *, window_from: int
) -> Parked:
    """Open what a step waits for, and let the run wait where anything is open.

    A run that somebody asked to end opens nothing: it ends here. Raises `StaleLease`.
    """
    conn, waits = unit.conn, unit.kinds.waits
    lane, run = unit.owned(run_id, holder)
    if run.cancel is not None:
        end_as_asked(unit, lane, run, run.cancel)
        lane.active_run = None
        lanes.settle(conn, lane)
        return Parked(waits=True)
    _lock_above(unit, lane, {waits[one.kind].reach for one in openings})
    for opening in sorted(openings, key=lambda one: waits[one.kind].rank):
        waits[opening.kind].open(unit, lane, run, opening)
    opened = open_calls.of_run(conn, run_id, state="open")
    if opened:
        _rest(unit, lane, run, opened, window_from=window_from)
    unit.say(OUTBOX, {"channel": run.target.channel})
    return Parked(bool(opened), () if opened else calls.of_step(conn, run_id, run.step))


def _lock_above(unit: Unit, lane: Lane, reach: set[Reach]) -> None:
    """Lock the lanes that an opening takes above the run's own, in their order."""
    if "parent" in reach and lane.parent_id is not None:
        unit.lane(lane.parent_id)
    if "root" in reach and lane.parent_id is not None:
        unit.lane(lane.root_id)


def _rest(
    unit: Unit, lane: Lane, run: Run, opened: Sequence[OpenCall], *, window_from: int
) -> None:
    """Let a run of a locked lane wait for its open calls; it holds no worker."""
    kind = unit.kind(lane)
    if kind.speaks:
        streams.rest(unit.conn, run)
    state = min((unit.kinds.waits[call.kind] for call in opened), key=lambda one: one.rank).state
    runs.move(unit.conn, run, state, {"worker": None, "fence": None})
    if run.transcript == lane.transcript:
        lane.window_from = window_from
    lane.record(EventKind.RUN_WAITING, run.id, {"state": state.value})
    kind.parked(unit, lane)


def _ask(unit: Unit, lane: Lane, run: Run, opening: Opening) -> None:
    """Open a call that a person must answer, and show its card where one of the approvers is."""
    if not isinstance(opening, CardOpening):
        raise TypeError(f"a card is opened by a CardOpening, not by {type(opening).__name__}")
    conn, wait = unit.conn, opening
    # A card that stands in another session's chat says who asks by it (APR-7).
    by = unit.kind(lane).asked_by(conn, run.session_id)
    asker = "" if by is None else by.words
    payload: JsonObject = {
        "tool": wait.row.call.name,
        "arguments": wait.row.call.arguments,
        "reason": f"{asker}. {wait.reason}" if asker else wait.reason,
        "question": f"{asker}: {wait.question}" if asker and wait.question else wait.question,
        "path": "" if by is None else by.path,
        "options": list(wait.options),
        "grant": wait.grant.model_dump(mode="json") if wait.grant else None,
        "choices": ["once", "session", "deny"] if wait.grant else ["once", "deny"],
        "risk": wait.risk.model_dump(mode="json") if wait.risk else None,
    }
    call = open_calls.begin(conn, lane, wait.row, wait.kind, payload, lasts_ms=wait.expires_in_ms)
    elsewhere = _owner_chat(conn, lane, run, wait.approvers) if wait.kind == APPROVAL else None
    card = OutboundMessage(
        outbox_id=new_id(IdPrefix.OUTBOX, lane.now_ms),
        target=elsewhere or run.target,
        reply_to=None if elsewhere else run.reply_to,
        parts=(card_part(call),),
        run_id=run.id,
        session_id=run.session_id,
    )
    outbox.add(conn, NewRow(kind="card", message=card, open_call_id=call.id))
    kind = EventKind.APPROVAL_REQUESTED if wait.kind == APPROVAL else EventKind.QUESTION_ASKED
    lane.record(kind, run.id, {"request_id": call.id, **payload})


def _owner_chat(conn: Connection, lane: Lane, run: Run, approvers: Approvers) -> ChatAddress | None:
    """The owner's direct chat, where a card goes if nobody in the chat of the run may answer it
    (APR-2). None where somebody there may, or where no owner's direct chat is known."""
    if approvers.include(run.speaker) or _speaks_there(conn, lane, run, approvers):
        return None
    for account in people.with_trust(conn, Trust.OWNER):
        chat = account.direct_chat
        same = chat is not None and (chat.channel, chat.account) == (
            run.target.channel,
            run.target.account,
        )
        if same:
            return chat
    return None


def _speaks_there(conn: Connection, lane: Lane, run: Run, approvers: Approvers) -> bool:
    """Whether an approver takes part in a conversation of several people.

    A thread with a session of its own is a conversation of its own: who only wrote beside it would
    not be told of a card in it.
    """
    if run.target.chat_kind == "direct":
        return False
    place = place_of(sessions.get(conn, lane.root_id).key)
    spoke = inputs.speakers(conn, place, below=f"{place}{OF_USER}", chat_id=run.target.chat_id)
    return any(approvers.include(speaker) for speaker in spoke)


def risk_kept(call: OpenCall) -> Risk | None:
    """How risky an open call was judged to be; None for one that nobody judged."""
    found = call.payload.get("risk")
    return None if found is None else Risk.model_validate(found)


def card_part(call: OpenCall, outcome: str = "") -> OutboundPart:
    """The card of an open call, as it looks now."""
    payload = call.payload
    if call.kind == APPROVAL:
        choices = payload.get("choices")
        return ApprovalPart(
            open_call_id=call.id,
            code=code_of(call.id),
            tool=printable(str(payload["tool"])),
            arguments=printable(str(payload["arguments"])),
            reason=str(payload["reason"]),
            choices=tuple(str(one) for one in choices) if isinstance(choices, list) else (),
            risk=risk_kept(call),
            outcome=outcome,
        )
    options = payload.get("options")
    return QuestionPart(
        open_call_id=call.id,
        code=code_of(call.id),
        question=str(payload["question"]),
        options=tuple(str(one) for one in options) if isinstance(options, list) else (),
        outcome=outcome,
    )


def answer(unit: Unit, call: OpenCall, given: Answer) -> Answered:
    """Settle an open call by a person's answer. Raises `Conflict` with the present state.

    Who may answer was decided by the caller; what may be chosen is what the card offered (APR-3).
    """
    conn, lane = unit.conn, unit.lane(call.session_id)
    offered = call.payload.get("choices")
    if call.kind not in FOR_PEOPLE:
        raise Conflict("this waits for agents, not for a person", call.state)
    if call.kind == APPROVAL and not (isinstance(offered, list) and given.choice in offered):
        raise Conflict(f"the card offers no choice {given.choice!r}", call.state)
    data: JsonObject = {"choice": given.choice, "text": given.text, "name": given.name}
    if not open_calls.settle(conn, call, state="answered", answer=data, by=given.by):
        now = open_calls.get(conn, call.id)
        state = now.state if now else "gone"
        raise Conflict(f"this was {state} already", state)
    row = open_calls.row_of(conn, call)
    if call.kind == QUESTION:
        text = _option(call, given.text)
        # An option is the model's own text, whoever chose it.
        _end_call(conn, lane, row, "ok", text, outside=text == given.text)
        outcome = f"{given.name} answered: {text}"
    elif given.choice == "deny":
        reason = f" Their reason: {given.text}" if given.text else ""
        _end_call(conn, lane, row, "denied", f"A person denied this call.{reason}")
        outcome = f"Denied by {given.name}" + (f": {given.text}" if given.text else "")
    elif not _as_shown(call, row):
        outcome = "Not run: the call is not the one that was shown"
        _end_call(conn, lane, row, "denied", f"{outcome}.")
    else:
        calls.set_state(conn, row, "approved")
        outcome = f"Allowed by {given.name}"
        grant = call.payload.get("grant")
        if given.choice == "session" and isinstance(grant, dict):
            session = sessions.get(conn, call.session_id)
            sessions.grant(conn, session, kept(Grant, json.dumps(grant)))
            outcome += " for this session"
    return _settled(unit, lane, call, outcome, by=given.by, data=data)


_DIGITS: Final = 9
"""Of the number of an option. Python refuses to read a number of thousands."""


def _option(call: OpenCall, text: str) -> str:
    """The option that a number names, where the card listed options; else the text itself."""
    options, number = call.payload.get("options"), text.strip()
    if isinstance(options, list) and number.isdecimal() and len(number) <= _DIGITS:
        place = int(number)
        if 1 <= place <= len(options):
            return str(options[place - 1])
    return text


def _as_shown(call: OpenCall, row: CallRow) -> bool:
    """Whether what would run is what the card showed (APR-3)."""
    shown = (call.digest, call.payload.get("tool"), call.payload.get("arguments"))
    return shown == (row.digest, row.call.name, row.call.arguments)


def expire(unit: Unit, call: OpenCall) -> None:
    """Deny what nobody answered in time (APR-5), unless somebody was faster."""
    conn, lane = unit.conn, unit.lane(call.session_id)
    if open_calls.settle(conn, call, state="expired", answer={}, by=None):
        _end_call(conn, lane, open_calls.row_of(conn, call), "denied", "Nobody answered in time.")
        _settled(unit, lane, call, "Nobody answered in time.", by="system", data={})


def withdraw(conn: Connection, lane: Lane, run: Run, reason: str) -> None:
    """Close every open call of a run that is being stopped; the caller saves the lane."""
    for call in open_calls.of_run(conn, run.id, state="open"):
        if open_calls.settle(conn, call, state="withdrawn", answer={"text": reason}, by=None):
            _end_call(conn, lane, open_calls.row_of(conn, call), "cancelled", reason)
            if call.kind not in FOR_PEOPLE:
                continue
            _update_card(conn, lane, call, f"Withdrawn: {reason}")
            lane.record(_decided(call), run.id, {"request_id": call.id, "outcome": "withdrawn"})


def _settled(
    unit: Unit, lane: Lane, call: OpenCall, outcome: str, *, by: str, data: JsonObject
) -> Answered:
    conn = unit.conn
    _update_card(conn, lane, call, outcome)
    lane.record(_decided(call), call.run_id, {"request_id": call.id, "outcome": outcome, **data})
    audit.append(
        conn,
        actor=by,
        action=f"{call.kind}.{data.get('choice') or 'settled'}",
        session_id=call.session_id,
        run_id=call.run_id,
        data={"request_id": call.id, "digest": call.digest, "outcome": outcome},
    )
    open_calls.resume(conn, lane, call.run_id)
    for topic in (RUNS, OUTBOX):
        unit.say(topic)
    return Answered(replace(call, state="answered"), outcome)


def _update_card(conn: Connection, lane: Lane, call: OpenCall, outcome: str) -> None:
    """Say on the card who decided, and when (APR-4)."""
    card = outbox.card_of(conn, call.id)
    if card is None:
        return
    when = datetime.fromtimestamp(lane.now_ms / 1000, UTC)
    changed = card.message.model_copy(
        update={
            "outbox_id": new_id(IdPrefix.OUTBOX, lane.now_ms),
            "parts": (card_part(call, f"{outcome} ({when:%Y-%m-%d %H:%M} UTC)"),),
        }
    )
    outbox.add(conn, NewRow(kind="edit", message=changed, open_call_id=call.id))


def _end_call(
    conn: Connection,
    lane: Lane,
    row: CallRow,
    status: Literal["ok", "denied", "cancelled"],
    content: str,
    *,
    outside: bool = False,
) -> None:
    result = row.ended(status, content or "(no answer)", outside=outside)
    calls.end(conn, row, result, None, now=lane.now_ms)


def _decided(call: OpenCall) -> EventKind:
    return EventKind.APPROVAL_DECIDED if call.kind == APPROVAL else EventKind.QUESTION_ANSWERED


APPROVALS: Final = WaitKind(
    name=APPROVAL,
    state=RunState.WAITING_FOR_APPROVAL,
    rank=0,
    open=_ask,
    expire=expire,
    asks=True,
)
QUESTIONS: Final = WaitKind(
    name=QUESTION,
    state=RunState.WAITING_FOR_USER_QUESTION,
    rank=1,
    open=_ask,
    expire=expire,
    asks=True,
)


def kinds_with(*others: WaitKind) -> Mapping[str, WaitKind]:
    """The table of what calls may wait for: the path's own kinds, and those of features."""
    return {kind.name: kind for kind in (APPROVALS, QUESTIONS, *others)}
