"""Sums over runs: what a session used, how many runs are in which state.

`load` is read at each scrape of the metrics, so each of its queries reads a partial index and costs
what is open now, however many sessions and runs there ever were.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sqlalchemy import (
    ColumnElement,
    Connection,
    Text,
    func,
    literal_column,
    or_,
    select,
)

from runtime.domain.runs import ACTIVE, RunState, Usage
from runtime.sessions.lanes import below as sessions_below
from runtime.sessions.lanes import tree
from runtime.sessions.runs import QUEUED
from runtime.sessions.tables import lanes, open_calls, runs

# Written out, and in the order of the index: a partial index is used for what it says itself.
_ACTIVE = [literal_column(f"'{state.value}'", Text) for state in RunState if state in ACTIVE]
_QUEUED_LANES = (
    select(func.count().label("runs"))
    .where(runs.c.state == QUEUED)
    .group_by(runs.c.session_id)
    .subquery()
)


@dataclass(frozen=True, slots=True)
class Load:
    """What is open now. `runs` by state, ended ones left out; `deepest` is how many runs wait in
    the lane where most do; `ready` are lanes whose head may start, now or after a pause."""

    runs: Mapping[str, int]
    deepest: int
    ready: int
    open_calls: int


def of_session(conn: Connection, session_id: str) -> Usage:
    """Tokens and cost of all runs of a session."""
    return _sum(conn, runs.c.session_id == session_id)


def below(conn: Connection, session_id: str) -> Usage:
    """The same of all runs below a session that is the root of a tree."""
    return _sum(conn, runs.c.session_id.in_(sessions_below(session_id)))


def of_tree(conn: Connection, session_id: str) -> Usage:
    """The same of a session and all below it."""
    return _sum(conn, runs.c.session_id.in_(tree(session_id)))


def of_payer(conn: Connection, run_id: str, paid: Collection[str]) -> Usage:
    """The same of a run and of the sessions that spend on its account."""
    return _sum(conn, or_(runs.c.id == run_id, runs.c.session_id.in_(paid)))


def _sum(conn: Connection, which: ColumnElement[bool]) -> Usage:
    row = conn.execute(
        select(
            func.coalesce(func.sum(runs.c.input_tokens), 0),
            func.coalesce(func.sum(runs.c.output_tokens), 0),
            func.coalesce(func.sum(runs.c.cached_tokens), 0),
            func.sum(runs.c.cost_usd),
        ).where(which)
    ).one()
    return Usage(
        input_tokens=int(row[0]),
        output_tokens=int(row[1]),
        cached_tokens=int(row[2]),
        cost_usd=row[3],
    )


def runs_by_state(conn: Connection) -> Mapping[str, int]:
    """How many runs are in each state."""
    rows = conn.execute(select(runs.c.state, func.count()).group_by(runs.c.state))
    return {row[0]: row[1] for row in rows}


def load(conn: Connection) -> Load:
    """See `Load`."""
    active = conn.execute(
        select(runs.c.state, func.count()).where(runs.c.state.in_(_ACTIVE)).group_by(runs.c.state)
    )
    by_state = {row[0]: row[1] for row in active}
    waiting = conn.execute(
        select(
            func.coalesce(func.sum(_QUEUED_LANES.c.runs), 0),
            func.coalesce(func.max(_QUEUED_LANES.c.runs), 0),
        )
    ).one()
    ready = conn.execute(
        select(func.count()).select_from(lanes).where(lanes.c.ready_ms.is_not(None))
    ).scalar_one()
    opened = conn.execute(
        # Of a column that only the index of the open ones holds, so that no other is read.
        select(func.count(func.coalesce(open_calls.c.expires_ms, 0))).where(
            open_calls.c.state == literal_column("'open'", Text)
        )
    ).scalar_one()
    by_state[RunState.QUEUED.value] = int(waiting[0])
    return Load(by_state, int(waiting[1]), ready, opened)
