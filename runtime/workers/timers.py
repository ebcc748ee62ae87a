"""The timer loop: what is due by the clock rather than by a message. One per deployment."""

import structlog

from runtime.domain.errors import StoreUnavailable
from runtime.inbox import claims, parking
from runtime.ports.bus import EVENTS, OUTBOX, RUNS, Bus
from runtime.ports.clock import Clock
from runtime.store import Connection, Database, open_calls

log = structlog.get_logger(__name__)

RECOVERY_S = 2.0


def take_over(conn: Connection) -> int:
    """Requeue runs whose worker's lease ran out; how many."""
    return len(claims.recover(conn))


def expire_due(conn: Connection) -> int:
    """Deny what waited too long for a person (APR-5); how many."""
    found = open_calls.expired(conn)
    for call in found:
        parking.expire(conn, call)
    return len(found)


class Timers:
    """Runs under the lease ``timers``."""

    def __init__(
        self, database: Database, bus: Bus, clock: Clock, *, every_s: float = RECOVERY_S
    ) -> None:
        self._database = database
        self._bus = bus
        self._clock = clock
        self._every_s = every_s

    async def run(self, _fence: int) -> None:
        """Look for what is due until cancelled. The units check again what they change."""
        while True:
            try:
                await self._round()
            except StoreUnavailable as error:
                log.warning("timers_wait", reason=str(error))
            await self._clock.sleep(self._every_s)

    async def _round(self) -> None:
        due = await self._database.read(claims.needs_care)
        if due.abandoned:
            await self._database.write(take_over, name="take-over")
            self._bus.publish(RUNS, {})
        if due.expired:
            await self._database.write(expire_due, name="expire")
            for topic in (RUNS, OUTBOX, EVENTS):
                self._bus.publish(topic, {})
