"""The durable steps of a running run. Each unit checks that the run is still the caller's (I6)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from runtime.domain.decisions import Decision
from runtime.domain.events import EventKind
from runtime.domain.messages import Dispatch, OutboundMessage, OutboundPart
from runtime.domain.runs import Holder, RunState, Usage
from runtime.domain.tools import ToolResult
from runtime.domain.transcript import AssistantMessage, NoticeMessage, ToolMessage
from runtime.domain.value import JsonObject
from runtime.ports.bus import OUTBOX, RUNS
from runtime.sessions import (
    audit,
    budgets,
    calls,
    dispatches,
    lanes,
    outbox,
    received_files,
    runs,
    steering,
    streams,
)
from runtime.sessions.budgets import Charge
from runtime.sessions.calls import CallRow
from runtime.sessions.lanes import Lane
from runtime.sessions.outbox import FINAL_RANK, NewRow
from runtime.sessions.run_close import asked_ending, close_step
from runtime.sessions.runs import Retry, Run, RunEnd
from runtime.sessions.sessions import Session
from runtime.sessions.transcripts import Line
from runtime.sessions.unit import Unit
from runtime.store import Connection

ARGUMENT_PREVIEW = 400
AT_LIMIT = "max_steps"
"""Why a run ended that took as many steps as it may."""
OVER_BUDGET = "budget"
"""Why a run ended that may not spend more."""


@dataclass(frozen=True, slots=True)
class ModelStep:
    """A response with tool calls. `rows` carry each call's decision and first state; `charge` is
    what its budgets settle, None where nothing was reserved. `tainted`: the model was given
    something untrusted."""

    message: AssistantMessage
    rows: tuple[CallRow, ...]
    usage: Usage
    window_from: int
    charge: Charge | None = None
    tainted: bool = False


@dataclass(frozen=True, slots=True)
class Ended:
    """A call's end: its row, the result, the decision it ran or was refused under, and the message
    that goes out with it."""

    row: CallRow
    result: ToolResult
    decision: Decision | None = None
    sends: Dispatch | None = None


@dataclass(frozen=True, slots=True)
class Finish:
    """The end of a run. `parts` go to the person; none where there is nothing to say. `written_at`
    is the last step that was kept before a partial `message`. `cut_short`, `over` and `retry` as in
    `RunEnd`; `notice` is what the session is told before its next run; `tainted` as in
    `ModelStep`."""

    state: RunState
    usage: Usage
    window_from: int
    message: AssistantMessage | None = None
    parts: tuple[OutboundPart, ...] = ()
    error: str | None = None
    reason: str = ""
    charge: Charge | None = None
    cut_short: bool = False
    over: bool = False
    notice: str = ""
    retry: Retry | None = None
    written_at: int | None = None
    tainted: bool = False


@dataclass(frozen=True, slots=True)
class Finished:
    """What a finish left: new transcript lines, the reply, whether it is ours to send, and how the
    run ended. A run that is still running goes on with the lines."""

    lines: tuple[Line, ...]
    reply: OutboundMessage | None
    claimed: bool
    state: RunState


def commit_model(unit: Unit, holder: Holder, run_id: str, step: ModelStep) -> Line:
    """Keep a response and its calls; the calls marked ``started`` may run once this is durable."""
    conn = unit.conn
    lane, run = unit.owned(run_id, holder)
    number = run.step + 1
    line = _say(lane, run, step.message, step=number)
    calls.add(conn, step.rows, now=lane.now_ms)
    values = _usage(run, step.usage, step.message.model) | _taint(run, step)
    runs.change(conn, run_id, {"step": number, **values})
    _keep_window(lane, run, step.window_from)
    lane.record(EventKind.STEP_MODEL, run_id, _model_event(number, step))
    for row in step.rows:
        _audit_decision(conn, run, row, row.decision)
    _settle_budgets(unit, run_id, step.charge)
    return line


def start_calls(
    unit: Unit, holder: Holder, run_id: str, decided: Sequence[tuple[CallRow, Decision]]
) -> None:
    """Record that further calls of a step begin now."""
    conn = unit.conn
    lane, run = unit.owned(run_id, holder)
    for row, decision in decided:
        calls.start(conn, row, decision, now=lane.now_ms)
        _audit_decision(conn, run, row, decision)


def commit_results(
    unit: Unit,
    holder: Holder,
    run_id: str,
    ended: Sequence[Ended],
    *,
    message: ToolMessage | None,
    hears: bool = True,
    notices: Sequence[str] = (),
) -> tuple[tuple[Line, ...], Session]:
    """Keep results; `message` is the whole step's, once its last call has ended.

    Its line comes back, with the `notices` that the run is told behind it, and those of what people
    said meanwhile (MSG-5), unless the run `hears` nothing more: then that is for the run after it.
    So does the session, because its mode holds from the next step on (POL-2).
    """
    conn = unit.conn
    lane, run, session = unit.owned_in_session(run_id, holder)
    for one in ended:
        calls.end(conn, one.row, one.result, one.decision, now=lane.now_ms)
        if one.sends is not None:
            dispatches.send(conn, run, one.row, one.sends, now=lane.now_ms)
    if not run.tainted and any(one.result.untrusted for one in ended):
        runs.change(conn, run_id, {"tainted": True})
    lines: tuple[Line, ...] = ()
    if message is not None:
        told = [NoticeMessage(text=text) for text in notices]
        results = _say(lane, run, message, step=run.step)
        lines = (results, *(_say(lane, run, one, step=run.step) for one in told))
        lines = (*lines, *(steering.heard(conn, lane, run) if hears else ()))
    lane.record(EventKind.STEP_TOOLS, run_id, _tools_event(run.step, ended))
    return lines, unit.kind(lane).standing(conn, session)


def finish(
    unit: Unit,
    holder: Holder,
    run_id: str,
    end: Finish,
    *,
    claim: Holder | None,
) -> Finished:
    """End a run and put its reply into the outbox, in one unit (MSG-9).

    A run that has its answer, and to which people said more meanwhile, gives that answer and goes
    on: they were told that it is the run which answers them (RUN-4).
    """
    conn = unit.conn
    lane, run = unit.owned(run_id, holder)
    answered = end.state is RunState.COMPLETED and end.reason != OVER_BUDGET
    if answered and steering.is_owed(unit, lane, run):
        return _go_on(unit, lane, run, end)
    lines = list[Line]()
    state = asked_ending(run) if end.state is RunState.CANCELLED else end.state
    if state is not RunState.COMPLETED:
        # Read from the rows: a stop may have come between a unit and what its turn remembers.
        lines += close_step(conn, lane, run, end.reason or "The run failed.")
    if _says_more(run, end) and end.message is not None:
        lines.append(_say(lane, run, end.message, step=run.step + 1))
    if end.notice:
        lines.append(_say(lane, run, NoticeMessage(text=end.notice), step=run.step + 1))
    model = end.message.model if end.message else ""
    values: dict[str, object] = {"ended_ms": lane.now_ms, "error": end.error}
    values |= _usage(run, end.usage, model) | _taint(run, end)
    run = replace(run, tainted=run.tainted or end.tainted)
    if state is RunState.COMPLETED and not end.cut_short:
        # The answer is a step too: a call of the model, with nothing behind it (SUB-4, SUB-20).
        values["step"] = run.step + 1
    runs.move(conn, run, state, values)
    reply, claimed, kind = None, False, unit.kind(lane)
    if kind.speaks:
        reply, claimed = _reply(conn, lane, run, end, claim=claim)
    _keep_window(lane, run, end.window_from)
    lane.active_run = None
    lane.record(
        EventKind(f"run.{state.value}"),
        run_id,
        {
            "outbox_id": reply.outbox_id if reply else None,
            "message_seq": lane.message_seq,
            "reason": end.reason,
        },
    )
    steering.pass_on(conn, lane, run)
    run_end = RunEnd(
        state,
        text=end.message.text if end.message and not end.message.refused else "",
        why=end.error or end.reason,
        cut_short=end.cut_short,
        over=end.over,
        # Who was asked to end does not begin anew, whatever it failed by first.
        retry=end.retry if run.cancel is None else None,
    )
    kind.ended(unit, lane, run, run_end)
    lanes.settle(conn, lane, ended=run.seq)
    _settle_budgets(unit, run_id, end.charge)
    if lane.ready_ms is not None:
        unit.say(RUNS, {"session_id": lane.session_id})
    if reply is not None and not claimed:
        unit.say(OUTBOX, {"channel": run.target.channel, "account": run.target.account})
    return Finished(tuple(lines), reply, claimed, state)


def _settle_budgets(unit: Unit, run_id: str, charge: Charge | None) -> None:
    """At the end, because other sessions' units wait for the rows of budgets."""
    if charge is not None:
        unit.last("budgets", lambda conn: budgets.settle(conn, run_id, charge))


