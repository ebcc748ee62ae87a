"""What subagents are to the message path: a kind of session, what calls wait for because of them,
and who hears that a session is stopped. Everything that happens to them begins here."""

from collections.abc import Sequence
from typing import Final

from typing_extensions import override

from runtime.domain.budgets import Budget, BudgetKey, Limit, Scope
from runtime.domain.runs import RunState
from runtime.features.subagents import slots
from runtime.features.subagents.ends import child_end
from runtime.features.subagents.rows import agents, inherited_grants
from runtime.features.subagents.rows.agents import SUBAGENT
from runtime.features.subagents.spawn import spawn_call
from runtime.features.subagents.waits import agent_waits, clarifications
from runtime.ports.bus import CHILDREN as AGENTS
from runtime.sessions import sessions
from runtime.sessions.lanes import Lane
from runtime.sessions.open_calls import AGENTS as FOR_AGENTS
from runtime.sessions.open_calls import CHILDREN, CLARIFICATION
from runtime.sessions.run_end import RunEnd
from runtime.sessions.runs import Run
from runtime.sessions.sessions import Session
from runtime.sessions.unit import Asker, Payer, SessionKind, Unit, WaitKind
from runtime.store import Connection


class SubagentKind(SessionKind):
    """A session that works for another: what it says is handed to its parent, it runs only with a
    slot, and it spends on the account of the run at the root."""

    name: str = SUBAGENT
    speaks: bool = False

    @override
    def standing(self, conn: Connection, session: Session) -> Session:
        return inherited_grants.reached(conn, session)

    @override
    def parked(self, unit: Unit, lane: Lane) -> None:
        slots.give_back(unit, lane)

    @override
    def asked_to_end(self, unit: Unit, lane: Lane, reason: str) -> None:
        # Also one that has nothing to do now: it would wait for children that tell it nothing.
        # A unit that stops the parent has its lane first, and this child's row then.
        unit.lane(agents.get(unit.conn, lane.session_id).parent_id)
        agents.ask_to_stop(unit.conn, lane.session_id, reason)

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


def stop_children(unit: Unit, session_id: str, reason: str, run_id: str | None) -> int:
    """Let the children of a session, or of one run of it, end: each by a unit of its own (SUB-19).

    Their rows are marked and no lane is locked, because theirs lie deeper."""
    marked = agents.mark_stopped(unit.conn, session_id, reason, run_id=run_id)
    if marked:
        unit.say(AGENTS)
    return marked


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
        expire=child_end.let_go,
        reach="root",
    ),
    # Behind the spawns: who is waited for may be spawned by the same step.
    WaitKind(
        name=FOR_AGENTS,
        state=RunState.WAITING_FOR_CHILDREN,
        rank=4,
        open=agent_waits.begin,
        expire=agent_waits.end,
        then="runs",
    ),
)
