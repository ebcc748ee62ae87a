"""The keeper of worktrees: those of agents that ended stay if anything changed in them, and are
removed if not (SUB-17). Any process may do it; what one leaves, the next that starts finds.
"""

from functools import partial

import structlog

from runtime.domain.errors import StoreUnavailable, ToolError
from runtime.features.subagents.files.worktrees import Worktrees
from runtime.features.subagents.rows import agents, agents_due
from runtime.features.subagents.rows.agents import TreeState
from runtime.ports.bus import CHILDREN, Bus
from runtime.store import Database

log = structlog.get_logger(__name__)


class WorktreeKeeper:
    """Looks when an agent may have ended. A lost signal costs disk until the next one."""

    def __init__(self, database: Database, bus: Bus, worktrees: Worktrees) -> None:
        self._database = database
        self._bus = bus
        self._worktrees = worktrees

    async def run(self) -> None:
        """Care for worktrees until cancelled."""
        async with self._bus.subscribe(CHILDREN) as signals:
            await self._round()
            async for _signal in signals:
                await self._round()

    async def _round(self) -> None:
        try:
            for session_id, base in await self._database.read(agents_due.left_trees):
                await self._finish(session_id, base)
        except StoreUnavailable as error:
            log.warning("worktrees_wait", reason=str(error))

    async def _finish(self, session_id: str, base: str) -> None:
        try:
            await self._worktrees.finish(session_id, base, self)
        except (ToolError, OSError) as error:
            # It stays, which costs disk and loses nothing.
            log.warning("worktree_left", session_id=session_id, reason=str(error))

    async def left(self, session_id: str) -> bool:
        """Whether nobody works in a worktree any more."""
        return await self._database.read(partial(agents_due.tree_left, session_id=session_id))

    async def ended(self, session_id: str, *, kept: bool) -> None:
        """It stays, or is gone."""
        state: TreeState = "kept" if kept else "gone"
        unit = partial(agents.change, session_id=session_id, tree_state=state)
        await self._database.write(unit, name="worktree-ended")
