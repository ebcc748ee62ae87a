"""The rules that people allowed for a session, with those of the agents above it (SUB-17).

A child has copies of what its parent had at the spawn. One that is `selective` or `shared` is also
reached by what its parent is given later: that is looked up, so that it holds only as long as it
does for the parent.
"""

from collections.abc import Mapping
from dataclasses import replace

from sqlalchemy import Connection

from runtime.store import agents, sessions
from runtime.store.sessions import CHILD, Session


def reached(conn: Connection, session: Session) -> Session:
    """A session with the grants that hold for it now; nothing is asked for one without parents."""
    if not session.key.startswith(CHILD):
        return session
    grants = dict.fromkeys(session.grants)
    agent = agents.find(conn, session.id)
    while agent is not None and agent.isolation != "full":
        above = sessions.get(conn, agent.parent_id)
        grants |= dict.fromkeys(above.grants)
        agent = agents.find(conn, above.id)
    return replace(session, grants=tuple(grants))


def all_reached(conn: Connection, found: Mapping[str, Session]) -> Mapping[str, Session]:
    """As `reached`, for several by their ids."""
    return {session_id: reached(conn, one) for session_id, one in found.items()}
