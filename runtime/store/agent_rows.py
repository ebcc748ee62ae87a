"""A tree of subagents read in one statement, whatever its size; and taking up one that settled."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import Connection, case, func, select, update

from runtime.domain.runs import RunState
from runtime.store.agents import Agent
from runtime.store.inputs import PENDING
from runtime.store.tables import inputs, lanes, runs
from runtime.store.tables_agents import agents


@dataclass(frozen=True, slots=True)
class AgentRow:
    """One agent with where its lane stands: its `gate`, the `run` that has it (`run_id`), and
    whether one is `due`. What it used counts every run so far, also while it is at work."""

    agent: Agent
    gate: str | None
    run: RunState | None
    run_id: str | None
    due: bool
    steps: int = 0
    tokens: int = 0
    cost_usd: float | None = None
    tainted: bool = False


_active = runs.alias("active")
_AGENT = tuple(agents.c[field.name] for field in fields(Agent))
"""In the order of an agent's fields, so that a row begins with them: a tree may have a thousand."""


def of_tree(conn: Connection, tree_id: str) -> Sequence[AgentRow]:
    """All that were ever spawned below a root, in that order."""
    members = select(agents.c.session_id).where(agents.c.tree_id == tree_id)
    used = (
        select(
            runs.c.session_id,
            func.sum(runs.c.step).label("used_steps"),
            func.sum(runs.c.input_tokens + runs.c.output_tokens).label("used_tokens"),
            func.sum(runs.c.cost_usd).label("used_cost"),
            func.max(case((runs.c.tainted, 1), else_=0)).label("any_taint"),
        )
        .where(runs.c.session_id.in_(members))
        .group_by(runs.c.session_id)
        .subquery()
    )
    rows = conn.execute(
        select(
            *_AGENT,
            lanes.c.gate,
            func.coalesce(lanes.c.wants_ms, lanes.c.ready_ms).label("due_ms"),
            lanes.c.active_run,
            _active.c.state.label("run_state"),
            used.c.used_steps,
            used.c.used_tokens,
            used.c.used_cost,
            used.c.any_taint,
        )
        .join(lanes, lanes.c.session_id == agents.c.session_id)
        .outerjoin(_active, _active.c.id == lanes.c.active_run)
        .outerjoin(used, used.c.session_id == agents.c.session_id)
        .where(agents.c.tree_id == tree_id)
        .order_by(agents.c.place)
    )
    return [_row(row) for row in rows]


def reopen(conn: Connection, session_id: str, *, held_ms: int | None) -> None:
    """Let an agent that settled be live again; whoever locked its lane gives it something to do.

    Nobody awaits it any more, so its next end is told in the background. One that ended while it
    waited for others waits for them again since `held_ms`.
    """
    conn.execute(
        update(agents)
        .where(agents.c.session_id == session_id)
        .values(
            settled_ms=None,
            status=None,
            stop=None,
            quiet=False,
            mode="background",
            held_ms=held_ms,
            # Its worktree is looked at again, and made again where it is gone.
            tree_state=case((agents.c.tree_state.is_not(None), "open")),
        )
    )


def unheard_runs(conn: Connection, session_id: str) -> Sequence[str]:
    """Runs of a session that have inputs which nobody took: those of a run that ended unbegun."""
    rows = conn.execute(
        select(inputs.c.run_id)
        .where(
            inputs.c.session_id == session_id,
            inputs.c.state == PENDING,
            inputs.c.run_id.is_not(None),
        )
        .distinct()
    )
    return list(rows.scalars())


def _row(row: Sequence[Any]) -> AgentRow:
    gate, due, run_id, state, steps, tokens, cost, tainted = row[len(_AGENT) :]
    return AgentRow(
        agent=Agent(*row[: len(_AGENT)]),
        gate=gate,
        run=None if state is None else RunState(state),
        run_id=run_id,
        due=due is not None,
        steps=int(steps or 0),
        tokens=int(tokens or 0),
        cost_usd=cost,
        tainted=bool(tainted),
    )
