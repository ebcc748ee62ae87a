"""The only way to a tool: prepare, decide, and only then run (I5).

A call that cannot be prepared gets its error as a result and touches nothing. Every other call
gets a decision, which the caller makes durable before it lets the call run.
"""

import asyncio
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import structlog

from runtime.domain.decisions import Decision
from runtime.domain.errors import ToolError
from runtime.domain.messages import OutboundPart
from runtime.domain.tools import Effect, ToolCall, ToolResult
from runtime.policy.decide import Bounds, CallFacts, decide
from runtime.store.calls import CallRow
from runtime.tools.base import ToolContext, ToolOutput
from runtime.tools.hidden import canonical, is_note
from runtime.tools.output import LIMIT, error_result, to_result
from runtime.tools.registry import Prepared, Registry

log = structlog.get_logger(__name__)
UNFIT = Decision(
    verdict="deny", rule="check: the call does not fit its tool", reason="It cannot be run."
)
"""The decision about a call that was never prepared: nothing of it may run (POL-1)."""
MOST_CALLS = 64
"""Calls of one response that are looked at; no task needs more at once, and a flood would."""
TOO_MANY = Decision(
    verdict="deny",
    rule=f"check: at most {MOST_CALLS} calls in one response",
    reason="It was not looked at.",
)
ContextFor = Callable[[str], ToolContext]
"""Makes the context of the call with this id."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A call with its row. `prepared` is None where `row.result` holds the reason already. One
    that `lingers` is let run by whom it waits for, once policy lets it."""

    row: CallRow
    prepared: Prepared | None
    subject: str = ""
    lingers: bool = False


@dataclass(frozen=True, slots=True)
class Ran:
    """What a call came to, and what is to be sent once its result is kept."""

    result: ToolResult
    sends: tuple[OutboundPart, ...] = ()


class Executor:
    """Plans and runs the calls of a step; holds no state of a run.

    `redact` takes the gateway's own secrets out of what tools give, before it is kept (I9).
    """

    def __init__(self, registry: Registry, redact: Callable[[str], str] = str) -> None:
        self._registry = registry
        self._redact = redact

    def plan(
        self,
        found: Sequence[ToolCall],
        *,
        run_id: str,
        step: int,
        bounds: Bounds,
        context_for: ContextFor,
    ) -> tuple[Planned, ...]:
        """Prepare and decide a response's calls; nothing has run when this returns.

        Those behind the first `MOST_CALLS` are refused unread.
        """
        return tuple(
            self._plan_one(call, run_id, step, place, bounds, context_for)
            if place < MOST_CALLS
            else _unread(call, run_id, step, place, len(found))
            for place, call in enumerate(found)
        )

    def replan(self, row: CallRow, *, bounds: Bounds, context_for: ContextFor) -> Planned:
        """Prepare and decide a stored call again: a run was resumed, the mode may have changed."""
        return self._plan_one(row.call, row.run_id, row.step, row.place, bounds, context_for)

    def _plan_one(
        self,
        call: ToolCall,
        run_id: str,
        step: int,
        place: int,
        bounds: Bounds,
        context_for: ContextFor,
    ) -> Planned:
        context = context_for(call.id)
        try:
            prepared = self._registry.prepare(call)
            touches = prepared.touches(context)
        except ToolError as error:
            unfit = ToolError(self._redact(error.detail))
            result = to_result(call, unfit, context=context)
            digest = call_digest(call)
            row = CallRow(
                run_id, step, place, call, Effect.READ, "ended", digest, UNFIT, result=result
            )
            return Planned(row, None)
        workspace = canonical(context.workspace)
        paths = [Path(path) for path in (*touches.reads, *touches.writes)]
        facts = CallFacts(
            tool=call.name,
            effect=prepared.effect,
            touches=touches,
            outside_workspace=any(not path.is_relative_to(workspace) for path in paths),
            private=any(is_note(path, workspace) for path in paths),
        )
        decision = decide(facts, bounds)
        row = CallRow(
            run_id,
            step,
            place,
            call,
            prepared.effect,
            "proposed",
            call_digest(call),
            decision,
            _refusal(call, decision),
        )
        lingers = decision.verdict == "allow" and prepared.lingers(context)
        return Planned(row, prepared, touches.subject, lingers)

    async def run(self, planned: Planned, context: ToolContext) -> Ran:
        """Run one prepared call. Every failure becomes a result that the model can read."""
        call = planned.row.call
        if planned.prepared is None:
            raise ValueError(f"the call {call.id} was never prepared")
        output: ToolOutput | ToolError
        try:
            output = await planned.prepared.run(self._masked(context))
        except ToolError as error:
            output = ToolError(self._redact(error.detail))
        except Exception:  # a tool is a worker root: its defect must not end the run
            log.exception("tool_failed", tool=call.name, run_id=planned.row.run_id)
            output = ToolError(f"{call.name} failed inside; try another way.")
        if isinstance(output, ToolError):
            return Ran(to_result(call, output, context=context))
        output = replace(output, content=self._redact(output.content))
        if len(output.content) > LIMIT // 2:
            result = await asyncio.to_thread(to_result, call, output, context=context)
        else:
            result = to_result(call, output, context=context)
        return Ran(result, output.sends)

    def _masked(self, context: ToolContext) -> ToolContext:
        """The context with what is shown live masked like what is kept."""
        return replace(context, emit=lambda text: context.emit(self._redact(text)))


def call_digest(call: ToolCall) -> str:
    """What an approval is bound to: the tool and its exact arguments (APR-3)."""
    try:
        arguments = json.dumps(json.loads(call.arguments), sort_keys=True, separators=(",", ":"))
    except (ValueError, RecursionError):
        arguments = call.arguments
    return hashlib.sha256(f"{call.name}\0{arguments}".encode()).hexdigest()


def _unread(call: ToolCall, run_id: str, step: int, place: int, amount: int) -> Planned:
    error = ToolError(
        f"This response asked for {amount} calls; only the first {MOST_CALLS} were looked at, and "
        "this is none of them. Ask for what you still need in the next step."
    )
    result, digest = error_result(call, error), call_digest(call)
    row = CallRow(run_id, step, place, call, Effect.READ, "ended", digest, TOO_MANY, result=result)
    return Planned(row, None)


def _refusal(call: ToolCall, decision: Decision) -> ToolResult | None:
    if decision.verdict != "deny":
        return None
    content = f"Denied by policy ({decision.rule}). Do not try to work around it."
    return ToolResult(call_id=call.id, name=call.name, status="denied", content=content)
