"""The only way to a tool: prepare, decide, and only then run (I5).

A call that cannot be prepared gets its error as a result and touches nothing. Every other call
gets a decision, which the caller makes durable before it lets the call run.
"""

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import structlog

from runtime.domain.actions import Action
from runtime.domain.decisions import Decision, Risk
from runtime.domain.errors import ToolError
from runtime.domain.grants import Grant, GrantKind
from runtime.domain.messages import Dispatch
from runtime.domain.tools import Effect, ToolCall, ToolResult, Touches
from runtime.policy.decide import GRANTED, INSTRUCTION, Bounds, CallFacts, decide
from runtime.policy.risk import risk_of
from runtime.sessions.calls import CallRow
from runtime.tools.actions import action_of
from runtime.tools.base import Prepared, ToolContext, ToolOutput, WaitsFor
from runtime.tools.canonical_paths import CanonicalPaths
from runtime.tools.code_sinks import written
from runtime.tools.output import LIMIT, error_result, to_result
from runtime.tools.registry import Registry
from runtime.workspace.layout import inside_of

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
    reason="It was not checked.",
)
APPROVED = "approval"
"""The bound of a call that a person allowed on its card."""
ContextFor = Callable[[str], ToolContext]
"""Makes the context of the call with this id."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A call with its row. `prepared` is None where `row.result` holds the reason already.
    `waits_for` is what its tool lets it wait for, whatever policy says. `action` is what a person
    is asked about, `risk` what they are told of it, and `grant` what a card may offer for the
    session. `changed`: it is no longer what a person allowed."""

    row: CallRow
    prepared: Prepared | None
    touches: Touches = field(default_factory=Touches)
    waits_for: WaitsFor | None = None
    action: Action | None = None
    grant: Grant | None = None
    changed: bool = False
    risk: Risk | None = None


