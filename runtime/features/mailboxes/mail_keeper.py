"""The keeper of mailboxes: notes what was read, and makes dead letters of what will not be.

It runs in every process that has turns, sleeps until the next message expires, and is woken when a
message comes or something happens where one waits. The tick's look finds what no signal told of.
"""

from functools import partial

import structlog

from runtime.domain.errors import StoreUnavailable
from runtime.engine.feature import FeatureServices
from runtime.features.mailboxes import delivery, rows
from runtime.features.mailboxes.rows import MAILBOXES_DUE
from runtime.ports.bus import EVENTS, MAIL
from runtime.process.wakeup import Wake
from runtime.sessions.due_work import Due

log = structlog.get_logger(__name__)


class MailKeeper:
    """Each mailbox is settled in a unit of its own, which looks again at what it changes."""

    def __init__(self, services: FeatureServices) -> None:
        self._units = services.units
        self._looks = services.looks
        self._wake = Wake(services.clock)
        self._watched: frozenset[str] = frozenset()

    async def keep(self) -> None:
        """Settle messages until cancelled."""
        with self._looks.for_feature(MAILBOXES_DUE, self._tell):
            while True:
                left_ms = None
                try:
                    left_ms = await self._round()
                except StoreUnavailable as error:
                    log.warning("mailboxes_wait", reason=str(error))
                await self._wake.wait(None if left_ms is None else left_ms / 1000)

    async def listen(self) -> None:
        """Hear of new messages, and of what happens where some wait, until cancelled."""
        async with self._units.bus.subscribe(MAIL, EVENTS) as signals:
            async for signal in signals:
                new = signal.topic == MAIL or signal.gap
                if new or signal.data.get("session_id") in self._watched:
                    self._wake.set()

    def _tell(self, due: Due) -> None:
        if MAILBOXES_DUE.name in due.features:
            self._wake.set()

    async def _round(self) -> int | None:
        """Settle all that is due; the milliseconds until more will be, None where no time is
        known."""
        read = self._units.database.read
        while found := await read(rows.unsettled):
            settled = 0
            for session_id in found:
                work = partial(delivery.settle, session_id=session_id)
                settled += await self._units.run(work, name="mailbox-settle")
            if not settled:
                # Another process was faster.
                break
        self._watched = await read(rows.watched)
        return await read(rows.left_ms)
