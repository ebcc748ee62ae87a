"""A worker of children: it plays every run unit by unit, as `runtime.agent` does, and dies."""

from collections.abc import Sequence
from typing import Final

from runtime.domain.decisions import Decision
from runtime.domain.messages import TextPart
from runtime.domain.runs import RunState, Usage
from runtime.domain.tools import Effect, ToolCall
from runtime.domain.transcript import AssistantMessage, ToolMessage
from runtime.features.subagents.ends.child_retry import Retry
from runtime.features.subagents.spawn.children import SpawnOrder
from runtime.features.subagents.spawn.spawn_arguments import AgentRequest
from runtime.features.subagents.spawn.spawn_call import SpawnOpening
from runtime.sessions import approvals, calls, claims, run_steps
from runtime.sessions.calls import CallRow
from runtime.sessions.run_steps import Finish, ModelStep
from runtime.sessions.window import WindowCache
from tests.stateful.bench import LEASE_MS
from tests.stateful.children_bench import ChildrenBench
from tests.stateful.children_rows import Asked, circle
from tests.stateful.snapshot import result_of
from tests.support.kinds import unit_of

ALLOW: Final = Decision(verdict="allow", rule="a test's rule")
REFUSED: Final = "Nothing was started"
CIRCLES: Final = ("wait for each other", "would never end")


