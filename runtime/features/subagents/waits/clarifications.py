"""A child asks its parent, and waits for the answer as a row, without a slot (AGT-4).

The question reaches the parent in the unit that parks the child: as the result of the call that
awaits it, which is a background child from then on, or as a word of the machinery that a run of the
parent hears. The child's lane is locked first, then the parent's; who answers locks the child's
alone.
"""

import json
from dataclasses import dataclass
from typing import Final

from runtime.domain.events import EventKind
from runtime.domain.fence import fence
from runtime.domain.ids import IdPrefix, new_id
from runtime.domain.tools import ToolResult
from runtime.features.subagents.ends import child_end, handoffs
from runtime.features.subagents.rows import agents
from runtime.features.subagents.rows.agents import Agent
from runtime.ports.bus import CHILDREN as AGENTS
from runtime.ports.bus import RUNS
from runtime.sessions import calls, open_calls, run_resume
from runtime.sessions.lanes import Lane
from runtime.sessions.open_calls import CLARIFICATION, OpenCall
from runtime.sessions.runs import Run
from runtime.sessions.unit import Opening, Unit
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
        result = ToolResult(call_id=row.call.id, name=row.call.name, status="error", content=NOBODY)
        calls.end(conn, row, result, row.decision, now=lane.now_ms)
        return
    call = OpenCall(
        id=new_id(IdPrefix.QUESTION, lane.now_ms),
        session_id=run.session_id,
        run_id=run.id,
        step=row.step,
        place=row.place,
        kind=CLARIFICATION,
        digest=row.digest,
        payload={"question": opening.question},
        created_ms=lane.now_ms,
        expires_ms=lane.now_ms + opening.expires_in_ms,
    )
    open_calls.add(conn, call)
    calls.set_state(conn, row, "waiting")
    lane.record(EventKind.QUESTION_ASKED, run.id, {"request_id": call.id, **call.payload})
    _tell(unit, agent, call, tainted=agents.totals(conn, agent.session_id).tainted)
    for topic in (AGENTS, RUNS):
        # It may have queued a run of the parent.
        unit.say(topic)


def _tell(unit: Unit, agent: Agent, call: OpenCall, *, tainted: bool) -> None:
    conn, parent = unit.conn, unit.lane(agent.parent_id)
    awaited = child_end.awaiting(conn, agent) if agent.mode == "await" else None
    header = json.dumps({"status": NEEDED, "agent_id": agent.name, "request_id": call.id})
    question = fence(str(call.payload["question"]), f"subagent {agent.name}")
    words = f"{header}\n{question}\n{HOW.format(name=agent.name)}"
    if awaited is not None:
        child_end.go_on(conn, parent, awaited, words, tainted=tainted)
    elif not agent.quiet:
        handoffs.put(conn, parent, agent, words, identity=f"asks:{call.id}", tainted=tainted)


def waiting(conn: Connection, lane: Lane) -> OpenCall | None:
    """What the child of a locked lane asks its parent, if it waits for that: the oldest."""
    if lane.active_run is None:
        return None
    opened = open_calls.of_run(conn, lane.active_run, state="open")
    return next((one for one in opened if one.kind == CLARIFICATION), None)


def answer(
    conn: Connection, lane: Lane, call: OpenCall, *, by: str, text: str, identity: str
) -> None:
    """Give the child its parent's answer, and let it go on."""
    _end(conn, lane, call, "ok", ANSWERED.format(by=by, text=text), identity)


def decline(
    conn: Connection, lane: Lane, call: OpenCall, *, by: str, text: str, identity: str
) -> None:
    """As `answer`, where the parent gives none; `text` may say why."""
    why = f" It says: {text}" if text else ""
    _end(conn, lane, call, "denied", DECLINED.format(by=by, why=why), identity)


def expire(unit: Unit, call: OpenCall) -> None:
    """The child goes on without an answer, and is told so, unless somebody was faster."""
    lane = unit.lane(call.session_id)
    now = open_calls.get(unit.conn, call.id)
    if now is not None and now.state == "open":
        _end(unit.conn, lane, call, "denied", EXPIRED, None)
        unit.say(RUNS)
        unit.say(AGENTS)


def _end(
    conn: Connection, lane: Lane, call: OpenCall, status: str, content: str, by: str | None
) -> None:
    state = "expired" if by is None else "answered"
    if not open_calls.settle(conn, call, state=state, answer={"text": content}, by=by):
        return
    row = next(
        one for one in calls.of_step(conn, call.run_id, call.step) if one.place == call.place
    )
    result = ToolResult(
        call_id=row.call.id,
        name=row.call.name,
        status="ok" if status == "ok" else "denied",
        content=content,
    )
    calls.end(conn, row, result, None, now=lane.now_ms)
    lane.record(EventKind.QUESTION_ANSWERED, call.run_id, {"request_id": call.id, "outcome": state})
    run_resume.resume(conn, lane, call.run_id)
