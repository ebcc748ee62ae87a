"""What is due by the clock rather than by a message, and what is found after a worker died."""

import structlog

from runtime.domain.errors import StoreUnavailable
from runtime.ports.bus import EVENTS, OUTBOX, RUNS
from runtime.ports.clock import Clock
from runtime.process.due_poll import Looks
from runtime.process.wakeup import Wake
from runtime.sessions import claims, open_calls
from runtime.sessions.due_work import Due
from runtime.sessions.unit import Unit, Units

log = structlog.get_logger(__name__)


def expire_due(unit: Unit) -> bool:
    """End what waited too long for a person (APR-5) or for agents, the oldest of it; False where
    there is none. One a unit: it may need the lane of a parent behind that of its child."""
    found = open_calls.expired(unit.conn, limit=1)
    for call in found:
        unit.kinds.waits[call.kind].expire(unit, call)
    return bool(found)


class Takeovers:
    """Gives the runs of dead workers back to their lanes.

    It runs in every process and under no lease: whoever finds them may, and where the one that
    began with it dies too, the others need not wait for a lease of it to run out.
    """

    def __init__(self, units: Units, clock: Clock, looks: Looks) -> None:
        self._units = units
        self._wake = Wake(clock)
        self._looks = looks

    async def run(self) -> None:
        """Take over what is found until cancelled."""
        with self._looks.for_takeovers(self._tell):
            while True:
                await self._wake.wait(None)
                try:
                    await self._round()
                except StoreUnavailable as error:
                    log.warning("takeovers_wait", reason=str(error))

    def _tell(self, due: Due) -> None:
        if due.abandoned:
            self._wake.set()

    async def _round(self) -> None:
        while found := await self._units.run(claims.recover, name="take-over"):
            log.info("runs_taken_over", runs=found)


class Timers:
    """Ends what waited too long. Runs under the lease ``timers``."""

    def __init__(self, units: Units, clock: Clock, looks: Looks) -> None:
        self._units = units
        self._wake = Wake(clock)
        self._looks = looks

    async def run(self, _fence: int) -> None:
        """Do what is due until cancelled. The units check again what they change."""
        with self._looks.for_timers(self._tell):
            while True:
                await self._wake.wait(None)
                try:
                    await self._round()
                except StoreUnavailable as error:
                    log.warning("timers_wait", reason=str(error))

    def _tell(self, due: Due) -> None:
        if due.expired:
            self._wake.set()

    async def _round(self) -> None:
        while await self._units.run(expire_due, name="expire"):
            pass
        for topic in (RUNS, OUTBOX, EVENTS):
            self._units.bus.publish(topic, {})
