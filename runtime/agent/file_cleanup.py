"""Files of the gateway's own that nobody needs any more: removed now and then, in the background.

Whether one is needed is read from the rows of what it belongs to. Several processes may do so at
once.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import structlog

from runtime.agent.working_folders import Site
from runtime.domain.errors import StoreUnavailable
from runtime.ports.clock import Clock
from runtime.sessions import outbox, runs
from runtime.store import Database
from runtime.tools import outgoing_files, patch_notes
from runtime.tools.paths import PathGuard
from runtime.workspace.layout import ResolvedLayout

log = structlog.get_logger(__name__)

FIRST_S = 60.0
"""After the start, when people no longer wait for it."""
SWEEP_S = 3600.0


class Leftovers:
    """Removes copies of sent files `keep_s` after they were made, once nothing waits to be sent
    that needs them; and what a patch staged whose process died, once its run has ended. `others`
    are removed along with these."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        site: Site,
        *,
        keep_s: float,
        others: Sequence[Callable[[], Awaitable[object]]] = (),
    ) -> None:
        self._others = others
        self._database = database
        self._clock = clock
        self._site = site
        self._keep_ms = int(keep_s * 1000)

    async def run(self) -> None:
        """Look soon after the start and once an hour, until cancelled."""
        wait_s = FIRST_S
        while True:
            await self._clock.sleep(wait_s)
            wait_s = SWEEP_S
            try:
                await self.clear_sent()
                await self.clear_staged()
                for clear in self._others:
                    await clear()
            except StoreUnavailable as error:
                log.warning("leftovers_wait", reason=str(error))

    async def clear_sent(self) -> int:
        """Remove old copies of sent files; how many. Raises `StoreUnavailable`."""
        before_ms = self._clock.now_ms() - self._keep_ms
        needed = await self._database.read(outbox.unsettled_files)
        home = self._site.layout.home
        removed = await asyncio.to_thread(
            outgoing_files.sweep, home, before_ms=before_ms, needed=needed
        )
        if removed:
            log.info("sent_files_removed", files=removed)
        return removed

    async def clear_staged(self) -> int:
        """Remove what patches of ended runs staged; how many. Raises `StoreUnavailable`."""
        # Before the rows: a run has its row before its patch has anything.
        left = await asyncio.to_thread(patch_notes.runs_that_left, self._site.layout.home)
        over = await self._database.read(partial(runs.ended, run_ids=left))
        if not over:
            return 0
        guarded = PathGuard(ResolvedLayout(self._site.layout), self._site.roots)
        removed = await asyncio.to_thread(patch_notes.sweep, guarded, over)
        log.info("staged_files_removed", files=removed)
        return removed
