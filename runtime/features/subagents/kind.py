"""What subagents are to the message path: a kind of session, and what calls wait for because of
them. Everything that happens to them begins here."""

from collections.abc import Sequence
from typing import Final

from typing_extensions import override

from runtime.domain.budgets import Budget, BudgetKey, Limit, Scope
from runtime.domain.runs import RunState
from runtime.features.subagents import slots
from runtime.features.subagents.ends import child_end, child_stop, parent_results
from runtime.features.subagents.rows import agents, inherited_grants, tree_facts
from runtime.features.subagents.rows.agents import SUBAGENT
from runtime.features.subagents.spawn import spawn_call
from runtime.features.subagents.waits import agent_waits, clarifications
from runtime.sessions import sessions
from runtime.sessions.lanes import Lane
from runtime.sessions.open_calls import AGENTS, CHILDREN, CLARIFICATION
from runtime.sessions.runs import Run, RunEnd
from runtime.sessions.sessions import Session
from runtime.sessions.unit import Asker, Payer, SessionKind, Unit, WaitKind
from runtime.store import Connection


class SubagentKind(SessionKind):
    """A session that works for another: what it says is handed to its parent, it runs only with a
    slot, and it spends on the account of the run at the root."""

    name: str = SUBAGENT
    speaks: bool = False
    unlisted = tree_facts.CLOSED

    @override
    def standing(self, conn: Connection, session: Session) -> Session:
        return inherited_grants.reached(conn, session)

    @override
    def parked(self, unit: Unit, lane: Lane) -> None:
        slots.give_back(unit, lane)

    @override
    def asked_to_end(self, unit: Unit, lane: Lane, reason: str) -> None:
        child_stop.asked_to_end(unit, lane, reason)

    @override
    def ended(self, unit: Unit, lane: Lane, run: Run, end: RunEnd) -> None:
        child_end.ended(unit, lane, run, end)

    @override
    def asked_by(self, conn: Connection, session_id: str) -> Asker | None:
        path = agents.path(conn, session_id)
        # In quotes that no name holds: a model chose the names, and they must not read as ours.
        return Asker(f'Subagent "{path}" asks', path) if path else None

    @override
    def payer(self, conn: Connection, run: Run) -> Payer:
        own = agents.find(conn, run.session_id)
        if own is None:
            return super().payer(conn, run)
        return Payer(agents.payer_of(conn, run), own.tree_id)

    @override
    def budgets(self, conn: Connection, session_id: str) -> Sequence[Budget]:
        """Those that an agent and the ones above it were given, each for itself and all below it. A
        bound that is its parent's too is that one's budget."""
        found: list[tuple[str, Limit]] = []
        one = agents.find(conn, session_id)
        while one is not None:
            found.append((one.session_id, Limit.of(sessions.get(conn, one.session_id).spend)))
            one = agents.find(conn, one.parent_id)
        above = [limit for _, limit in found[1:]] + [Limit()]
        return [
            Budget(BudgetKey(Scope.AGENT, of), limit)
            for (of, limit), outer in zip(found, above, strict=True)
            if limit.is_set and limit != outer
        ]


WAITS: Final = (
    WaitKind(
        name=CLARIFICATION,
        state=RunState.WAITING_FOR_USER_QUESTION,
        rank=2,
        open=clarifications.ask,
        expire=clarifications.expire,
        reach="parent",
        asks=True,
    ),
    WaitKind(
        name=CHILDREN,
        state=RunState.WAITING_FOR_CHILDREN,
        rank=3,
        open=spawn_call.begin,
        expire=parent_results.let_go,
        reach="root",
    ),
    # Behind the spawns: who is waited for may be spawned by the same step.
    WaitKind(
        name=AGENTS,
        state=RunState.WAITING_FOR_CHILDREN,
        rank=4,
        open=agent_waits.begin,
        expire=agent_waits.end,
        then="runs",
    ),
)
