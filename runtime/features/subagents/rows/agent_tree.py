"""A tree of subagents read in one statement, whatever its size; and taking up one that settled."""

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    bindparam,
    case,
    func,
    select,
    text,
)

from runtime.domain.runs import RunState
from runtime.domain.transcript import AssistantMessage
from runtime.features.subagents.rows.agents import COLUMNS, LIVE, Agent
from runtime.features.subagents.tables import agents
from runtime.sessions.open_calls import APPROVAL, CLARIFICATION, QUESTION
from runtime.sessions.runs import QUEUED
from runtime.sessions.tables import lanes, messages, open_calls, runs, tool_calls
from runtime.store.payloads import kept_message
from runtime.store.row_values import quick
from runtime.store.statements import hot


@quick
class AgentRow:
    """One agent with where its lane stands: its `gate`, the `run` that has it (`run_id`), and
    whether one is `due`. What it used counts every run so far, also while it is at work.

    `queued` runs wait in it, and so many approvals and questions wait for a person; it `asks` its
    parent so many questions, all in the run that has its lane. `error` is that of its last run that
    had one, `said` its last words while it is at work, `active_ms` when it last did something.
    """

    agent: Agent
    gate: str | None
    run: RunState | None
    run_id: str | None
    due: bool
    steps: int = 0
    tokens: int = 0
    cost_usd: float | None = None
    tainted: bool = False
    tool_calls: int = 0
    queued: int = 0
    approvals: int = 0
    questions: int = 0
    asks: int = 0
    error: str | None = None
    said: str = ""
    active_ms: int | None = None


OPEN: Final = "open"
_newest = messages.alias("newest")
_ERROR = (
    select(runs.c.error)
    .where(runs.c.session_id == agents.c.session_id, runs.c.error.is_not(None))
    .order_by(runs.c.seq.desc())
    .limit(1)
    .scalar_subquery()
)
_TAINTED = (
    select(func.count())
    .where(runs.c.session_id == agents.c.session_id, runs.c.tainted)
    .scalar_subquery()
)
_FAILED = agents.c.settled_ms.is_not(None) & (
    (agents.c.status != "completed") | (agents.c.retries > 0)
)
_SAID = case(
    (
        agents.c.settled_ms.is_(None),
        select(messages.c.payload)
        .where(messages.c.session_id == agents.c.session_id, messages.c.role == "assistant")
        .order_by(messages.c.seq.desc())
        .limit(1)
        .scalar_subquery(),
    ),
    else_=None,
)
_active = runs.alias("active")


