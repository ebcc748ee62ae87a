"""The keeper of children: ends those that are to end or late, starts those that wait for nobody,
gives out slots (SUB-11 to SUB-13, SUB-19) and keeps the cards of batches up to date.

Each is a unit of its own; any process may do it.
It acts on a signal and on a tick's look, so that a lost signal costs one tick.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import structlog

from runtime.domain.errors import StoreUnavailable
from runtime.features.subagents import batch_card, slots
from runtime.features.subagents.ends import child_stop
from runtime.features.subagents.rows import agents_due, batch_cards
from runtime.features.subagents.rows import slots as slot_rows
from runtime.features.subagents.rows.agents_due import SUBAGENTS_DUE
from runtime.features.subagents.spawn import children
from runtime.features.subagents.waits import agent_waits
from runtime.ports.bus import CHILDREN, OUTBOX
from runtime.ports.clock import Clock
from runtime.process.due_poll import Looks
from runtime.process.wakeup import Wake
from runtime.sessions.due_work import Due
from runtime.sessions.open_calls import OpenCall
from runtime.sessions.unit import Units
from runtime.store import Connection

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Found:
    """What there is to do. Each unit looks again at what it changes, so this may be old by then."""

    late: Sequence[str]
    stopped: Sequence[str]
    startable: Sequence[str]
    waited: Sequence[OpenCall]
    wanted: bool
    cards: Sequence[str]


def _look(conn: Connection) -> _Found:
    """In one reading, because it is the way from a spawn to the child's first step."""
    return _Found(
        late=agents_due.overdue(conn),
        stopped=agents_due.stopped(conn),
        startable=agents_due.startable(conn),
        waited=agent_waits.over(conn),
        wanted=slot_rows.wanted(conn),
        cards=batch_cards.due(conn),
    )


class ChildKeeper:
    """Runs in every process that has turns. `most` children run at once, 0: any number."""

    def __init__(self, units: Units, clock: Clock, looks: Looks, *, most: int) -> None:
        self._units = units
        self._looks = looks
        self._most = most
        self._wake = Wake(clock)

    async def care(self) -> None:
        """Care for children until cancelled."""
        self._wake.set()
        with self._looks.for_feature(SUBAGENTS_DUE, self._tell):
            while True:
                await self._wake.wait(None)
                try:
                    while await self._round():
                        pass
                except StoreUnavailable as error:
                    log.warning("children_wait", reason=str(error))

    async def listen(self) -> None:
        """Hear of children that there may be something to do for, until cancelled."""
        async with self._units.bus.subscribe(CHILDREN) as signals:
            async for _signal in signals:
                self._wake.set()

    def _tell(self, due: Due) -> None:
        if SUBAGENTS_DUE.name in due.features:
            self._wake.set()

    async def _round(self) -> bool:
        """Everything that is to be done now, once; True where it may have made more of it."""
        units, database, did = self._units, self._units.database, False
        found = await database.read(_look)
        for session_id in found.late:
            work = partial(agents_due.end_late, session_id=session_id)
            did = await database.write(work, name="child-late") or did
        for session_id in found.stopped:
            did = await self._stop(session_id) or did
        for session_id in found.startable:
            work = partial(children.start, session_id=session_id)
            did = await units.run(work, name="child-start") or did
        for call in found.waited:
            await units.run(partial(agent_waits.end, call=call), name="child-waited")
        if found.wanted or found.startable:
            grant = partial(slots.grant, most=self._most)
            # A whole round of them may have left others that want one.
            did = await units.run(grant, name="child-slots") == slots.AT_ONCE or did
        for card_id in found.cards:
            if await database.write(partial(batch_card.care, card_id=card_id), name="child-card"):
                units.bus.publish(OUTBOX, {})
        return did

    async def _stop(self, session_id: str) -> bool:
        """End one child; False where its worker was told to before, and is still at it, and so
        were its own children."""
        work = partial(child_stop.stop, session_id=session_id)
        stopped = await self._units.run(work, name="child-stop")
        return not stopped.running or stopped.elsewhere > 0