@dataclass(frozen=True, slots=True)
class Ran:
    """What a call came to, and what is to be sent once its result is kept."""

    result: ToolResult
    sends: Dispatch | None = None


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
        """Prepare and decide a response's calls; nothing has run when this returns. Blocks on the
        files that they name: belongs in a thread.

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
            return _unfit(call, run_id, step, place, error=unfit, decision=UNFIT)
        action = action_of(call, prepared, touches, context)
        facts = facts_of(action, prepared, touches, context, bounds)
        decision = decide(facts, bounds)
        # What is kept, shown and run is what passed the check, and no other reading of it (APR-9).
        call = call.model_copy(update={"arguments": action.text})
        row = CallRow(
            run_id,
            step,
            place,
            call,
            prepared.effect,
            "proposed",
            action.digest(),
            decision,
            _refusal(call, decision),
        )
        waits_for = prepared.waits_for(context)
        grant = _grant(action, touches, decision)
        asked = decision.verdict == "ask"
        risk = risk_of(facts, sandboxed=bounds.sandboxed) if asked else None
        return Planned(row, prepared, touches, waits_for, action, grant, risk=risk)

    async def run(self, planned: Planned, context: ToolContext) -> Ran:
        """Run one prepared call. Every failure becomes a result that the model can read."""
        call = planned.row.call
        if planned.prepared is None:
            raise ValueError(f"the call {call.id} was never prepared")
        output: ToolOutput | ToolError
        try:
            held = await _held(planned, context)
            # What is shown live is masked like what is kept.
            masked = replace(held, emit=lambda text: held.emit(self._redact(text)))
            output = await planned.prepared.run(masked)
        except ToolError as error:
            output = ToolError(self._redact(error.detail))
        except Exception:  # a tool is a worker root: its defect must not end the run
            log.exception("tool_failed", tool=call.name, run_id=planned.row.run_id)
            output = ToolError(f"{call.name} failed inside; try another way.")
        if isinstance(output, ToolError):
            return Ran(error_result(call, output))
        outside = output.outside and not planned.prepared.tool.own_words
        output = replace(output, content=self._redact(output.content), outside=outside)
        if len(output.content) > LIMIT // 2:
            result = await asyncio.to_thread(to_result, call, output, context=context)
        else:
            result = to_result(call, output, context=context)
        return Ran(result, output.sends)


def facts_of(
    action: Action, prepared: Prepared, touches: Touches, context: ToolContext, bounds: Bounds
) -> CallFacts:
    """What policy looks at. Blocks on files."""
    resolved = context.resolved
    landmarks, inside = resolved.landmarks, (str(resolved.home), str(resolved.files))
    paths = (*touches.reads, *touches.writes)
    found = written(touches, context, bounds)
    return CallFacts(
        tool=action.tool,
        effect=prepared.effect,
        touches=touches,
        outside_workspace=not all(
            any(inside_of(path, folder) is not None for folder in inside) for path in paths
        ),
        private=touches.private or any(landmarks.private(path) for path in paths),
        sinks=found.sinks,
        memory=found.memory,
        action=action.digest(),
        elsewhere=touches.folder is not None and touches.folder != str(resolved.files),
    )


def _grant(action: Action, touches: Touches, decision: Decision) -> Grant | None:
    """What a card offers for the session; None where each time is asked about."""
    instructs = any(link.bound == INSTRUCTION for link in decision.chain)
    if decision.verdict != "ask" or instructs or not touches.subject:
        return None
    tool, subject = action.tool, touches.subject
    if touches.address is not None:
        return Grant(tool=tool, kind=GrantKind.HOST, key=subject, text=f"{tool}({subject})")
    plain = touches.command is None and not (touches.network or touches.sends or touches.also)
    if plain and subject and (touches.reads or touches.writes):
        return Grant(tool=tool, kind=GrantKind.PATH, key=subject, text=f"{tool}({subject})")
    if not action.known:
        return None
    where = f" in {action.folder}" if action.folder is not None else ""
    return Grant(
        tool=tool,
        kind=GrantKind.ACTION,
        key=action.digest(),
        text=f"{tool}({subject}){where}",
        files=_acting_files(action, touches),
    )


def _acting_files(action: Action, touches: Touches) -> tuple[str, ...]:
    """What is written only by asking once the action is allowed for the session."""
    files = [one.path for one in action.files]
    if touches.command is not None and touches.folder is not None:
        found = CanonicalPaths().of_commands((touches.command,), touches.folder)
        files += sorted(found - set(files))
    return tuple(files)


async def _held(planned: Planned, context: ToolContext) -> ToolContext:
    """`_as_allowed`, in a thread where it looks at files."""
    if planned.touches.folder is None and (planned.action is None or planned.action.folder is None):
        return _as_allowed(planned, context)
    return await asyncio.to_thread(_as_allowed, planned, context)


def _as_allowed(planned: Planned, context: ToolContext) -> ToolContext:
    """The context in which the call writes only where it was decided that it may. Raises
    `ToolError` where what it would run is no longer what a person allowed. Blocks on files."""
    prepared, action, decision = planned.prepared, planned.action, planned.row.decision
    folder = planned.touches.folder
    if prepared is not None and folder is not None and prepared.touches(context).folder != folder:
        # A rule too holds for the folder that it was held to.
        raise ToolError("not run: its working folder has changed; ask for it again")
    allowed = decision is not None and decision.rule.startswith((f"{APPROVED}:", f"{GRANTED}:"))
    placed = replace(context, writes=planned.touches.writes)
    if not allowed or action is None or action.folder is None:
        return placed
    unchanged = partial(_unchanged, planned, context)
    unchanged()
    return replace(placed, unchanged=unchanged)


def _unchanged(planned: Planned, context: ToolContext) -> None:
    """Raises `ToolError` where the files of a command are not as they were allowed."""
    prepared, action, context = planned.prepared, planned.action, context.again()
    if prepared is None or action is None:
        return
    now = action_of(planned.row.call, prepared, prepared.touches(context), context)
    if now.digest() != action.digest():
        raise ToolError("not run: what it runs has changed since it was allowed; ask for it again")


def unfit_digest(call: ToolCall) -> str:
    """The digest of a call that passed no check, and never runs."""
    return hashlib.sha256(f"{call.name}\0{call.arguments}".encode()).hexdigest()


def _unread(call: ToolCall, run_id: str, step: int, place: int, amount: int) -> Planned:
    error = ToolError(
        f"This response asked for {amount} calls; only the first {MOST_CALLS} were checked, and "
        "this is not one of them. "
        "Ask for what you still need in the next step."
    )
    return _unfit(call, run_id, step, place, error=error, decision=TOO_MANY)


def _unfit(
    call: ToolCall, run_id: str, step: int, place: int, *, error: ToolError, decision: Decision
) -> Planned:
    """A call that passed no check, with its error for a result."""
    result, digest = error_result(call, error), unfit_digest(call)
    row = CallRow(run_id, step, place, call, Effect.READ, "ended", digest, decision, result=result)
    return Planned(row, None)


def _refusal(call: ToolCall, decision: Decision) -> ToolResult | None:
    if decision.verdict != "deny":
        return None
    content = f"Denied by policy ({decision.rule}). Do not try to work around it."
    return ToolResult(call_id=call.id, name=call.name, status="denied", content=content)
