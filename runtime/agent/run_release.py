"""Giving runs back: what a turn could not finish goes on from its last step, here or elsewhere.

A run is given back under the fence that it was claimed under. The process may have lost its lease
and taken it again since, and then nobody else would look for the run.
"""

from collections.abc import Container
from functools import partial

import structlog

from runtime.domain.errors import StaleLease
from runtime.domain.runs import Holder
from runtime.sessions import claims, runs
from runtime.sessions.unit import Unit, Units

log = structlog.get_logger(__name__)


class Returns:
    """The runs of one process that wait to be given back, because the store was away."""

    def __init__(self, units: Units) -> None:
        self._units = units
        self._waiting: dict[str, Holder] = {}

    @property
    def waiting(self) -> bool:
        """Whether there are any."""
        return bool(self._waiting)

    def later(self, run_id: str, holder: Holder) -> None:
        """Give it back when the store answers again."""
        self._waiting[run_id] = holder

    async def now(self, run_id: str, holder: Holder) -> None:
        """Put a run back to the head of its lane. Raises `StoreUnavailable`."""

        def work(unit: Unit) -> None:
            run = runs.owned(unit.conn, run_id, holder)
            claims.release(unit, run, died=False)

        try:
            await self._units.run(work, name="release")
        except StaleLease:
            log.warning("run_lost", run_id=run_id)

    async def look(self, worker: str, live: Container[str]) -> None:
        """Find runs that are this worker's by their rows and that it does not run: those of a claim
        whose end it did not hear of. Raises `StoreUnavailable`."""
        for run_id, fence in await self._units.database.read(partial(runs.held_by, worker=worker)):
            if run_id not in live:
                log.warning("run_left", run_id=run_id)
                self.later(run_id, Holder(worker, fence))

    async def all_waiting(self) -> None:
        """Give back what waits. Raises `StoreUnavailable`; the rest waits on."""
        for run_id, holder in tuple(self._waiting.items()):
            await self.now(run_id, holder)
            del self._waiting[run_id]
