"""Who may change an agent that is there: tell it something, or end it (POL-4).

An agent belongs to the person for whose run it was started. It may also work for others, who told
it something; what is done to it is done to their work too. Everybody in its tree may look at it.
This refuses and changes nothing; its refusals go to the model, and say what it can do instead.
"""

from collections.abc import Sequence
from typing import Final

from runtime.domain.errors import Forbidden
from runtime.domain.people import Speaker, Trust, trusted_less
from runtime.features.subagents.agent_selectors import below
from runtime.features.subagents.rows import agents
from runtime.features.subagents.rows.agents import Agent
from runtime.sessions import runs
from runtime.store import Connection

LESS: Final = (
    "{name} works for somebody who may do more than the person whom you answer, so this person may "
    "not change what it does. Look at it with show or output, and tell the person to ask an owner."
)
NOT_THEIRS: Final = (
    "{name} was started for somebody else, so the person whom you answer may not stop it. Look at "
    "it with show or output, and tell the person to ask whoever started it, or an owner."
)


def check_tell(conn: Connection, agent: Agent, caller: Speaker) -> None:
    """Raise `Forbidden` where the caller is trusted less than whom the agent was started for. The
    words of somebody else with the same trust get a run of their own (`agent_messages`)."""
    _check_trust(agent, caller, [_started_for(conn, agent)])


def check_stop(conn: Connection, agent: Agent, caller: Speaker) -> None:
    """Raise `Forbidden` unless the agent was started for the caller, who is trusted no less than
    anybody for whom it or one below it works; owners stop all."""
    if caller.trust is Trust.OWNER:
        return
    tree = agents.of_tree(conn, agent.tree_id)
    ended = [one.session_id for one in below(tree, agent.session_id) if not one.settled]
    at_work = agents.speakers_at_work(conn, [agent.session_id, *ended])
    started_for = _started_for(conn, agent)
    _check_trust(agent, caller, [started_for, *at_work])
    if not started_for.is_same_person(caller):
        raise Forbidden(NOT_THEIRS.format(name=agent.name))


def _check_trust(agent: Agent, caller: Speaker, others: Sequence[Speaker]) -> None:
    if any(trusted_less(caller.trust, one.trust) for one in others):
        raise Forbidden(LESS.format(name=agent.name))


def _started_for(conn: Connection, agent: Agent) -> Speaker:
    return runs.get(conn, agent.run_id).speaker
