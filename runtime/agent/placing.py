"""What a spawn needs to know about where its children will be, looked up before its unit."""

from functools import partial

from runtime.agent.agent_types import Types
from runtime.agent.places import Places
from runtime.domain.errors import ToolError
from runtime.store import Database, agents
from runtime.subagents.isolation import Defined, Placing, wants_worktree
from runtime.tools.builtin.spawning import SpawnArguments


async def placing_of(
    arguments: SpawnArguments, types: Types, session_id: str, places: Places, database: Database
) -> Placing:
    """Isolation as the call says it, what its session saw, and where a worktree would begin, if
    one is asked for at all."""
    seen = places.seen(session_id)
    asked = Placing(arguments.isolation, arguments.place, seen)
    kinds = [types.profiles.get(one.type) for one in arguments.request.wanted]
    if not any(wants_worktree(asked, one.isolation if one else Defined()) for one in kinds):
        return asked
    own = await database.read(partial(agents.find, session_id=session_id))
    base, refused = None, ""
    try:
        base = await places.base(own.worktree if own else None)
    except ToolError as error:
        refused = f"there can be no worktree: {error}"
    return Placing(arguments.isolation, arguments.place, seen, base, refused)
