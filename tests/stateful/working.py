"""Rules of workers: they claim runs, take their steps, and die or pause at any time."""

from collections.abc import Sequence
from dataclasses import replace

import hypothesis.strategies as st
from hypothesis.stateful import precondition, rule
from sqlalchemy import Connection

from runtime.delivery import outbox_units
from runtime.domain.decisions import Decision
from runtime.domain.errors import StaleLease
from runtime.domain.grants import Grant, GrantKind
from runtime.domain.messages import TextPart
from runtime.domain.runs import Holder, RunState, Usage
from runtime.domain.tools import Effect, ToolCall, ToolResult
from runtime.domain.transcript import AssistantMessage, ToolMessage
from runtime.sessions import approvals, claims, run_steps
from runtime.sessions.approvals import CardOpening
from runtime.sessions.calls import CallRow, settle_crashed
from runtime.sessions.claims import Claimed
from runtime.sessions.open_calls import APPROVAL, QUESTION
from runtime.sessions.run_steps import Ended, Finish, ModelStep
from runtime.sessions.unit import Unit, in_unit
from runtime.store import leases
from tests.stateful.bench import LEASE_MS, WORKERS, Bench, Held, pick
from tests.support.kinds import KINDS, unit_of

NUMBERS = st.integers(0, 7)
WHO = st.sampled_from(WORKERS)
CALLS = st.lists(st.sampled_from(["read", "once", "ask", "question", "refused"]), max_size=3)
MOVES = st.tuples(st.booleans(), CALLS, st.sampled_from([RunState.COMPLETED, RunState.FAILED]))
Move = tuple[bool, list[str], RunState]
"""Whether a worker takes something new, what the model asks for, and how a run would end."""
ALLOW = Decision(verdict="allow", rule="a test's rule")
ASK = Decision(verdict="ask", rule="a test's rule")
DENY = Decision(verdict="deny", rule="a test's rule")
EXPIRY_MS = 20_000


def rows_of(run_id: str, step: int, kinds: Sequence[str]) -> tuple[CallRow, ...]:
    """The calls of a response as its unit stores them; what stands first and may run has begun."""
    rows = [_row(run_id, step, place, kind) for place, kind in enumerate(kinds)]
    for place, kind in enumerate(kinds):
        if kind == "refused":
            continue
        if kind not in ("read", "once") or (kind == "once" and place != _first(kinds)):
            break
        rows[place] = replace(rows[place], state="started")
        if kind == "once":
            break
    return tuple(rows)


def _first(kinds: Sequence[str]) -> int:
    return next(place for place, kind in enumerate(kinds) if kind != "refused")


def _row(run_id: str, step: int, place: int, kind: str) -> CallRow:
    call = ToolCall(id=f"{run_id}-{step}-{place}", name=kind, arguments="{}")
    effect = Effect.READ if kind in ("read", "question") else Effect.ONCE
    row = CallRow(run_id, step, place, call, effect, "proposed", f"digest-{kind}", ALLOW)
    if kind == "ask":
        return replace(row, decision=ASK)
    if kind == "refused":
        return replace(row, state="ended", decision=DENY, result=result(row, "denied"))
    return row


def result(row: CallRow, status: str = "ok") -> ToolResult:
    return ToolResult(call_id=row.call.id, name=row.call.name, status=status, content=f"{status}!")


def asks(row: CallRow) -> bool:
    return row.call.name in ("ask", "question") and row.state == "proposed"


def next_up(held: Held) -> CallRow | None:
    """The first call that has not ended."""
    return next((row for row in held.pending if row.state != "ended"), None)


def ending(end: RunState) -> Finish:
    """The last word of a turn, as `runtime.agent` makes it."""
    parts = () if end is RunState.CANCELLED else (TextPart(markdown="done"),)
    message = AssistantMessage(text="done") if end is RunState.COMPLETED else None
    return Finish(end, Usage(), 1, message, parts)


