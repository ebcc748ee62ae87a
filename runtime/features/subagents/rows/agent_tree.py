"""A tree of subagents read in one statement, whatever its size; and taking up one that settled."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Select,
    and_,
    bindparam,
    case,
    func,
    literal_column,
    or_,
    select,
    text,
    true,
    tuple_,
)

from runtime.domain.runs import RunState
from runtime.domain.transcript import AssistantMessage
from runtime.features.subagents.rows.agents import COLUMNS, HELD, LIVE, Agent
from runtime.features.subagents.status_words import AT_WORK, STANDINGS, AgentStatus
from runtime.features.subagents.tables import agents
from runtime.sessions.open_calls import APPROVAL, CLARIFICATION, QUESTION
from runtime.sessions.runs import QUEUED
from runtime.sessions.tables import lanes, messages, open_calls, runs, sessions, tool_calls
from runtime.store.database import DIALECTS, STORE_TIME, DialectName, clock_ms
from runtime.store.dialect import dialect_name
from runtime.store.payloads import kept_message
from runtime.store.row_values import quick
from runtime.store.statements import Hot, hot


@quick
class AgentRow:
    """One agent and its `standing` (`status_words`), with the `run` that has its lane (`run_id`).
    What it used counts every run so far, also while it is at work.

    `queued` runs wait in it, and so many approvals and questions wait for a person; it `asks` its
    parent so many questions, all in the run that has its lane. `error` is that of its last run that
    had one, `said` its last words while it is at work, `active_ms` when it last did something.
    """

    agent: Agent
    standing: str
    run: RunState | None
    run_id: str | None
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


def _standing(on: DialectName, asks: ColumnElement[int]) -> ColumnElement[str]:
    """Where an agent stands, whose lane and active run are joined; the words of `STANDINGS`."""
    due = func.coalesce(lanes.c.wants_ms, lanes.c.ready_ms)
    later = and_(agents.c.retries > 0, due > select(STORE_TIME[on]).scalar_subquery())
    return case(
        (agents.c.settled_ms.is_not(None), func.coalesce(agents.c.status, "settled")),
        (agents.c.stop.is_not(None), "stopping"),
        (asks > 0, "waiting_for_user_input"),
        *((_active.c.state == state.value, word) for state, word in AT_WORK.items()),
        (lanes.c.gate == HELD, "waiting"),
        (later, "retrying"),
        (due.is_not(None), "queued"),
        else_="awaiting",
    )


def _asked(members: Select[Any]) -> FromClause:
    """What these sessions wait for that somebody is to say, by kind."""
    return (
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


def _query(on: DialectName, wanted: ColumnElement[bool]) -> Select[Any]:
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
    asked = _asked(members)
    return (
        select(
            *COLUMNS,
            _standing(on, asked.c.asks).label("standing"),
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
_AT_WORK: Final = agents.c.tree_id.in_(select(_live.c.tree_id).where(text(LIVE)))
_OF_TREE = {on: hot(_query(on, agents.c.tree_id == bindparam("the_tree"))) for on in DIALECTS}
_OF_STEP = {
    on: hot(
        _query(
            on, (agents.c.run_id == bindparam("the_run")) & (agents.c.step == bindparam("the_step"))
        )
    )
    for on in DIALECTS
}

_OF_SESSION = {
    on: hot(_query(on, agents.c.session_id == bindparam("the_session"))) for on in DIALECTS
}
_SAID_LAST = hot(
    select(messages.c.payload)
    .where(messages.c.session_id == bindparam("the_session"), messages.c.role == "assistant")
    .order_by(messages.c.seq.desc())
    .limit(literal_column("1"))
)
_LAST_ERROR = hot(
    select(runs.c.error)
    .where(runs.c.session_id == bindparam("the_session"), runs.c.error.is_not(None))
    .order_by(runs.c.seq.desc())
    .limit(literal_column("1"))
)


def of_session(conn: Connection, session_id: str) -> AgentRow | None:
    """The agent of one session; None where it is nobody's child."""
    row = _OF_SESSION[dialect_name(conn)].first(
        conn, the_session=session_id, clock_ms=clock_ms(conn)
    )
    return None if row is None else _row(row)


def sessions_in(
    conn: Connection, tree_id: str | None, *, after: str, most: int
) -> tuple[Sequence[str], int]:
    """Some of the sessions of a tree, with the one at its root, or of all sessions: those behind
    the id `after`, in the order of their ids; and how many there are in all."""
    wanted: ColumnElement[bool] = true()
    if tree_id is not None:
        below = select(agents.c.session_id).where(agents.c.tree_id == tree_id)
        wanted = or_(sessions.c.id == tree_id, sessions.c.id.in_(below))
    found = select(sessions.c.id).where(wanted, sessions.c.id > after)
    rows = conn.execute(found.order_by(sessions.c.id).limit(most))
    ids = [row.id for row in rows]
    return ids, conn.execute(select(func.count(sessions.c.id)).where(wanted)).scalar_one()


def said_last(conn: Connection, session_id: str) -> str:
    """The last message of a session's model; empty where it has none, or that had no words."""
    row = _SAID_LAST.first(conn, the_session=session_id)
    return "" if row is None else _text(row[0])


