"""Takes the subagents of a conversation out of the database. Statements only."""

from collections.abc import Sequence

from sqlalchemy import Connection, delete, select

from runtime.features.subagents.tables import agent_cards, agent_results, agent_waits, agents
from runtime.sessions.tables import runs, seen_files


def erase(conn: Connection, session_ids: Sequence[str]) -> None:
    """Delete what is kept of these sessions as agents, and of what they spawned."""
    own = select(runs.c.id).where(runs.c.session_id.in_(session_ids))
    conn.execute(delete(agent_cards).where(agent_cards.c.run_id.in_(own)))
    either = agent_waits.c.session_id.in_(session_ids) | agent_waits.c.other_id.in_(session_ids)
    conn.execute(delete(agent_waits).where(either))
    for table in (seen_files, agent_results, agents):
        conn.execute(delete(table).where(table.c.session_id.in_(session_ids)))