class ChildrenAtWork(ChildrenBench):
    """One worker that has whatever runs."""

    def claims(self, most: int) -> int:
        """The worker takes runs, and each goes on with the step that it was in; how many."""
        # A process that is well renews its lease in time.
        self.holder = self.take_lease()
        found = self.run(
            unit_of(lambda unit: claims.claim(unit, self.holder, most=most, cache=self.cache))
        )
        self.holds()
        for one in found.runs:
            self.cache.put(one.session.id, one.window)
        for one in found.runs:
            self.goes_on(one.run.id)
        return len(found.runs)

    def goes_on(self, run_id: str) -> None:
        """What is left of a run's step: calls that spawn nothing yet, or results to be kept."""
        row = self.now.all.run[run_id]
        if row["step"] == 0 or row["cancel"] is not None:
            return
        said = self.now.all.transcript_of[row["session_id"]]
        if any(
            isinstance(line.message, ToolMessage)
            and (line.run_id, line.step) == (run_id, row["step"])
            for line in said
        ):
            return
        rows = self.units.run(lambda conn: calls.of_step(conn, run_id, row["step"]))
        left = [one for one in rows if one.state != "ended"]
        if left:
            self.parks(run_id, left)
        else:
            self.keeps_results(run_id, rows)

    def keeps_results(self, run_id: str, rows: Sequence[CallRow]) -> None:
        message = ToolMessage(results=tuple(row.result for row in rows if row.result))
        self.run(
            unit_of(
                lambda unit: run_steps.commit_results(
                    unit, self.holder, run_id, [], message=message
                )
            )
        )
        self.holds()

    def responds(self, run_id: str, orders: Sequence[SpawnOrder]) -> Sequence[CallRow]:
        """The model asks for children; the calls are kept and nothing is made yet."""
        step = self.now.all.run[run_id]["step"] + 1
        rows = [
            CallRow(
                run_id,
                step,
                place,
                ToolCall(id=f"{run_id}-{step}-{place}", name="sessions_spawn", arguments="{}"),
                Effect.READ,
                "proposed",
                "digest",
                ALLOW,
            )
            for place in range(len(orders))
        ]
        for row, one in zip(rows, orders, strict=True):
            self.orders[run_id, step, row.place] = one
        message = AssistantMessage(tool_calls=tuple(row.call for row in rows))
        kept = ModelStep(message, tuple(rows), Usage(), 1)
        self.run(unit_of(lambda unit: run_steps.commit_model(unit, self.holder, run_id, kept)))
        self.holds()
        return rows

    def parks(self, run_id: str, rows: Sequence[CallRow]) -> None:
        """The unit that spawns. What it refused made no row, what it took made all."""
        before, known = self.now, len(self.now.all.lanes)
        begins = [
            SpawnOpening(row=row, order=self.orders[row.run_id, row.step, row.place])
            for row in rows
        ]
        parked = self.run(
            unit_of(lambda unit: approvals.park(unit, self.holder, run_id, begins, window_from=1))
        )
        self.look()
        if before.all.run[run_id]["cancel"] is not None:
            assert self.now.agents.keys() == before.agents.keys(), "a run that is to end spawns"
        else:
            refused = [one for one in begins if not self.remember(one)]
            for one in refused:
                self.was_rightly_refused(one)
        assert len(self.now.agents) == len(self.asked)
        assert len(self.now.all.lanes) - known == len(self.now.agents) - len(before.agents)
        self.holds()
        if not parked.waits:
            self.keeps_results(run_id, parked.rows)

    def remember(self, begins: SpawnOpening) -> bool:
        """Keep what was asked for; False where nothing was made of it."""
        row = begins.row
        place = (row.run_id, row.step, row.place)
        made = [
            one
            for one, kept in self.now.agents.items()
            if (kept["run_id"], kept["step"], kept["call_place"]) == place
        ]
        if not made:
            return False
        for session, one in zip(made, begins.order.arguments.wanted, strict=True):
            self.asked[session] = self.as_asked(session, one)
        return True

    def was_rightly_refused(self, begins: SpawnOpening) -> None:
        """The call says so; and where it is for a circle, there would have been one."""
        row = begins.row
        rows = self.now.all.calls_of[row.run_id, row.step]
        result = next(result_of(one) for one in rows if one["place"] == row.place)
        assert result is not None
        assert result["content"].startswith(REFUSED)
        if any(word in result["content"] for word in CIRCLES):
            session = self.now.all.run[row.run_id]["session_id"]
            would = self.now.would_wait(session, begins.order.arguments.wanted)
            assert circle(would), "this would have ended"

    def as_asked(self, session: str, wanted: AgentRequest) -> Asked:
        row = self.now.agents[session]
        tree = row["tree_id"]
        before = [
            one
            for one, other in self.now.agents.items()
            if wanted.group is not None
            and (other["tree_id"], other["group_name"]) == (tree, wanted.group)
            and other["place"] < row["place"]
        ]
        needs = tuple(self.now.named[tree, name] for name in wanted.depends_on)
        return Asked(needs, tuple(before))

    def spawns(self, run_id: str, *orders: SpawnOrder) -> None:
        """A run's next step is to spawn."""
        self.parks(run_id, self.responds(run_id, orders))

    def ends(self, run_id: str, end: RunState, *, again: bool = False) -> None:
        """A run is over; one that nobody asked to end is never cancelled. A child may begin anew
        `again`, once, where it failed."""
        run = self.now.all.run[run_id]
        if end is RunState.CANCELLED and run["cancel"] is None:
            end = RunState.COMPLETED
        parts = () if end is RunState.CANCELLED else (TextPart(markdown="done"),)
        message = AssistantMessage(text="done") if end is RunState.COMPLETED else None
        if end is RunState.COMPLETED and self.stands_open(run):
            end, message = RunState.FAILED, None
        retry = Retry(most=1, base_ms=0, jitter=0.0) if again and end is RunState.FAILED else None
        finish = Finish(end, Usage(), 1, message, parts, retry=retry)
        self.run(
            unit_of(lambda unit: run_steps.finish(unit, self.holder, run_id, finish, claim=None))
        )
        self.holds()

    def dies(self) -> None:
        """The worker is gone; another comes up, and finds what it left."""
        self.units.clock.advance(LEASE_MS)
        while self.run(unit_of(claims.recover)):
            pass
        self.cache = WindowCache()
        self.holder = self.take_lease()
        self.holds()
        assert not self.at_work()
