"""The calls of one step, from the model's wish to results, batch by batch (TOOL-9).

Reads that stand together run together, everything else in the model's order. What is found
``started`` without a result belongs to a process that died: a read runs again, an idempotent call
runs again under the same id, and a call of effect ``once`` is reported as unknown (MSG-8).
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial

from runtime.agent import addresses, turn_spans
from runtime.agent.guest import TurnGuest
from runtime.agent.turn_ends import Pending
from runtime.agent.wait_requests import wait_of
from runtime.agent.working_folders import Places, Site
from runtime.domain.decisions import Decision
from runtime.domain.messages import ChatAddress
from runtime.domain.runs import Holder
from runtime.domain.tools import Effect, ToolCall, ToolResult, ToolSpec
from runtime.domain.transcript import ToolMessage, has_untrusted
from runtime.policy.decide import Bounds
from runtime.ports.clock import Clock
from runtime.ports.metrics import UNKNOWN_TOOL, Observer
from runtime.ports.tracing import NO_TRACER, Span, Tracer
from runtime.sessions import run_steps
from runtime.sessions.calls import CallRow
from runtime.sessions.live_text import LiveStep
from runtime.sessions.run_steps import Ended
from runtime.sessions.sessions import Session
from runtime.sessions.transcripts import Line
from runtime.sessions.unit import Units, WaitKind
from runtime.tools.base import ToolContext
from runtime.tools.executor import APPROVED, ContextFor, Executor, Planned
from runtime.tools.registry import Registry
from runtime.tools.seen_versions import SeenFiles

Judge = Callable[[Sequence[CallRow]], tuple[str, ...]]
"""Sees a step whose calls have all ended; what the run is told about it before its next one."""


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """`waits` are calls that a person must answer; else `lines` hold the step's results and what
    people said meanwhile, and `session` is as it was when they were kept: its mode may have
    changed."""

    waits: tuple[Planned, ...] = ()
    lines: tuple[Line, ...] = ()
    session: Session | None = None


@dataclass(frozen=True, slots=True)
class Watch:
    """Tells `observer` and `tracer` of calls under the names of the tools that there are."""

    observer: Observer
    clock: Clock
    registry: Registry
    tracer: Tracer = NO_TRACER

    def decided(self, rows: Sequence[CallRow]) -> None:
        """The rows of a response, once they are durable."""
        for row in rows:
            if row.decision is not None:
                self.observer.decided(self._name(row), row.decision.verdict)

    def called(self, row: CallRow, result: ToolResult, began: float) -> None:
        """A call that ran since `began`, by the clock."""
        took = self.clock.monotonic() - began
        self.observer.called(self._name(row), result.status, took)

    def span(self, row: CallRow) -> AbstractContextManager[Span]:
        """The span of a call."""
        name = self._name(row)
        return self.tracer.span("execute_tool", row.run_id, name, turn_spans.tool_facts(row, name))

    def _name(self, row: CallRow) -> str:
        name = row.call.name
        return UNKNOWN_TOOL if self.registry.get(name) is None else name


def context_of(
    site: Site, files: SeenFiles, bounds: Bounds, *, session_id: str, run_id: str, call_id: str
) -> ToolContext:
    """What a call is told of where it works and of what it may."""
    return ToolContext(
        session_id=session_id,
        run_id=run_id,
        call_id=call_id,
        layout=site.layout,
        roots=site.roots,
        reads=site.reads,
        files=files,
        emit=lambda _text: None,
        notes=bounds.notes,
        read_only=not bounds.writes,
        reaches=bounds.reaches,
        within=bounds.within,
        child=bounds.child,
        tainted=bounds.tainted,
    )


@dataclass(frozen=True, slots=True)
class StepRunner:
    """Plans and executes steps for all runs of a process."""

    units: Units
    registry: Registry
    executor: Executor
    places: Places
    watch: Watch

    def specs(self, bounds: Bounds) -> tuple[ToolSpec, ...]:
        """What the model is offered within `bounds`."""
        return self.registry.specs(bounds)

    async def bounded(
        self, bounds: Bounds, session: Session, lines: Sequence[Line], found: Iterable[ToolCall]
    ) -> Bounds:
        """The bounds of these calls, where `lines` are the window of their session. Whoever is
        given something untrusted has read it, also where an earlier run had asked for it."""
        known = await addresses.given(self.units.database, self.registry, session, lines, found)
        tainted = bounds.tainted or any(has_untrusted(line.message) for line in lines)
        return replace(bounds, tainted=tainted, given=known)

    async def plan(
        self, found: Sequence[ToolCall], session_id: str, run_id: str, step: int, bounds: Bounds
    ) -> tuple[Planned, ...]:
        """Prepare and decide a response's calls."""
        # Contexts are made here, because the places of sessions belong to the event loop.
        contexts = {call.id: self._context(session_id, run_id, bounds, call.id) for call in found}
        return await asyncio.to_thread(
            self.executor.plan,
            found,
            run_id=run_id,
            step=step,
            bounds=bounds,
            context_for=contexts.__getitem__,
        )

    def first_states(self, planned: Sequence[Planned]) -> tuple[Planned, ...]:
        """With rows as the response's unit stores them: refused calls have ended already, and the
        first batch starts with it, which saves a transaction."""
        first = _first_batch(planned, self.units.kinds.waits)

        def state(place: int, row: CallRow) -> str:
            if row.result is not None:
                return "ended"
            return "started" if place in first else "proposed"

        return tuple(
            replace(one, row=replace(one.row, state=state(place, one.row)))
            for place, one in enumerate(planned)
        )

    async def execute(
        self,
        pending: Pending,
        *,
        holder: Holder,
        session_id: str,
        bounds: Bounds,
        live: LiveStep,
        kept: Callable[[Sequence[ChatAddress | None]], None],
        guest: TurnGuest,
    ) -> StepOutcome:
        """Run a step's calls until all have ended, or until one must wait.

        Behind each batch the others are decided anew: what it did may change where they lead.
        `kept` is called after each unit, and told where it put something out: None is the chat of
        the run.
        """
        run_id = pending.rows[0].run_id
        work = _StepWork(
            self.units,
            self.executor,
            holder,
            run_id,
            live,
            context=partial(self._context, session_id, run_id, bounds),
            watch=self.watch,
        )
        await self.places.load(session_id)
        current, planned = list(pending.rows), list(pending.planned)
        hears, judge = guest.hears(current[0].step), guest.after_step
        while True:
            planned = planned or await work.replan(current, bounds)
            batch = _next_batch(current, planned, self.units.kinds.waits)
            if batch.waits:
                return StepOutcome(waits=batch.waits)
            if not batch.places:
                lines, session = await work.commit([], current, hears=hears, judge=judge)
                kept([])
                return StepOutcome(lines=lines, session=session)
            ended = await work.run_batch([(current[p], planned[p]) for p in batch.places])
            for one in ended:
                current[one.row.place] = replace(one.row, state="ended", result=one.result)
            planned = []
            last = all(row.state == "ended" for row in current)
            whole = current if last else None
            lines, session = await work.commit(ended, whole, hears=hears, judge=judge)
            await self.places.keep(session_id)
            kept([one.sends.target for one in ended if one.sends is not None])
            if last:
                return StepOutcome(lines=lines, session=session)

    def _context(self, session_id: str, run_id: str, bounds: Bounds, call_id: str) -> ToolContext:
        site, files = self.places.site(session_id), self.places.files(session_id)
        return context_of(
            site, files, bounds, session_id=session_id, run_id=run_id, call_id=call_id
        )