class Working(Bench):
    """Turn workers. Every unit is played as `runtime.agent` plays it."""

    @precondition(lambda self: self.work_is_left())
    @rule(who=WHO, which=NUMBERS, plan=st.lists(MOVES, min_size=1, max_size=5))
    def a_worker_goes_on(self, who: str, which: int, plan: list[Move]) -> None:
        """It claims, or takes the next step of a run that it holds, whatever that is; often."""
        for claim, kinds, end in plan:
            self.goes_on(who, which, claim=claim, kinds=kinds, end=end)
            self.everything_holds()

    @precondition(lambda self: any(self.held(who) for who in WORKERS))
    @rule(which=NUMBERS, kinds=CALLS)
    def a_run_goes_on(self, which: int, kinds: list[str]) -> None:
        """One step of one run."""
        who = pick([who for who in WORKERS if self.held(who)], which)
        self.goes_on(who, which, claim=False, kinds=kinds, end=RunState.COMPLETED)

    def goes_on(
        self, who: str, which: int, *, claim: bool, kinds: list[str], end: RunState
    ) -> None:
        holder = self.workers[who].holder
        if holder is None:
            self.take_process_lease(who)
            return
        if not self.lease_is_live(holder):
            before = self.now
            self.claims(who, most=2)
            self.everything_holds()
            assert self.now == before, "nothing is taken under a lease that ran out"
            self.take_process_lease(who)
            return
        held = self.held(who)
        if not held or (claim and any(lane["ready_ms"] for lane in self.now.lanes)):
            self.claims(who, most=1 + which % 2)
            return
        one = pick(held, which)
        if not one.pending and kinds:
            self.model_responds(holder, one, kinds)
        elif not one.pending:
            self.run_ends(who, one, end)
        elif _must_park(one):
            self.parks(who, one)
        elif _may_begin(one):
            self.call_begins(holder, one)
        else:
            self.calls_end(holder, one)

    def claims(self, who: str, *, most: int) -> None:
        hands = self.workers[who]
        holder = hands.holder
        assert holder is not None
        found = self.run(
            unit_of(lambda unit: claims.claim(unit, holder, most=most, cache=hands.cache))
        )
        for one in found.runs:
            hands.runs[one.run.id] = Held(one.run.id, _unfinished(one))
            lines = one.window.lines
            assert [line.seq for line in lines] == list(
                range(one.window_from, one.window_from + len(lines))
            ), "the window is the end of the transcript, whole"
            hands.cache.put(one.session.id, one.window)

    def lease_is_live(self, holder: Holder) -> bool:
        """Whether a process would still believe that it may work."""
        return self.units.run(
            lambda conn: leases.holds(conn, f"{leases.PROCESS}{holder.worker}", holder)
        )

    def model_responds(self, holder: Holder, held: Held, kinds: list[str]) -> None:
        rows = rows_of(held.run_id, self.now.run[held.run_id]["step"] + 1, kinds)
        message = AssistantMessage(tool_calls=tuple(row.call for row in rows))
        step = ModelStep(message, rows, Usage(), 1)
        self.run(unit_of(lambda unit: run_steps.commit_model(unit, holder, held.run_id, step)))
        held.pending = rows

    def call_begins(self, holder: Holder, held: Held) -> None:
        row = next_up(held)
        assert row is not None
        self.run(
            unit_of(lambda unit: run_steps.start_calls(unit, holder, held.run_id, [(row, ALLOW)]))
        )
        self.remember(held, [replace(row, state="started", decision=ALLOW)])

    def calls_end(self, holder: Holder, held: Held) -> None:
        ended = [
            Ended(row, row.result or result(row), row.decision)
            for row in held.pending
            if row.state == "started"
        ]
        self.remember(held, [replace(one.row, state="ended", result=one.result) for one in ended])
        message = None
        if next_up(held) is None:
            message = ToolMessage(results=tuple(row.result for row in held.pending if row.result))
        self.run(
            unit_of(
                lambda unit: run_steps.commit_results(
                    unit, holder, held.run_id, ended, message=message
                )
            )
        )
        if message is not None:
            held.pending = ()

    def parks(self, who: str, held: Held) -> None:
        holder = self.workers[who].holder
        assert holder is not None
        waits = [_wait(row) for row in held.pending if asks(row)]
        asked_to_end = self.now.run[held.run_id]["cancel"] is not None
        self.run(
            unit_of(lambda unit: approvals.park(unit, holder, held.run_id, waits, window_from=1))
        )
        del self.workers[who].runs[held.run_id]
        self.everything_holds()
        if asked_to_end:
            row = self.now.run[held.run_id]
            ended = RunState.INTERRUPTED if row["replaced"] else RunState.CANCELLED
            assert row["state"] == ended, "a run that was stopped does not wait for anybody"

    def run_ends(self, who: str, held: Held, end: RunState) -> None:
        holder = self.workers[who].holder
        assert holder is not None
        finish = ending(end)
        claim = self.local_delivery()
        step = self.now.run[held.run_id]["step"]
        done = self.run(
            unit_of(lambda unit: run_steps.finish(unit, holder, held.run_id, finish, claim=claim))
        )
        assert (done.reply is not None) == bool(finish.parts)
        if done.state is RunState.RUNNING:
            assert end is RunState.COMPLETED, "only an answer lets a run go on"
            self.everything_holds()
            assert self.now.run[held.run_id]["step"] == step + 1
            return
        if done.claimed and done.reply is not None and claim is not None:
            row = outbox_units.fresh_row(done.reply, claim)
            self.deliverers[claim.worker].rows[done.reply.outbox_id] = row
        del self.workers[who].runs[held.run_id]

    def local_delivery(self) -> Holder | None:
        """The claim that the deliverer of this process offers, while it believes in its lease."""
        return next((one.holder for one in self.deliverers.values() if one.holder), None)

    @precondition(lambda self: any(self.held(who) for who in WORKERS))
    @rule(which=NUMBERS, end=st.sampled_from([RunState.FAILED, RunState.CANCELLED]))
    def a_run_breaks_off(self, which: int, end: RunState) -> None:
        """It fails or is stopped wherever it stands."""
        who = next(who for who in WORKERS if self.held(who))
        self.run_ends(who, pick(self.held(who), which), end)

    @precondition(lambda self: any(self.held(who) for who in WORKERS))
    @rule(who=WHO, missed=st.booleans())
    def a_worker_is_paused_or_dies(self, who: str, missed: bool) -> None:
        """And the timers take over what it held, at once or whenever they look."""
        if self.workers[who].holder is not None:
            self.forget(who)
        if missed:
            self.units.clock.advance(LEASE_MS)
            self.timers_look()

    @precondition(lambda self: any(ghost.runs for ghost in self.ghosts))
    @rule(
        which=NUMBERS, unit=st.sampled_from(["model", "start", "results", "park", "finish", "end"])
    )
    def a_stale_worker_writes(self, which: int, unit: str) -> None:
        ghost = pick([ghost for ghost in self.ghosts if ghost.runs], which)
        held = pick(list(ghost.runs.values()), which)
        holder = ghost.holder
        if holder is not None and not self.owns(ghost, held.run_id):
            self.must_not_write(
                lambda conn: write_step(unit, conn, holder=holder, held=held), StaleLease
            )

    @staticmethod
    def remember(held: Held, changed: Sequence[CallRow]) -> None:
        """Put changed rows in the places of the old ones."""
        new = {row.place: row for row in changed}
        held.pending = tuple(new.get(row.place, row) for row in held.pending)


