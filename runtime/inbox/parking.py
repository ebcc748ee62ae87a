"""Parking: a run that waits for a person is a row, not a coroutine (APR-1, APR-6).

The card's answer fills its open call; when none of the run is left open, the same run is queued
again at the head of its lane. Answering makes no new run and needs no process to have survived.
"""

import json
from dataclasses import dataclass, replace
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
from runtime.domain.runs import RunState
from runtime.domain.tools import ToolResult
from runtime.domain.value import JsonObject
from runtime.inbox import resuming, streams
from runtime.inbox.closing import end_as_asked
from runtime.sessions.keys import OF_USER, place_of
from runtime.store import (
    Connection,
    agents,
    audit,
    calls,
    inputs,
    lanes,
    open_calls,
    outbox,
    people,
    runs,
    sessions,
    slots,
)
from runtime.store.calls import CallRow
from runtime.store.lanes import Lane
from runtime.store.open_calls import (
    APPROVAL,
    CHILDREN,
    CLARIFICATION,
    FOR_PEOPLE,
    QUESTION,
    OpenCall,
)
from runtime.store.outbox import NewRow
from runtime.store.payloads import kept
from runtime.store.runs import Run

Choice = Literal["once", "session", "deny"]
WAITS_FOR: Final = {
    APPROVAL: RunState.WAITING_FOR_APPROVAL,
    QUESTION: RunState.WAITING_FOR_USER_QUESTION,
    CLARIFICATION: RunState.WAITING_FOR_USER_QUESTION,
    CHILDREN: RunState.WAITING_FOR_CHILDREN,
}
"""How a run is called that waits, by what it waits for; the first of them where it is several."""


@dataclass(frozen=True, slots=True)
class Wait:
    """One call that somebody must answer. `grant` is what "for this session" adds; None where the
    card does not offer it. `risk` is what an approval's card says of it.
    `expires_in_ms` is its own time where it has one."""

    row: CallRow
    kind: str
    reason: str = ""
    decision: Decision | None = None
    question: str = ""
    options: tuple[str, ...] = ()
    grant: Grant | None = None
    risk: Risk | None = None
    expires_in_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a person said: `choice` of an approval, `text` of a question; who they are."""

    by: str
    name: str
    choice: Choice | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Answered:
    """The open call as it was settled; `resumed` says that its run is queued again."""

    call: OpenCall
    resumed: bool
    outcome: str


def rest(conn: Connection, lane: Lane, run: Run, *, window_from: int) -> None:
    """Let a run of a locked lane wait for its open calls; it holds neither worker nor slot."""
    if lane.gate is None:
        streams.rest(conn, run)
    kinds = {call.kind for call in open_calls.of_run(conn, run.id, state="open")}
    state = next(state for kind, state in WAITS_FOR.items() if kind in kinds)
    runs.move(conn, run, state, {"worker": None, "fence": None})
    if run.transcript == lane.transcript:
        lane.window_from = window_from
    lane.record(EventKind.RUN_WAITING, run.id, {"state": state.value})
    slots.give_back(conn, lane)


def end_instead(conn: Connection, lane: Lane, run: Run, reason: str) -> None:
    end_as_asked(conn, lane, run, reason)
    lane.active_run = None
    lanes.settle(conn, lane)
    lanes.save(conn, lane)


def ask(
    conn: Connection,
    lane: Lane,
    run: Run,
    wait: Wait,
    *,
    approvers: Approvers,
    expires_in_ms: int,
) -> OpenCall:
    """Open a call that a person must answer, and show its card where one of the `approvers` is."""
    prefix = IdPrefix.APPROVAL if wait.kind == APPROVAL else IdPrefix.QUESTION
    identifier = new_id(prefix, lane.now_ms)
    # A child's card stands in the chat of its root: people must see who asks (APR-7).
    path = agents.path(conn, run.session_id) if lane.gate is not None else ""
    # In quotes that no name holds: a model chose the names, and they must not read as ours.
    asker = f'Subagent "{path}" asks' if path else ""
    payload: JsonObject = {
        "tool": wait.row.call.name,
        "arguments": wait.row.call.arguments,
        "reason": f"{asker}. {wait.reason}" if asker else wait.reason,
        "question": f"{asker}: {wait.question}" if asker and wait.question else wait.question,
        "path": path,
        "options": list(wait.options),
        "grant": wait.grant.model_dump(mode="json") if wait.grant else None,
        "choices": ["once", "session", "deny"] if wait.grant else ["once", "deny"],
        "risk": wait.risk.model_dump(mode="json") if wait.risk else None,
    }
    call = OpenCall(
        id=identifier,
        session_id=run.session_id,
        run_id=run.id,
        step=wait.row.step,
        place=wait.row.place,
        kind=wait.kind,
        digest=wait.row.digest,
        payload=payload,
        created_ms=lane.now_ms,
        expires_ms=lane.now_ms + expires_in_ms,
    )
    open_calls.add(conn, call)
    calls.wait(conn, wait.row)
    elsewhere = _owner_chat(conn, run, approvers) if wait.kind == APPROVAL else None
    card = OutboundMessage(
        outbox_id=new_id(IdPrefix.OUTBOX, lane.now_ms),
        target=elsewhere or run.target,
        reply_to=None if elsewhere else run.reply_to,
        parts=(card_part(call),),
        run_id=run.id,
        session_id=run.session_id,
    )
    outbox.add(conn, NewRow(kind="card", message=card, open_call_id=identifier))
    kind = EventKind.APPROVAL_REQUESTED if wait.kind == APPROVAL else EventKind.QUESTION_ASKED
    lane.record(kind, run.id, {"request_id": identifier, **payload})
    return call


def _owner_chat(conn: Connection, run: Run, approvers: Approvers) -> ChatAddress | None:
    """The owner's direct chat, where a card goes if nobody in the chat of the run may answer it
    (APR-2). None where somebody there may, or where no owner's direct chat is known."""
    if approvers.include(run.speaker) or _speaks_there(conn, run, approvers):
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