def last_error(conn: Connection, session_id: str) -> str:
    """The error of a session's last run that had one; empty where none had."""
    row = _LAST_ERROR.first(conn, the_session=session_id)
    return "" if row is None else row[0] or ""


def of_tree(conn: Connection, tree_id: str) -> Sequence[AgentRow]:
    """All that were ever spawned below a root, in that order."""
    found = _OF_TREE[dialect_name(conn)].rows(conn, the_tree=tree_id, clock_ms=clock_ms(conn))
    return [_row(row) for row in found]


def of_step(conn: Connection, run_id: str, step: int) -> Sequence[AgentRow]:
    """Those that one step of a run spawned, in that order."""
    found = _OF_STEP[dialect_name(conn)].rows(
        conn, the_run=run_id, the_step=step, clock_ms=clock_ms(conn)
    )
    return [_row(row) for row in found]


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which agents: those of a tree or, without one, of every tree in which somebody is at work;
    of these the live ones or the settled ones, and those of one status."""

    tree_id: str | None = None
    status: AgentStatus | None = None
    live: bool | None = None


@dataclass(frozen=True, slots=True)
class AgentPage:
    """Some of the agents that were chosen, and how many of all that were chosen stand where."""

    rows: Sequence[AgentRow]
    standings: Mapping[str, int]


def page(conn: Connection, chosen: Chosen, *, after: tuple[str, int], most: int) -> AgentPage:
    """In the order of trees and of spawning, behind the tree and place `after`. One statement,
    which reads no more than one row for each agent that is not on the page."""
    given: dict[str, object] = {} if chosen.tree_id is None else {"the_tree": chosen.tree_id}
    found = _page(dialect_name(conn), chosen.tree_id is not None, chosen.status, chosen.live).rows(
        conn,
        after_tree=after[0],
        after_place=after[1],
        most=most,
        clock_ms=clock_ms(conn),
        **given,
    )
    width = len(STANDINGS)
    counts = {word: int(count or 0) for word, count in zip(STANDINGS, found[0], strict=False)}
    # Where the page is empty, one row has the counts alone.
    there = [row for row in found if row[width] is not None]
    return AgentPage(
        rows=[_row(row[width:]) for row in there],
        standings={word: count for word, count in counts.items() if count},
    )


@cache
def _page(
    on: DialectName, of_tree: bool, status: AgentStatus | None, live: bool | None
) -> Hot[*tuple[Any, ...]]:
    """The statement of `page` for one form of what is chosen."""
    unsettled = agents.c.settled_ms.is_(None)
    wanted = agents.c.tree_id == bindparam("the_tree") if of_tree else _AT_WORK
    if live is not None:
        wanted = wanted & (unsettled if live else ~unsettled)
    asked = _asked(select(agents.c.session_id).where(wanted, unsettled))
    everybody = (
        select(
            agents.c.session_id,
            agents.c.tree_id,
            agents.c.place,
            _standing(on, asked.c.asks).label("standing"),
        )
        .outerjoin(lanes, unsettled & (lanes.c.session_id == agents.c.session_id))
        .outerjoin(_active, _active.c.id == lanes.c.active_run)
        .outerjoin(asked, asked.c.session_id == agents.c.session_id)
        .where(wanted)
        .cte("everybody")
    )
    # Without a status nothing is compared: that is a fifth of the time of a large tree.
    fits: ColumnElement[bool] = true()
    if status is not None:
        words = [word for word, said in STANDINGS.items() if said.agent == status]
        fits = or_(*(everybody.c.standing == word for word in words))
    # Grouped first: a case for each word and each agent takes a third of the time of a large tree.
    grouped = (
        select(everybody.c.standing, func.count().label("number"))
        .where(fits)
        .group_by(everybody.c.standing)
        .cte("grouped")
    )
    counts = select(
        *(
            func.sum(case((grouped.c.standing == word, grouped.c.number), else_=0)).label(word)
            for word in STANDINGS
        )
    ).cte("counts")
    # Without a status the page is read by the index of trees and places.
    source, among = (everybody, fits) if status is not None else (agents, wanted)
    shown = (
        select(source.c.session_id)
        .where(
            among,
            tuple_(source.c.tree_id, source.c.place)
            > tuple_(bindparam("after_tree"), bindparam("after_place")),
        )
        .order_by(source.c.tree_id, source.c.place)
        .limit(bindparam("most"))
        .cte("shown")
    )
    rows = _query(on, agents.c.session_id.in_(select(shown.c.session_id))).subquery("rows")
    return hot(
        select(*counts.c, *rows.c)
        .select_from(counts)
        .outerjoin(rows, true())
        .order_by(rows.c.tree_id, rows.c.place)
    )


def _row(row: Sequence[Any]) -> AgentRow:
    agent = Agent(*row[: len(COLUMNS)])
    standing, run_id, state, steps, tokens, cost, tainted, *rest = row[len(COLUMNS) :]
    queued, calls, approvals, questions, asks, newest_ms, error, said = rest
    return AgentRow(
        agent=agent,
        standing=standing,
        run=None if state is None else RunState(state),
        run_id=run_id,
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