def _unfinished(one: Claimed) -> tuple[CallRow, ...]:
    """What is left of a claimed run's step, as a turn finds it."""
    done = {
        line.step
        for line in one.window.lines
        if line.run_id == one.run.id and isinstance(line.message, ToolMessage)
    }
    return settle_crashed(one.calls) if one.run.step not in done else ()


def _may_begin(held: Held) -> bool:
    row = next_up(held)
    return row is not None and not asks(row) and row.state in ("proposed", "approved")


def _may_commit(held: Held) -> bool:
    row = next_up(held)
    return bool(held.pending) and (row is None or row.state == "started")


def _must_park(held: Held) -> bool:
    row = next_up(held)
    return row is not None and asks(row)


def _wait(row: CallRow) -> CardOpening:
    if row.call.name == "question":
        return CardOpening(
            kind=QUESTION,
            row=row,
            question="Which?",
            options=("a", "b"),
            expires_in_ms=EXPIRY_MS,
        )
    return CardOpening(
        kind=APPROVAL,
        row=row,
        expires_in_ms=EXPIRY_MS,
        decision=ASK,
        grant=Grant(tool="ask", kind=GrantKind.PATH, key="ask", text="ask"),
    )


def write_step(what: str, conn: Connection, *, holder: Holder, held: Held) -> None:
    """One of the units of a turn, by a worker that lost its run."""
    in_unit(conn, KINDS, lambda unit: _write(what, unit, holder, held))


def _write(what: str, unit: Unit, holder: Holder, held: Held) -> None:
    row = _row(held.run_id, 99, 0, "once")
    message = AssistantMessage(text="late", tool_calls=(row.call,))
    match what:
        case "model":
            run_steps.commit_model(
                unit, holder, held.run_id, ModelStep(message, (row,), Usage(), 1)
            )
        case "start":
            run_steps.start_calls(unit, holder, held.run_id, [(row, ALLOW)])
        case "results":
            ended = Ended(row, result(row), ALLOW)
            run_steps.commit_results(
                unit, holder, held.run_id, [ended], message=ToolMessage(results=(ended.result,))
            )
        case "park":
            waits = [_wait(row)]
            approvals.park(unit, holder, held.run_id, waits, window_from=1)
        case "finish":
            finish = ending(RunState.COMPLETED)
            run_steps.finish(unit, holder, held.run_id, finish, claim=None)
        case _:
            finish = ending(RunState.CANCELLED)
            run_steps.finish(unit, holder, held.run_id, finish, claim=None)
