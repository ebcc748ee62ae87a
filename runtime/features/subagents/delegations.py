"""The work that sessions gave subagents, as the message path sees it."""

from collections.abc import Sequence

from runtime.features.subagents.rows import agents, batch_cards, tree_facts
from runtime.features.subagents.rows.agents import Agent
from runtime.ports import bus
from runtime.sessions import open_calls
from runtime.sessions.inputs import Input
from runtime.sessions.unit import Delegation, Delegations, Sharing, Unit
from runtime.store import Connection


class SubagentDelegations(Delegations):
    """The agents below a session."""

    def below(self, conn: Connection, session_id: str) -> Sequence[Delegation]:
        """All that were ever spawned below a root, in that order."""
        return [_delegation(one) for one in agents.of_tree(conn, session_id)]

    def sender_of(self, conn: Connection, heard: Input) -> str | None:
        """The agent that a handoff or a message is from, or that asks its parent."""
        kind, _, rest = heard.identity.partition(":")
        if kind == "asks":
            asked = open_calls.get(conn, rest)
            return asked.session_id if asked else None
        return rest.partition(":")[0] if kind in ("handoff", "mail") else None

    def paid_by(self, conn: Connection, run_id: str) -> Sequence[str]:
        """The agents that count on a run's budget."""
        return tree_facts.paid_by(conn, run_id)

    def sharing(self, conn: Connection, session_id: str) -> Sharing:
        """The record of files of the nearest one above that shares with nobody."""
        return tree_facts.sharing(conn, session_id)

    def card_text(self, conn: Connection, card_id: str) -> str:
        """What the card of a batch says by now."""
        return batch_cards.shown(conn, card_id)

    def stop(self, unit: Unit, session_id: str, reason: str, run_id: str | None = None) -> int:
        """Mark the children of a session, or of one run of it, that is being stopped; how many."""
        marked = agents.mark_stopped(unit.conn, session_id, reason, run_id=run_id)
        if marked:
            unit.say(bus.CHILDREN)
        return marked

    def erase(self, conn: Connection, session_ids: Sequence[str]) -> None:
        """Remove the agents among sessions that are deleted, and what they left."""
        agents.erase(conn, session_ids)


def _delegation(agent: Agent) -> Delegation:
    there = agent.tree_state in ("open", "clean")
    return Delegation(
        session_id=agent.session_id,
        parent_id=agent.parent_id,
        name=agent.name,
        run_id=agent.run_id,
        created_ms=agent.created_ms,
        payer=agent.payer,
        live=not agent.settled,
        unfinished="a subagent's worktree is still there: settle it first" if there else "",
    )
