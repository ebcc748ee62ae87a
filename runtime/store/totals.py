"""Sums over runs: what a session used, how many runs are in which state."""

from collections.abc import Mapping

from sqlalchemy import Connection, func, select

from runtime.domain.runs import Usage
from runtime.store.tables import runs


def of_session(conn: Connection, session_id: str) -> Usage:
    """Tokens and cost of all runs of a session."""
    row = conn.execute(
        select(
            func.coalesce(func.sum(runs.c.input_tokens), 0),
            func.coalesce(func.sum(runs.c.output_tokens), 0),
            func.coalesce(func.sum(runs.c.cached_tokens), 0),
            func.sum(runs.c.cost_usd),
        ).where(runs.c.session_id == session_id)
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