def _speaks_there(conn: Connection, run: Run, approvers: Approvers) -> bool:
    """Whether an approver takes part in a conversation of several people.

    A thread with a session of its own is a conversation of its own: who only wrote beside it would
    not be told of a card in it.
    """
    if run.target.chat_kind == "direct":
        return False
    agent = agents.find(conn, run.session_id)
    root = sessions.get(conn, agent.tree_id if agent else run.session_id)
    place = place_of(root.key)
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


def answer(
    conn: Connection, call: OpenCall, given: Answer, *, lane: Lane | None = None
) -> Answered:
    """Settle an open call by a person's answer. Raises `Conflict` with the present state.

    Who may answer was decided by the caller; what may be chosen is what the card offered (APR-3).
    A caller that holds the lane gives it, and saves it.
    """
    held = lane is not None
    lane = lane or lanes.lock(conn, call.session_id)
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
    row = _row_of(conn, call)
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
    answered = _settled(conn, lane, call, outcome, by=given.by, data=data)
    if not held:
        lanes.save(conn, lane)
    return answered


def _option(call: OpenCall, text: str) -> str:
    """The option that a number names, where the card listed options; else the text itself."""
    options = call.payload.get("options")
    if isinstance(options, list) and text.strip().isdecimal():
        place = int(text.strip())
        if 1 <= place <= len(options):
            return str(options[place - 1])
    return text


def _as_shown(call: OpenCall, row: CallRow) -> bool:
    """Whether what would run is what the card showed (APR-3)."""
    shown = (call.digest, call.payload.get("tool"), call.payload.get("arguments"))
    return shown == (row.digest, row.call.name, row.call.arguments)


def expire(conn: Connection, call: OpenCall) -> Answered | None:
    """Deny what nobody answered in time (APR-5); None when somebody was faster."""
    lane = lanes.lock(conn, call.session_id)
    if not open_calls.settle(conn, call, state="expired", answer={}, by=None):
        return None
    _end_call(conn, lane, _row_of(conn, call), "denied", "Nobody answered in time.")
    answered = _settled(conn, lane, call, "Nobody answered in time.", by="system", data={})
    lanes.save(conn, lane)
    return answered


def withdraw(conn: Connection, lane: Lane, run: Run, reason: str) -> None:
    """Close every open call of a run that is being stopped; the caller saves the lane."""
    for call in open_calls.of_run(conn, run.id, state="open"):
        if open_calls.settle(conn, call, state="withdrawn", answer={"text": reason}, by=None):
            _end_call(conn, lane, _row_of(conn, call), "cancelled", reason)
            if call.kind not in FOR_PEOPLE:
                continue
            _update_card(conn, lane, call, f"Withdrawn: {reason}")
            lane.record(_decided(call), run.id, {"request_id": call.id, "outcome": "withdrawn"})


def _settled(
    conn: Connection, lane: Lane, call: OpenCall, outcome: str, *, by: str, data: JsonObject
) -> Answered:
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
    resumed = resuming.resume(conn, lane, call.run_id)
    return Answered(replace(call, state="answered"), resumed, outcome)


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
    result = ToolResult(
        call_id=row.call.id,
        name=row.call.name,
        status=status,
        content=content or "(no answer)",
        outside=outside,
    )
    calls.end(conn, row, result, None, now=lane.now_ms)


def _row_of(conn: Connection, call: OpenCall) -> CallRow:
    rows = calls.of_step(conn, call.run_id, call.step)
    return next(row for row in rows if row.place == call.place)


def _decided(call: OpenCall) -> EventKind:
    return EventKind.APPROVAL_DECIDED if call.kind == APPROVAL else EventKind.QUESTION_ANSWERED
