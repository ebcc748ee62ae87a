"""What a child shares with its parent, and where its files are (SUB-17).

What the call says counts before what the definition says; a child of a child in a worktree works
in that worktree, unless it asks for one of its own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from runtime.features.subagents.rows import tree_facts
from runtime.features.subagents.rows.agents import Agent, Isolation
from runtime.features.subagents.spawn.spawn_arguments import Problem, WorkspaceName
from runtime.sessions import seen_files
from runtime.sessions.seen_files import Stamp
from runtime.store import Connection


@dataclass(frozen=True, slots=True)
class Placing:
    """What a spawn says about isolation, and what was looked up for it. `seen` is what the spawner
    saw of its files. `base` is the commit at which a worktree would begin; where there can be none
    `refused` says why."""

    isolation: Isolation | None = None
    workspace: WorkspaceName | None = None
    seen: Mapping[str, Stamp] = field(default_factory=dict)
    base: str | None = None
    refused: str = ""


@dataclass(frozen=True, slots=True)
class Defined:
    """What the definition of a type says about it."""

    isolation: Isolation | None = None
    worktree: bool = False


def wants_worktree(placing: Placing, defined: Defined) -> bool:
    """Whether a child gets a worktree of its own."""
    if placing.workspace is None:
        return defined.worktree
    return placing.workspace == "worktree"


def problems(placing: Placing, kinds: Sequence[Defined]) -> Sequence[Problem]:
    """What is wrong with where the children are to be."""
    if placing.refused and any(wants_worktree(placing, one) for one in kinds):
        return [Problem("workspace", placing.refused)]
    return []


def placed(agent: Agent, parent: Agent | None, placing: Placing, defined: Defined) -> Agent:
    """A new agent with what it shares and where it is."""
    agent = replace(agent, isolation=placing.isolation or defined.isolation or "full")
    if wants_worktree(placing, defined):
        mine = agent.session_id
        return replace(agent, worktree=mine, base=placing.base, tree_state="open")
    return replace(agent, worktree=parent.worktree if parent else None)


def give_seen(conn: Connection, agent: Agent, placing: Placing) -> None:
    """Let a new agent know what its spawner saw; one that shares has the record itself."""
    if agent.isolation != "shared":
        seen_files.give(conn, agent.session_id, placing.seen)
        return
    owner = tree_facts.sharing(conn, agent.parent_id).owner
    seen_files.keep(conn, owner, placing.seen)