def _says_more(run: Run, end: Finish) -> bool:
    """Whether an end has words that no step of its run holds: who was stopped in the moment when a
    step was kept does not know that it was."""
    if end.message is None or not (end.message.text or end.message.tool_calls):
        return False
    return end.written_at is None or end.written_at >= run.step


def _go_on(unit: Unit, lane: Lane, run: Run, end: Finish) -> Finished:
    """Give an answer as a step of a run that goes on, and let it hear what people said."""
    conn = unit.conn
    number = run.step + 1
    lines = [_say(lane, run, end.message, step=number)] if end.message is not None else []
    model = end.message.model if end.message is not None else ""
    runs.change(conn, run.id, {"step": number, **_usage(run, end.usage, model), **_taint(run, end)})
    _keep_window(lane, run, end.window_from)
    answer = outbox.message_of(run, end.parts, now=lane.now_ms)
    if streams.answer(conn, answer) is None:
        row = NewRow(kind=streams.SAID, message=answer, rank=FINAL_RANK)
        outbox.add(conn, row, now=lane.now_ms)
    said: JsonObject = {
        "step": number,
        "text": end.message.text if end.message else "",
        "calls": [],
    }
    lane.record(EventKind.STEP_MODEL, run.id, said)
    lines += steering.heard(conn, lane, replace(run, step=number))
    _settle_budgets(unit, run.id, end.charge)
    return Finished(tuple(lines), answer, claimed=False, state=run.state)


