"""Makes the checks of times that were claimed: runs gates and looks at files (SCH-9).

A gate is a command of the `exec` tool: the same sandbox, the same grants, the same limits, under
what policy says of its owner at that moment. It runs only as it was approved, by digest. Checks run
beside each other and beside all other schedules, a few at a time.
"""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import structlog

from runtime.agent.tool_step import context_of
from runtime.domain.actions import Action
from runtime.domain.errors import Conflict, Forbidden, GatehouseError, StoreUnavailable, ToolError
from runtime.domain.grants import Grant, GrantKind
from runtime.domain.tools import ToolCall
from runtime.engine.feature import FeatureServices
from runtime.features.schedules import check_units
from runtime.features.schedules.check_units import Ground, Prepared
from runtime.features.schedules.checks import (
    Checked,
    Claim,
    GateEnd,
    judged,
    with_news,
)
from runtime.features.schedules.conditions import (
    CHANGED,
    FIRST_LOOK,
    NOTHING_CHANGED,
    NOTHING_SAID,
)
from runtime.features.schedules.dispatch import FOR_GOOD, Failure, Outcome
from runtime.features.schedules.gates import asked_of
from runtime.features.schedules.model import Gate
from runtime.features.schedules.observations import (
    MOST_GATHERED,
    MOST_GATHERED_BRIEF,
    NOT_ALL,
    STOPS,
    Audience,
    Terms,
    Watched,
    changes_in,
    look_under,
    said_in,
)
from runtime.features.schedules.retry import RetryPolicy
from runtime.policy.decide import Bounds, decide
from runtime.sessions import sessions
from runtime.sessions.bounds import bounds_of
from runtime.sessions.unit import Unit
from runtime.tools.actions import action_of
from runtime.tools.base import ToolContext
from runtime.tools.builtin.shell import Exec, ExecArguments
from runtime.tools.executor import facts_of

log = structlog.get_logger(__name__)

AT_ONCE: Final = 4
"""Checks that one process makes at a time."""


class GateChanged(Conflict):
    """What the gate runs is not what was approved."""


@dataclass(frozen=True, slots=True)
class _Command:
    """A gate as one action, and what it would be decided about with."""

    tool: Exec
    arguments: ExecArguments
    action: Action
    context: ToolContext


