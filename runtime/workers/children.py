"""The keeper of children: ends those that are to end or late, starts those that wait for nobody,
gives out slots (SUB-11 to SUB-13, SUB-19) and keeps the cards of batches up to date.

Each is a unit of its own; any process may do it.
It acts on a signal and on a tick's look, so that a lost signal costs one tick.
"""

import asyncio
from functools import partial

import structlog

from runtime.domain.errors import StoreUnavailable
from runtime.ports.bus import CANCEL, CHILDREN, EVENTS, OUTBOX, RUNS, Bus
from runtime.ports.clock import Clock
from runtime.store import Database, agent_cards, agent_deadlines, agents, slots
from runtime.store.due import Due
from runtime.subagents import cards, children, lingering
from runtime.workers.looks import Looks
from runtime.workers.wake import Wake

log = structlog.get_logger(__name__)


class ChildKeeper:
    """Runs in every process that has turns. `most` children run at once, 0: any number."""

    def __init__(
        self, database: Database, bus: Bus, clock: Clock, looks: Looks, *, most: int
    ) -> None:
        self._database = database
        self._bus = bus
        self._looks = looks
        self._most = most
        self._wake = Wake(clock)

    async def run(self) -> None:
        """Care for children until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._listen(), name="children signals")
            self._wake.set()
            with self._looks.for_runs(self._tell):
                while True:
                    await self._wake.wait(None)
                    try:
                        while await self._round():
                            pass
                    except StoreUnavailable as error:
                        log.warning("children_wait", reason=str(error))

    async def _listen(self) -> None:
        async with self._bus.subscribe(CHILDREN) as signals:
            async for _signal in signals:
                self._wake.set()

    def _tell(self, due: Due) -> None:
        if due.children:
            self._wake.set()

    async def _round(self) -> bool:
        """Everything that is to be done now, once; True where it may have made more of it."""
        database, did = self._database, False
        await self._time_is_over()
        for session_id in await database.read(agents.stopped):
            did = await self._stop(session_id) or did
        for session_id in await database.read(agents.startable):
            work = partial(children.start, session_id=session_id)
            if await database.write(work, name="child-start"):
                did = True
                self._bus.publish(EVENTS, {"session_id": session_id})
        if await database.read(slots.wanted):
            granted = await database.write(
                lambda conn: slots.grant(conn, most=self._most), name="child-slots"
            )
            did = did or granted == slots.AT_ONCE
            if granted:
                self._bus.publish(RUNS, {})
        for card_id in await database.read(agent_cards.due):
            if await database.write(partial(cards.care, card_id=card_id), name="child-card"):
                self._bus.publish(OUTBOX, {})
        return did

    async def _time_is_over(self) -> None:
        """Let those end that are late, and those go on that have waited for others long enough."""
        database = self._database
        for session_id in await database.read(agent_deadlines.overdue):
            work = partial(agent_deadlines.end, session_id=session_id)
            await database.write(work, name="child-late")
        for call in await database.read(lingering.over):
            if await database.write(partial(lingering.end, call=call), name="child-waited"):
                self._bus.publish(EVENTS, {"session_id": call.session_id})

    async def _stop(self, session_id: str) -> bool:
        """End one child; False where its worker was told to before, and is still at it, and so
        were its own children."""
        work = partial(children.stop, session_id=session_id)
        stopped = await self._database.write(work, name="child-stop")
        for run_id in stopped.running:
            self._bus.publish(CANCEL, {"run_id": run_id, "reason": stopped.reason})
        self._bus.publish(EVENTS, {"session_id": session_id})
        if not stopped.running:
            # Its parent may wait for nothing else any more.
            self._bus.publish(RUNS, {})
        return not stopped.running or stopped.children > 0
