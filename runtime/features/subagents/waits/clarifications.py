"""A child asks its parent, and waits for the answer as a row, without a slot (AGT-4).

The question reaches the parent in the unit that parks the child: as the result of the call that
awaits it, which is a background child from then on, or as a word of the machinery that a run of the
parent hears. The child's lane is locked first, then the parent's; who answers locks the child's
alone.
"""

import json
from dataclasses import dataclass
from typing import Final, Literal

from runtime.domain.events import EventKind
from runtime.domain.fence import fence
from runtime.domain.value import JsonObject
from runtime.features.subagents import notices
from runtime.features.subagents.ends import parent_results
from runtime.features.subagents.notices import Told
from runtime.features.subagents.rows import agents
from runtime.features.subagents.rows.agents import Agent
from runtime.ports.bus import CHILDREN, RUNS
from runtime.sessions import message_edits, open_calls, run_close, runs
from runtime.sessions.lanes import Lane
from runtime.sessions.open_calls import CLARIFICATION, OpenCall
from runtime.sessions.runs import Run
from runtime.sessions.unit import DeadLetter, Opening, Unit
from runtime.store import Connection

NEEDED: Final = "clarification_needed"
HOW: Final = (
    "It waits for you, in the background from now on. Answer it with `subagents` (action message, "
    "agent {name}), or decline (action decline)."
)
NOBODY: Final = (
    "Nobody started you as a subagent, so there is nobody to ask; go on with what you know."
)
ANSWERED: Final = "The agent {by}, which you work for, answers:\n\n{text}"
DECLINED: Final = (
    "The agent {by}, which you work for, gives no answer.{why} Go on with what you know."
)
ASKS: Final = "asks:"
"""How the identity of the input begins that tells a parent of a question."""
UNHEARD: Final = "the time for an answer was over before it was heard"
EXPIRED: Final = (
    "The agent that you work for gave no answer in time. Go on with what you know, and say in your "
    "result what you could not find out."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClarificationOpening(Opening):
    """A call that asks the parent, which may take `expires_in_ms` to answer."""

    kind: str = CLARIFICATION
    question: str
    expires_in_ms: int


def ask(unit: Unit, lane: Lane, run: Run, opening: Opening) -> None:
    """Open the call and tell the parent; for nobody's child the call ends at once."""
    if not isinstance(opening, ClarificationOpening):
        raise TypeError(f"a question to the parent is not opened by {type(opening).__name__}")
    conn, row = unit.conn, opening.row
    agent = agents.find(conn, run.session_id)
    if agent is None:
        notices.end(conn, lane, row, Told(NOBODY), "error")
        return
    asked: JsonObject = {"question": opening.question}
    call = open_calls.begin(conn, lane, row, CLARIFICATION, asked, lasts_ms=opening.expires_in_ms)
    lane.record(EventKind.QUESTION_ASKED, run.id, {"request_id": call.id, **asked})
    _tell(unit, agent, call)
    for topic in (CHILDREN, RUNS):
        # It may have queued a run of the parent.
        unit.say(topic)


def _tell(unit: Unit, agent: Agent, call: OpenCall) -> None:
    conn, tainted = unit.conn, agents.totals(unit.conn, agent.session_id).tainted
    parent = unit.lane(agent.parent_id)
    awaited = parent_results.awaiting(conn, agent) if agent.mode == "await" else None
    header = json.dumps({"status": NEEDED, "agent_id": agent.name, "request_id": call.id})
    question = fence(str(call.payload["question"]), f"subagent {agent.name}")
    told = Told(f"{header}\n{question}\n{HOW.format(name=agent.name)}", tainted)
    if awaited is not None:
        parent_results.go_on(conn, parent, awaited, told)
    elif not agent.quiet:
        parent_results.notify(conn, parent, agent, told, f"{ASKS}{call.id}")


def waiting(conn: Connection, lane: Lane) -> OpenCall | None:
    """What the child of a locked lane asks its parent, if it waits for that: the oldest."""
    if lane.active_run is None:
        return None
    opened = open_calls.of_run(conn, lane.active_run, state="open")
    return next((one for one in opened if one.kind == CLARIFICATION), None)


def answer(
    conn: Connection,
    lane: Lane,
    call: OpenCall,
    said: Told,
    *,
    by: str,
    identity: str,
    declines: bool,
) -> None:
    """Give the child what its parent `said` and let it go on; also where the parent `declines` to
    answer, and says why, or says nothing."""
    why = f" It says: {said.text}" if said.text else ""
    words = DECLINED.format(by=by, why=why) if declines else ANSWERED.format(by=by, text=said.text)
    status: Literal["ok", "denied"] = "denied" if declines else "ok"
    _end(conn, lane, call, status, Told(words, said.tainted), identity)


def expire(unit: Unit, call: OpenCall) -> None:
    """The child goes on without an answer, and is told so, unless somebody was faster."""
    lane = unit.lane(call.session_id)
    now = open_calls.get(unit.conn, call.id)
    if now is not None and now.state == "open":
        _end(unit.conn, lane, call, "denied", Told(EXPIRED), None)
        _bury(unit, call)
        unit.say(RUNS)
        unit.say(CHILDREN)


def _bury(unit: Unit, call: OpenCall) -> None:
    """Take a question that its parent never heard out of its lane: it is too late for an answer."""
    conn = unit.conn
    asked = message_edits.of_message(conn, f"{ASKS}{call.id}")
    if asked is None:
        return
    parent = unit.lane(asked.session_id)
    asked = message_edits.of_message(conn, asked.identity)
    if asked is None or asked.state != "pending":
        return
    message_edits.withdraw(conn, asked.id)
    parent.record(EventKind.INPUT_WITHDRAWN, asked.run_id, {"input_id": asked.id})
    letter = DeadLetter(
        session_id=asked.session_id,
        sender_id=call.session_id,
        message_id=call.id,
        input_id=asked.id,
        text=str(call.payload["question"]),
        sent_ms=asked.received_ms,
        reason=UNHEARD,
    )
    unit.kinds.letters.bury(unit, letter)
    unit.changed(parent.session_id)
    if asked.run_id is not None:
        run_close.end_unread(unit, parent, runs.get(conn, asked.run_id), UNHEARD)


def _end(
    conn: Connection,
    lane: Lane,
    call: OpenCall,
    status: Literal["ok", "denied"],
    told: Told,
    by: str | None,
) -> None:
    state = "expired" if by is None else "answered"
    if not open_calls.settle(conn, call, state=state, answer={"text": told.text}, by=by):
        return
    notices.end(conn, lane, open_calls.row_of(conn, call), told, status)
    lane.record(EventKind.QUESTION_ANSWERED, call.run_id, {"request_id": call.id, "outcome": state})
    open_calls.resume(conn, lane, call.run_id)
