"""The keeper of schedules: fires those that are due and settles their runs, in every process that
has turns.

It sleeps until the next one is due, and is woken by a signal when another one is made or a run of
one goes on. The tick's look finds what no signal told of.
"""

import asyncio
import secrets
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import structlog

from runtime.domain.errors import GatehouseError, StoreUnavailable
from runtime.engine.feature import Admitted, FeatureServices
from runtime.features.schedules import dispatch, fires, kind, reminders, rows
from runtime.features.schedules.check_runner import CheckRunner
from runtime.features.schedules.checks import Claim
from runtime.features.schedules.dispatch import FOR_GOOD, Failure, Outcome
from runtime.features.schedules.fires import Fire
from runtime.features.schedules.retry import RetryPolicy
from runtime.features.schedules.rows import SCHEDULES_DUE
from runtime.ports.bus import EVENTS, SCHEDULES
from runtime.ports.clock import Timers
from runtime.process.wakeup import Wake
from runtime.sessions.due_work import Due
from runtime.sessions.unit import Units
from runtime.tools.erasure import erase_files

log = structlog.get_logger(__name__)

_RANDOM: Final = secrets.SystemRandom()


def random_jitter() -> float:
    """A number in [0, 1)."""
    return _RANDOM.random()


class ScheduleKeeper:
    """Any process may fire any schedule: a unit passes over those that another one holds."""

    def __init__(
        self,
        services: FeatureServices,
        policy: RetryPolicy,
        *,
        jitter: Callable[[], float] = random_jitter,
        timers: Timers | None = None,
    ) -> None:
        self._units: Units = services.units
        self._looks = services.looks
        self._admitted: Admitted = services.admitted
        self._workspace: Path = services.workspace.root
        self._policy = policy
        self._jitter = jitter
        self._wake = Wake(timers or services.clock)
        self._redact = services.redact
        self._checks = CheckRunner(services, policy, jitter)
        self._at_work: frozenset[str] = frozenset()

    async def keep(self) -> None:
        """Fire what is due until cancelled, and end with all checks that are being made."""
        with self._looks.for_feature(SCHEDULES_DUE, self._tell):
            async with asyncio.TaskGroup() as checks:
                while True:
                    left_ms = None
                    try:
                        left_ms = await self._round(checks)
                    except StoreUnavailable as error:
                        log.warning("schedules_wait", reason=str(error))
                    await self._wake.wait(None if left_ms is None else left_ms / 1000)

    async def listen(self) -> None:
        """Hear of new ones, and of what happens where their runs are, until cancelled."""
        async with self._units.bus.subscribe(SCHEDULES, EVENTS) as signals:
            async for signal in signals:
                if (
                    signal.topic == SCHEDULES
                    or signal.gap
                    or signal.data.get("session_id") in self._at_work
                ):
                    self._wake.set()

    def _tell(self, due: Due) -> None:
        if SCHEDULES_DUE.name in due.features:
            self._wake.set()

    async def _round(self, checks: asyncio.TaskGroup) -> int | None:
        """Do all that is due; the milliseconds until more will be, None where no time is known.
        What another process holds is that one's to do, and the next look finds what it leaves."""
        read, did = self._units.database.read, True
        left_ms = None
        for schedule_id in await read(rows.to_prepare):
            await self._prepare(schedule_id)
        while did:
            did = False
            for done in await read(fires.finished):
                did = await self._settle(done) or did
            left_ms = await read(rows.left_ms)
            if left_ms is not None and left_ms <= 0:
                did = await self._remind() or did
                did = await self._dispatch(checks) or did
                left_ms = None
        await self._erase_left()
        self._at_work = await read(fires.sessions_at_work)
        return left_ms

    async def _settle(self, done: Fire) -> bool:
        """Note how a run ended; False where that failed, which the next look makes up for."""
        settle = partial(dispatch.settle, done=done, redact=self._redact)
        try:
            await self._units.run(settle, name="schedule-settle")
        except StoreUnavailable:
            raise
        except Exception:  # the root of one schedule: the others must not end with it
            log.exception("schedule_settle_failed", schedule_id=done.schedule_id)
            return False
        return True

    async def _remind(self) -> bool:
        """Say the words of plain reminders; whether there were any."""
        fire = partial(reminders.fire, admitted=self._admitted)
        fired = await self._units.run(fire, name="schedule-fire")
        for schedule_id, reason in fired.paused.items():
            _warn(schedule_id, reason)
        return fired.total > 0

    async def _prepare(self, schedule_id: str) -> None:
        """Get ready what a schedule needs; where that fails, the next look tries again."""
        try:
            await self._checks.prepare(schedule_id)
        except StoreUnavailable:
            raise
        except Exception:  # the root of one schedule: the others must not end with it
            log.exception("schedule_prepare_failed", schedule_id=schedule_id)

    async def _check(self, claim: Claim) -> None:
        try:
            outcome = await self._checks.check(claim)
            if outcome.paused:
                _warn(claim.schedule_id, outcome.paused)
        except StoreUnavailable as error:
            # The claim ends by itself, and whoever finds that checks this time again.
            log.warning("schedule_check_lost", schedule_id=claim.schedule_id, reason=str(error))
        except Exception:  # the root of one check: the others must not end with it
            log.exception("schedule_check_lost", schedule_id=claim.schedule_id)
        finally:
            self._wake.set()

    async def _dispatch(self, checks: asyncio.TaskGroup) -> bool:
        """Dispatch the runs of those that are due, and begin their checks; whether there were
        any."""
        due = list(await self._units.database.read(rows.due_requests))
        # In an order of its own: else two processes would wait for each other at each one.
        _RANDOM.shuffle(due)
        for schedule_id in due:
            outcome = await self._fire(schedule_id)
            if outcome.paused:
                _warn(schedule_id, outcome.paused)
            if outcome.claim is not None:
                check = self._check(outcome.claim)
                checks.create_task(check, name=f"schedule check {schedule_id}")
        return bool(due)

    async def _fire(self, schedule_id: str) -> Outcome:
        fire = partial(dispatch.fire, schedule_id=schedule_id, admitted=self._admitted)
        try:
            return await self._units.run(fire, name="schedule-dispatch")
        except StoreUnavailable:
            raise
        except FOR_GOOD as error:
            failure = Failure(str(error), self._policy, self._jitter(), for_good=True)
        except GatehouseError as error:
            log.warning("schedule_dispatch_failed", schedule_id=schedule_id, reason=str(error))
            failure = Failure(str(error), self._policy, self._jitter())
        except Exception as error:  # the root of one schedule: the others must not end with it
            log.exception("schedule_dispatch_failed", schedule_id=schedule_id)
            failure = Failure(type(error).__name__, self._policy, self._jitter())
        note = partial(dispatch.note_failure, schedule_id=schedule_id, failure=failure)
        return await self._units.run(note, name="schedule-retry")

    async def _erase_left(self) -> None:
        """Erase the lanes of schedules whose conversations were deleted."""
        for session_id in await self._units.database.read(rows.lanes_left):
            erase = partial(kind.erase, session_id=session_id)
            if await self._units.run(erase, name="schedule-lane-erase"):
                await asyncio.to_thread(erase_files, self._workspace, [session_id], ())


def _warn(schedule_id: str, reason: str) -> None:
    log.warning("schedule_paused", schedule_id=schedule_id, reason=reason)