@dataclass(frozen=True, slots=True)
class _Batch:
    places: tuple[int, ...] = ()
    waits: tuple[Planned, ...] = ()


@dataclass(frozen=True, slots=True)
class _StepWork:
    """One step of one run: the units and the running of batches."""

    units: Units
    executor: Executor
    holder: Holder
    run_id: str
    live: LiveStep
    context: Callable[[str], ToolContext]
    watch: Watch

    async def replan(self, rows: Sequence[CallRow], bounds: Bounds) -> list[Planned]:
        """What to do with each row now."""
        contexts = {row.call.id: self._context(row.call.id) for row in rows}

        def planned() -> list[Planned]:
            return [self._replanned(row, bounds, contexts.__getitem__) for row in rows]

        return await asyncio.to_thread(planned)

    def _replanned(self, row: CallRow, bounds: Bounds, context_for: ContextFor) -> Planned:
        """What to do with a row now; blocks on files.

        What began stays under the decision that it began under, and an approval holds for exactly
        the call that was shown; everything else is decided anew, because the mode may have changed.
        """
        if row.result is not None:
            return Planned(row, None)
        planned = self.executor.replan(row, bounds=bounds, context_for=context_for)
        decision = row.decision if row.state == "started" else None
        denied = planned.row.decision is not None and planned.row.decision.verdict == "deny"
        # A rule or a mode that came after the card still denies what a person allowed before it.
        same = planned.row.digest == row.digest
        if row.state == "approved" and not denied and same:
            decision = Decision(verdict="allow", rule=f"{APPROVED}: a person allowed this call")
            if self._was_let_run(planned):
                decision = planned.row.decision
        if decision is None or planned.prepared is None:
            return replace(planned, changed=row.state == "approved" and not same)
        kept = replace(planned.row, state=row.state, decision=decision, result=None)
        return replace(planned, row=kept)

    def _was_let_run(self, planned: Planned) -> bool:
        """Whether it is allowed and had waited for somebody else than a person, who let it run."""
        allowed = planned.row.decision is not None and planned.row.decision.verdict == "allow"
        if not allowed or planned.waits_for is None:
            return False
        return self.units.kinds.waits[planned.waits_for.kind].then == "runs"

    async def run_batch(self, batch: Sequence[tuple[CallRow, Planned]]) -> list[Ended]:
        """Run calls side by side; what began in an earlier process is judged first."""
        starting = [
            (row, planned.row.decision)
            for row, planned in batch
            if row.state != "started" and planned.row.result is None and planned.row.decision
        ]
        if starting:
            await self.units.run(
                lambda unit: run_steps.start_calls(unit, self.holder, self.run_id, starting),
                name="tools-start",
            )
        self.live.activity("tool", ", ".join(row.call.name for row, _ in batch))
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self._run_one(row, planned), name=f"call {row.call.id}")
                for row, planned in batch
            ]
        return [task.result() for task in tasks]

    async def _run_one(self, row: CallRow, planned: Planned) -> Ended:
        decision = planned.row.decision
        if planned.row.result is not None:
            return Ended(row, planned.row.result, decision)
        began = self.watch.clock.monotonic()
        with self.watch.span(row) as span:
            ran = await self.executor.run(planned, self._context(row.call.id))
            turn_spans.executed(span, row, ran.result)
        self.watch.called(row, ran.result, began)
        return Ended(row, ran.result, decision, ran.sends)

    async def commit(
        self,
        ended: Sequence[Ended],
        whole: Sequence[CallRow] | None,
        *,
        hears: bool,
        judge: Judge,
    ) -> tuple[tuple[Line, ...], Session]:
        """Keep results; `whole` is the step's rows once all have ended."""
        message, notices = None, tuple[str, ...]()
        if whole is not None:
            message = ToolMessage(results=tuple(row.result for row in whole if row.result))
            notices = judge(whole)
        return await self.units.run(
            lambda unit: run_steps.commit_results(
                unit,
                self.holder,
                self.run_id,
                ended,
                message=message,
                hears=hears,
                notices=notices,
            ),
            name="tools-end",
        )

    def _context(self, call_id: str) -> ToolContext:
        return replace(self.context(call_id), emit=self.live.output)


def _first_batch(planned: Sequence[Planned], waits: Mapping[str, WaitKind]) -> frozenset[int]:
    rows = [
        replace(one.row, state="ended") if one.row.result is not None else one.row
        for one in planned
    ]
    batch = _next_batch(rows, planned, waits)
    return frozenset() if batch.waits else frozenset(batch.places)


def _next_batch(
    rows: Sequence[CallRow], planned: Sequence[Planned], waits: Mapping[str, WaitKind]
) -> _Batch:
    """The next calls to run: neighbouring reads together, anything else alone, waits at the end.

    All calls that wait are opened at once, as soon as the first of them is reached.
    """
    places: list[int] = []
    for place, row in enumerate(rows):
        if row.state == "ended":
            continue
        if wait_of(planned[place], waits) is not None or row.state == "waiting":
            if places:
                break
            return _Batch(
                waits=tuple(
                    planned[later]
                    for later in range(place, len(rows))
                    if rows[later].state in ("proposed", "approved")
                    and wait_of(planned[later], waits) is not None
                )
            )
        read = row.effect is Effect.READ
        if places and not read:
            break
        places.append(place)
        if not read:
            break
    return _Batch(places=tuple(places))