class CheckRunner:
    """Makes checks for one process."""

    def __init__(
        self, services: FeatureServices, policy: RetryPolicy, jitter: Callable[[], float]
    ) -> None:
        self._services = services
        self._units = services.units
        self._policy = policy
        self._jitter = jitter
        self._room = asyncio.Semaphore(AT_ONCE)

    async def check(self, claim: Claim) -> Outcome:
        """Check one time and conclude it. Raises nothing but a cancellation and what the store
        fails with, after which the claim ends by itself."""
        async with self._room:
            begin = partial(check_units.begin, claim=claim, admitted=self._services.admitted)
            ground = await self._units.run(begin, name="schedule-check-begin")
            if isinstance(ground, Outcome):
                return ground
            return await self._checked(claim, ground)

    async def _checked(self, claim: Claim, ground: Ground) -> Outcome:
        try:
            complete = await self._look(ground)
            conclude = partial(
                check_units.conclude,
                claim=claim,
                admitted=self._services.admitted,
                complete=complete,
            )
            return await self._units.run(conclude, name="schedule-check")
        except StoreUnavailable:
            raise
        except FOR_GOOD as error:
            failure = Failure(str(error), self._policy, self._jitter(), for_good=True)
        except GatehouseError as error:
            log.warning("schedule_check_failed", schedule_id=claim.schedule_id, reason=str(error))
            failure = Failure(str(error), self._policy, self._jitter())
        except Exception as error:  # the root of one check: the others must not end with it
            log.exception("schedule_check_failed", schedule_id=claim.schedule_id)
            failure = Failure(type(error).__name__, self._policy, self._jitter())
        fail = partial(check_units.fail, claim=claim, failure=failure)
        return await self._units.run(fail, name="schedule-check-failed")

    async def _look(self, ground: Ground) -> check_units.Conclusion:
        """Run the gate and look at the files; what is left is for the unit that concludes."""
        terms, before = ground.terms, ground.schedule.saw
        most = MOST_GATHERED_BRIEF if terms.heartbeat else MOST_GATHERED
        checked = Checked(seen=before)
        if terms.gate is not None:
            try:
                end = await self._run_gate(ground, terms.gate)
            except GateChanged:
                changed = Checked(skip=CHANGED, seen=before, ask_again=True)
                return lambda _unit, _ground: changed
            checked = judged(end, before, most=most)
        if checked.skip:
            return lambda _unit, _ground: checked
        if terms.watches is not None:
            now = await self._files(ground, terms.watches)
            after = checked.seen.model_copy(update={"files": now.files})
            if before.files is None:
                first = replace(checked, skip=FIRST_LOOK, seen=after)
                return lambda _unit, _ground: first
            clean = self._services.redact
            found = changes_in(terms.watches, before.files, now, most=most, clean=clean)
            nothing = f"{NOTHING_CHANGED}; {NOT_ALL}" if now.truncated else NOTHING_CHANGED
            checked = with_news(checked, found, nothing, before=before, after=after)
        return partial(_complete, checked=checked, most=most)

    async def prepare(self, schedule_id: str) -> None:
        """Ask about the gate of a schedule that is new or changed, and take the first look at what
        it watches."""
        services = self._services
        first = partial(check_units.to_prepare, schedule_id=schedule_id, admitted=services.admitted)
        ground = await self._units.run(first, name="schedule-to-prepare")
        if ground is None:
            return
        ready = await self._prepared(ground)
        last = partial(
            check_units.prepared, ground=ground, ready=ready, approvers=services.approvers()
        )
        await self._units.run(last, name="schedule-prepared")

    async def _prepared(self, ground: Ground) -> Prepared:
        ready = Prepared()
        terms, schedule = ground.terms, ground.schedule
        now = self._services.clock.now_ms()
        try:
            if terms.watches is not None and schedule.saw.files is None:
                found = await self._files(ground, terms.watches)
                ready = replace(ready, files=dict(found.files))
            if terms.gate is not None:
                command = await self._command(ground, terms.gate)
                asked = asked_of(schedule, command.action, terms.gate, now=now)
                ready = replace(ready, asked=asked)
        except ToolError as error:
            ready = replace(ready, trouble=error.detail)
        except Forbidden as error:
            ready = replace(ready, trouble=str(error))
        return ready

    def _bounds(self, ground: Ground) -> Bounds:
        place = ground.schedule.place
        return bounds_of(
            self._services.policy,
            ground.session,
            trust=ground.owner.trust,
            group=place.chat_kind != "direct",
        )

    async def _context(self, ground: Ground, bounds: Bounds) -> ToolContext:
        places, session_id = self._services.places, ground.session.id
        await places.load(session_id)
        return context_of(
            places.site(session_id),
            places.files(session_id),
            bounds,
            session_id=session_id,
            run_id=ground.schedule.id,
            call_id=ground.schedule.id,
        )

    async def _files(self, ground: Ground, path: str) -> Watched:
        bounds = self._bounds(ground)
        context = await self._context(ground, bounds)
        services, before = self._services, ground.schedule.saw.files or {}
        terms = Terms(bounds.rules, services.redact, services.clock.now_ms())
        return await asyncio.to_thread(look_under, path, before, context, terms)

    async def _command(self, ground: Ground, gate: Gate) -> _Command:
        """The gate as it is now. Raises `Forbidden` where policy refuses it, whatever a person
        approved, and `ToolError`."""
        tool = self._services.registry.get(Exec.name)
        if not isinstance(tool, Exec):
            raise Forbidden("its gate cannot run: there are no commands here")
        bounds = self._bounds(ground)
        context = await self._context(ground, bounds)
        raw = gate.model_dump(mode="json")
        call = ToolCall(id=ground.schedule.id, name=tool.name, arguments=json.dumps(raw))

        def look() -> tuple[Action, str]:
            ready = self._services.registry.prepare(call)
            touches = ready.touches(context)
            action = action_of(call, ready, touches, context)
            # Its approval is to it what an answer of a person is to a call: it widens nothing.
            approved = Grant(
                tool=tool.name, kind=GrantKind.ACTION, key=action.digest(), text="its approval"
            )
            bounded = replace(bounds, grants=(approved,))
            decision = decide(facts_of(action, ready, touches, context, bounded), bounded)
            return action, decision.rule if decision.verdict == "deny" else ""

        action, refused = await asyncio.to_thread(look)
        if refused:
            raise Forbidden(f"policy refuses its gate ({refused})")
        return _Command(tool, ExecArguments.model_validate(raw), action, context)

    async def _run_gate(self, ground: Ground, gate: Gate) -> GateEnd:
        """Run the gate if it is what was approved. Raises `GateChanged`, `Forbidden` and
        `ToolError`; a cancellation ends all its processes."""
        command = await self._command(ground, gate)
        if command.action.digest() != ground.schedule.gate_digest:
            raise GateChanged("the gate is not what was approved")
        context = replace(
            command.context, unchanged=partial(self._unchanged, ground.schedule.id, command)
        )
        outcome = await command.tool.outcome(command.arguments, context)
        end = outcome.end
        trouble = outcome.ending if end.timed_out or end.signal is not None or end.limit else ""
        return GateEnd(end.code, self._services.redact(outcome.output), trouble)

    def _unchanged(self, schedule_id: str, command: _Command) -> None:
        """Raises `GateChanged` where the files of the gate changed since they were looked at.
        Blocks on files."""
        arguments = command.arguments.model_dump(mode="json", exclude_unset=True)
        call = ToolCall(id=schedule_id, name=command.tool.name, arguments=json.dumps(arguments))
        context = command.context.again()
        ready = self._services.registry.prepare(call)
        now = action_of(call, ready, ready.touches(context), context)
        if now.digest() != command.action.digest():
            raise GateChanged("what the gate runs has changed")


def _complete(unit: Unit, ground: Ground, *, checked: Checked, most: int) -> Checked:
    """What was said in the session that is observed, as it is while the run is made."""
    observed = ground.terms.listens_to
    if observed is None or checked.skip:
        return checked
    owner, schedule = ground.owner, ground.schedule
    conversation = sessions.get(unit.conn, schedule.session_id or ground.session.id)
    chats = (schedule.place, conversation.address)
    if rule := Audience(owner.person_id, owner.trust, chats).refused(unit.conn, observed):
        raise Conflict(STOPS[rule], "forbidden")
    before = ground.schedule.saw
    found = said_in(unit.conn, ground.schedule, observed, before.message or 0, most=most)
    mark = before.message if found is None else found.mark
    after = checked.seen.model_copy(update={"message": mark})
    return with_news(checked, found, NOTHING_SAID, before=before, after=after)