def _reply(
    conn: Connection, lane: Lane, run: Run, end: Finish, *, claim: Holder | None
) -> tuple[OutboundMessage | None, bool]:
    if not end.parts:
        streams.cut(conn, run, end.message.text if end.message else None)
        received_files.tell_problems(conn, lane, run)
        return None, False
    reply = outbox.message_of(run, end.parts, now=lane.now_ms, final=True)
    row = NewRow(kind="final", message=reply, rank=FINAL_RANK, claim=claim)
    claimed = outbox.add_reply(conn, row, now=lane.now_ms)
    if claimed is not None:
        return reply, claimed
    grown = streams.become(conn, reply)
    if grown is not None:
        return grown, False
    # Its deliverer gave the text up meanwhile.
    return reply, outbox.add(conn, row, now=lane.now_ms)


def _say(
    lane: Lane, run: Run, message: AssistantMessage | ToolMessage | NoticeMessage, *, step: int
) -> Line:
    return lane.say(message, run_id=run.id, step=step, transcript=run.transcript)


def _keep_window(lane: Lane, run: Run, window_from: int) -> None:
    """Where the window starts; a run of an earlier transcript has no say in it."""
    if run.transcript == lane.transcript:
        lane.window_from = window_from


def _usage(run: Run, usage: Usage, model: str) -> dict[str, object]:
    before, cost = run.usage, None
    if before.cost_usd is not None or usage.cost_usd is not None:
        cost = (before.cost_usd or 0.0) + (usage.cost_usd or 0.0)
    return {
        "model": model or run.model,
        "input_tokens": before.input_tokens + usage.input_tokens,
        "output_tokens": before.output_tokens + usage.output_tokens,
        "cached_tokens": before.cached_tokens + usage.cached_tokens,
        "cost_usd": cost,
    }


def _taint(run: Run, said: ModelStep | Finish) -> dict[str, object]:
    """A run that was given something untrusted has read it, also where an earlier run of its
    conversation had asked for that: what it tells other agents carries the mark (POL-6)."""
    return {"tainted": True} if said.tainted and not run.tainted else {}


def _model_event(number: int, step: ModelStep) -> JsonObject:
    return {
        "step": number,
        "text": step.message.text,
        "calls": [
            {
                "id": row.call.id,
                "name": row.call.name,
                "arguments": row.call.arguments[:ARGUMENT_PREVIEW],
                "verdict": row.decision.verdict if row.decision else "error",
            }
            for row in step.rows
        ],
    }


def _tools_event(step: int, ended: Sequence[Ended]) -> JsonObject:
    return {
        "step": step,
        "results": [
            {
                "id": one.row.call.id,
                "name": one.row.call.name,
                "status": one.result.status,
                "preview": one.result.content[:ARGUMENT_PREVIEW],
            }
            for one in ended
        ],
    }


def _audit_decision(conn: Connection, run: Run, row: CallRow, decision: Decision | None) -> None:
    if decision is None:
        return
    audit.append(
        conn,
        actor="policy",
        action=f"tool.{decision.verdict}",
        session_id=run.session_id,
        run_id=run.id,
        data={
            "tool": row.call.name,
            "call_id": row.call.id,
            "digest": row.digest,
            "rule": decision.rule,
        },
    )
