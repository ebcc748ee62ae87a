"""One look a tick for everything that waits in this process.

Wake-ups come over the bus at once, and may be lost; then the next look finds what they were about
(MSG-21). One statement asks for runs, for what the timers would do and for the outbox together, so
that an idle replica costs its database next to nothing (SCALE-3). Nothing is asked that nobody
here would do something about.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import TypeVar

import structlog

from runtime.domain.errors import StoreUnavailable
from runtime.ports.clock import Clock
from runtime.process.wakeup import TICK_S
from runtime.sessions import due_work
from runtime.sessions.due_work import Due, DueCheck, Place, Wanted
from runtime.store import Database

log = structlog.get_logger(__name__)

K = TypeVar("K")
Tell = Callable[[Due], None]
"""Called after each look, also when nothing was found: a tick has passed."""


class Looks:
    """Asks for whoever waits; each says so for as long as it does, by a `with` statement."""

    def __init__(self, database: Database, clock: Clock, *, every_s: float = TICK_S) -> None:
        self._database = database
        self._clock = clock
        self._every_s = every_s
        self._runs: list[Tell] = []
        self._takeovers: list[Tell] = []
        self._timers: list[Tell] = []
        self._features: dict[DueCheck, Tell] = {}
        self._accounts: dict[Place, Tell] = {}

    async def run(self) -> None:
        """Look once a tick until cancelled."""
        while True:
            await self._clock.sleep(self._every_s)
            wanted = Wanted(
                runs=bool(self._runs),
                abandoned=bool(self._takeovers),
                expired=bool(self._timers),
                features=tuple(sorted(self._features, key=lambda one: one.name)),
                accounts=tuple(sorted(self._accounts)),
            )
            if wanted == Wanted():
                continue
            try:
                found = await self._database.read(partial(due_work.look, wanted=wanted))
            except StoreUnavailable as error:
                log.warning("look_failed", reason=str(error))
                continue
            told = [*self._runs, *self._takeovers, *self._timers]
            told += [*self._features.values(), *self._accounts.values()]
            for tell in told:
                tell(found)

    def for_runs(self, tell: Tell) -> AbstractContextManager[None]:
        """Look for runs that could be claimed."""
        return _among(self._runs, tell)

    def for_takeovers(self, tell: Tell) -> AbstractContextManager[None]:
        """Look for runs that lost their worker."""
        return _among(self._takeovers, tell)

    def for_timers(self, tell: Tell) -> AbstractContextManager[None]:
        """Look for open calls whose time is over."""
        return _among(self._timers, tell)

    def for_feature(self, check: DueCheck, tell: Tell) -> AbstractContextManager[None]:
        """Look for what a feature looks after."""
        return _under(self._features, check, tell)

    def for_outbox(self, channel: str, account: str, tell: Tell) -> AbstractContextManager[None]:
        """Look for messages of one account."""
        return _under(self._accounts, (channel, account), tell)


@contextmanager
def _among(listening: list[Tell], tell: Tell) -> Iterator[None]:
    listening.append(tell)
    try:
        yield
    finally:
        listening.remove(tell)


@contextmanager
def _under(listening: dict[K, Tell], key: K, tell: Tell) -> Iterator[None]:
    listening[key] = tell
    try:
        yield
    finally:
        del listening[key]
