"""Where a child works: the workspace, or a git worktree, its own or one of an agent above it
(SUB-17)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from runtime.agent.working_folders import Places, Site
from runtime.domain.errors import ToolError
from runtime.features.subagents.files.worktrees import Worktrees, no_worktree
from runtime.features.subagents.rows import agents
from runtime.features.subagents.rows.agents import Agent, TreeState
from runtime.features.subagents.spawn.agent_types import Profile, Types
from runtime.features.subagents.spawn.isolation import Defined, Placing, wants_worktree
from runtime.features.subagents.spawn.spawn_arguments import SpawnArguments
from runtime.store import Connection, Database


@dataclass(frozen=True, slots=True)
class WorkPlaces:
    """The places of children among those of all sessions. There are no worktrees without the
    `worktrees`, because nothing runs git then."""

    database: Database
    places: Places
    worktrees: Worktrees | None = None

    async def enter(self, session_id: str) -> None:
        """Find where a child works, at the begin of its turn. Raises `ModelRejected` where it has a
        worktree that cannot be had."""
        owner = await self.database.read(partial(_home, session_id=session_id))
        self.places.work_in(session_id, None if owner is None else await self._tree(owner))

    async def leave(self, session_id: str) -> None:
        """Note whether anything changed in a child's own worktree, before its end is told."""
        if self.worktrees is None or not self.places.is_apart(session_id):
            return
        agent = await self.database.read(partial(agents.get, session_id=session_id))
        if agent.tree_state is None:
            return
        try:
            changed = await self.worktrees.changed(session_id, agent.base or "")
        except ToolError:
            # It stays, and the one who reads of it is told that nobody looked.
            return
        state: TreeState = "kept" if changed else "clean"
        unit = partial(agents.change, session_id=session_id, tree_state=state)
        await self.database.write(unit, name="worktree-seen")

    async def placing(self, arguments: SpawnArguments, types: Types, session_id: str) -> Placing:
        """Isolation as a spawn says it, what its session saw, and where a worktree would begin, if
        one is asked for at all."""
        asked = Placing(arguments.isolation, arguments.place, self.places.seen(session_id))
        kinds = [types.profiles.get(one.type) for one in arguments.wanted]
        if not any_worktree(asked, kinds):
            return asked
        own = await self.database.read(partial(agents.find, session_id=session_id))
        return await based(asked, self.worktrees, above=own.worktree if own else None)

    async def _tree(self, owner: Agent) -> Site:
        if self.worktrees is None:
            raise no_worktree("this process has no sandbox")
        return await self.worktrees.ensure(owner.session_id, owner.base or "")


def any_worktree(asked: Placing, kinds: Sequence[Profile | None]) -> bool:
    """Whether any child of these types gets a worktree of its own."""
    return any(wants_worktree(asked, one.isolation if one else Defined()) for one in kinds)


async def based(asked: Placing, worktrees: Worktrees | None, *, above: str | None) -> Placing:
    """A placing with the commit at which a worktree would begin, or why there can be none. The
    spawner works in the worktree `above`, or in the workspace."""
    try:
        if worktrees is None:
            raise ToolError("commands are not run by this process")
        return replace(asked, base=await worktrees.base(above))
    except ToolError as error:
        return replace(asked, refused=f"there can be no worktree: {error}")


def _home(conn: Connection, session_id: str) -> Agent | None:
    """The agent whose worktree one works in; None for one in the workspace."""
    agent = agents.find(conn, session_id)
    if agent is None or agent.worktree is None:
        return None
    return agents.get(conn, agent.worktree)