def _query(wanted: ColumnElement[bool]) -> Select[Any]:
    """The statement for the agents that are `wanted`."""
    live = agents.c.settled_ms.is_(None)
    # What settled ones used stands in their rows; most of a large tree have.
    members = select(agents.c.session_id).where(wanted, live)
    used = (
        select(
            runs.c.session_id,
            func.sum(runs.c.step).label("used_steps"),
            func.sum(runs.c.input_tokens + runs.c.output_tokens).label("used_tokens"),
            func.sum(runs.c.cost_usd).label("used_cost"),
            func.max(case((runs.c.tainted, 1), else_=0)).label("any_taint"),
            func.sum(case((runs.c.state == QUEUED, 1), else_=0)).label("queued_runs"),
            func.count(runs.c.error).label("errors"),
        )
        .where(runs.c.session_id.in_(members))
        .group_by(runs.c.session_id)
        .subquery()
    )
    calls = (
        select(runs.c.session_id, func.count().label("used_calls"))
        .join(tool_calls, tool_calls.c.run_id == runs.c.id)
        .where(runs.c.session_id.in_(members))
        .group_by(runs.c.session_id)
        .subquery()
    )
    asked = (
        select(
            open_calls.c.session_id,
            func.sum(case((open_calls.c.kind == APPROVAL, 1), else_=0)).label("approvals"),
            func.sum(case((open_calls.c.kind == QUESTION, 1), else_=0)).label("questions"),
            func.sum(case((open_calls.c.kind == CLARIFICATION, 1), else_=0)).label("asks"),
        )
        .where(open_calls.c.session_id.in_(members), open_calls.c.state == OPEN)
        .group_by(open_calls.c.session_id)
        .subquery()
    )
    return (
        select(
            *COLUMNS,
            lanes.c.gate,
            func.coalesce(lanes.c.wants_ms, lanes.c.ready_ms).label("due_ms"),
            lanes.c.active_run,
            _active.c.state.label("run_state"),
            case((live, used.c.used_steps), else_=agents.c.steps),
            case((live, used.c.used_tokens), else_=agents.c.input_tokens + agents.c.output_tokens),
            case((live, used.c.used_cost), else_=agents.c.cost_usd),
            case((live, used.c.any_taint), else_=_TAINTED),
            used.c.queued_runs,
            case((live, calls.c.used_calls), else_=agents.c.tool_calls),
            asked.c.approvals,
            asked.c.questions,
            asked.c.asks,
            _newest.c.created_ms.label("newest_ms"),
            # Few have one, and it is looked for in those alone that may.
            case(((used.c.errors > 0) | _FAILED, _ERROR)).label("last_error"),
            _SAID.label("last_said"),
        )
        .join(lanes, lanes.c.session_id == agents.c.session_id)
        .outerjoin(_active, _active.c.id == lanes.c.active_run)
        .outerjoin(used, used.c.session_id == agents.c.session_id)
        .outerjoin(calls, calls.c.session_id == agents.c.session_id)
        .outerjoin(asked, asked.c.session_id == agents.c.session_id)
        .outerjoin(
            _newest,
            live
            & (_newest.c.session_id == agents.c.session_id)
            & (_newest.c.seq == lanes.c.message_seq),
        )
        .where(wanted)
        .order_by(agents.c.tree_id, agents.c.place)
    )


_live = agents.alias("live")
_OF_TREE = hot(_query(agents.c.tree_id == bindparam("the_tree")))
_OF_STEP = hot(
    _query((agents.c.run_id == bindparam("the_run")) & (agents.c.step == bindparam("the_step")))
)
_AT_WORK = hot(_query(agents.c.tree_id.in_(select(_live.c.tree_id).where(text(LIVE)))))


def of_tree(conn: Connection, tree_id: str) -> Sequence[AgentRow]:
    """All that were ever spawned below a root, in that order."""
    return [_row(row) for row in _OF_TREE.rows(conn, the_tree=tree_id)]


def of_step(conn: Connection, run_id: str, step: int) -> Sequence[AgentRow]:
    """Those that one step of a run spawned, in that order."""
    return [_row(row) for row in _OF_STEP.rows(conn, the_run=run_id, the_step=step)]


def at_work(conn: Connection) -> Sequence[AgentRow]:
    """Those of every tree in which somebody is at work."""
    return [_row(row) for row in _AT_WORK.rows(conn)]


def _row(row: Sequence[Any]) -> AgentRow:
    agent = Agent(*row[: len(COLUMNS)])
    gate, due, run_id, state, steps, tokens, cost, tainted, *rest = row[len(COLUMNS) :]
    queued, calls, approvals, questions, asks, newest_ms, error, said = rest
    return AgentRow(
        agent=agent,
        gate=gate,
        run=None if state is None else RunState(state),
        run_id=run_id,
        due=due is not None,
        steps=int(steps or 0),
        tokens=int(tokens or 0),
        cost_usd=cost,
        tainted=bool(tainted),
        tool_calls=int(calls or 0),
        queued=int(queued or 0),
        approvals=int(approvals or 0),
        questions=int(questions or 0),
        asks=int(asks or 0),
        error=error,
        said="" if said is None else _text(said),
        active_ms=max(agent.created_ms, newest_ms or 0, agent.settled_ms or 0),
    )


def _text(payload: str) -> str:
    message = kept_message(payload)
    return message.text if isinstance(message, AssistantMessage) else ""
