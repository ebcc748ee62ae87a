"""What holds for a child now because of the agents above it: allowed rules, and the mode (SUB-17).

A child has copies of what its parent had at the spawn. One that is ``selective`` or ``shared`` is
also reached by what its parent is given later: that is looked up, so that it holds only as long as
it does for the parent. The mode that a person sets in a chat is looked up for every child: where
they say that nothing is to be changed, no subagent that is there already changes anything (POL-2).
"""

from dataclasses import replace

from sqlalchemy import Connection

from runtime.domain.decisions import narrower_of
from runtime.features.subagents.rows import agents
from runtime.sessions import sessions
from runtime.sessions.sessions import Session


def reached(conn: Connection, session: Session) -> Session:
    """A session with the grants and the mode that hold for it now; nothing is asked for one
    without parents."""
    if session.parent_id is None:
        return session
    grants, mode, shares = dict.fromkeys(session.grants), session.mode, True
    agent = agents.find(conn, session.id)
    while agent is not None:
        above = sessions.get(conn, agent.parent_id)
        mode = narrower_of(mode, above.mode)
        shares = shares and agent.isolation != "full"
        if shares:
            grants |= dict.fromkeys(above.grants)
        agent = agents.find(conn, above.id) if above.parent_id is not None else None
    return replace(session, grants=tuple(grants), mode=mode)
