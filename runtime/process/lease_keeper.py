"""Leases at work: the process's own, and the ones that make a singleton of a poller.

A lease is renewed at a third of its life. Whoever cannot renew in time stops by its own clock
before the store would let another in, and the fence refuses what it still tries to write (I6).
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

import structlog

from runtime.domain.errors import StoreUnavailable
from runtime.domain.runs import Holder
from runtime.ports.clock import Clock
from runtime.process.supervisor import Supervisor
from runtime.process.wakeup import Wake
from runtime.store import Database, leases

log = structlog.get_logger(__name__)

Body = Callable[[int], Awaitable[None]]
"""What runs while a lease is held; gets the fence, is cancelled when the lease is lost."""


@dataclass(frozen=True, slots=True)
class LeaseSettings:
    """`ttl_s`: how long a lease lives without being renewed; takeover needs at most two."""

    ttl_s: float = 15.0

    @property
    def ttl_ms(self) -> int:
        """The same in milliseconds, as the store counts."""
        return int(self.ttl_s * 1000)


class LeaseLost(Exception):
    """The lease ran out or is another's; ends the body."""


class BodyEnded(Exception):
    """What runs under a lease ended by itself, and it must not."""

    def __str__(self) -> str:
        return "what runs under the lease ended by itself"


@dataclass(slots=True)
class _Held:
    """A lease in hand; `until` is when it runs out by this process's clock; `lost` is set when
    the store says that it has."""

    name: str
    fence: int
    until: float
    lost: Wake


class LeaseKeeper:
    """Acquires, renews and gives back leases for one process, named by `worker`."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        worker: str,
        settings: LeaseSettings,
        *,
        supervisor: Supervisor | None = None,
    ) -> None:
        self._supervisor = supervisor or Supervisor(clock)
        self._database = database
        self._clock = clock
        self._settings = settings
        self.holder: Holder | None = None
        """What this process writes under; None while its own lease is not held."""
        self._held: dict[str, _Held] = {}
        self.worker = worker

    def holds(self, name: str) -> bool:
        """Whether a lease is surely still ours, by this process's clock.

        A process that was frozen learns it here before anything is cancelled.
        """
        held = self._held.get(name)
        return held is not None and self._clock.monotonic() < held.until

    def start(self, group: asyncio.TaskGroup) -> None:
        """Renew whatever this process holds, and hold the process's own lease, in tasks of
        `group`; that one is taken anew whenever it was lost."""

        async def body(fence: int) -> None:
            self.holder = Holder(self.worker, fence)
            try:
                await asyncio.Event().wait()
            finally:
                self.holder = None

        name = f"{leases.PROCESS}{self.worker}"
        self._supervisor.start(group, "lease renewal", self._renew)
        self._supervisor.start(group, "lease process", lambda: self.hold(name, body))

    async def hold(self, name: str, body: Body) -> None:
        """Run `body` whenever and as long as the lease `name` is ours, until cancelled.

        Raises what `body` raises, in a group, or `BodyEnded`; the lease is given back before.
        """
        while True:
            asked = self._clock.monotonic()
            fence = await self._acquire_or_give_back(name)
            if fence is None:
                await self._clock.sleep(self._settings.ttl_s / 3)
                continue
            try:
                await self._hold_once(name, fence, body, asked)
            except* LeaseLost:
                log.warning("lease_lost", name=name, fence=fence)
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                # A loss that comes together with a cancellation must not swallow it.
                raise asyncio.CancelledError

    async def _hold_once(self, name: str, fence: int, body: Body, asked: float) -> None:
        held = _Held(name, fence, asked + self._settings.ttl_s, Wake(self._clock))
        self._held[name] = held
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._watch(held), name=f"watch {name}")
                task = group.create_task(_run(body, fence), name=f"hold {name}")
                await asyncio.wait([task])
                raise LeaseLost(name)
        finally:
            del self._held[name]
            await self._release(name, fence)

    async def _watch(self, held: _Held) -> None:
        """End the body when the lease was not renewed in time, even if the store just hangs."""
        while (left := held.until - self._clock.monotonic()) > 0:
            if await held.lost.wait(left):
                break
        raise LeaseLost(held.name)

    async def _acquire_or_give_back(self, name: str) -> int | None:
        """As `_acquire`. A lease that comes together with a cancellation would keep others waiting
        until it runs out."""
        acquiring = asyncio.create_task(self._acquire(name), name=f"acquire {name}")
        try:
            return await asyncio.shield(acquiring)
        except asyncio.CancelledError:
            fence = await acquiring
            if fence is not None:
                await self._release(name, fence)
            raise

    async def _acquire(self, name: str) -> int | None:
        try:
            return await self._database.write(
                lambda conn: leases.acquire(
                    conn, name=name, holder=self.worker, ttl_ms=self._settings.ttl_ms
                ),
                name="lease",
                urgent=True,
            )
        except StoreUnavailable as error:
            log.warning("lease_unavailable", name=name, reason=str(error))
            return None

    async def _renew(self) -> None:
        """Renew whatever this process holds, all by one statement, until cancelled."""
        ttl_ms = self._settings.ttl_ms
        while True:
            await self._clock.sleep(self._settings.ttl_s / 3)
            holding, asked = tuple(self._held.values()), self._clock.monotonic()
            if not holding:
                continue
            names = [held.name for held in holding]
            try:
                kept = await self._database.write(
                    partial(leases.renew, names=names, holder=self.worker, ttl_ms=ttl_ms),
                    name="lease-renewal",
                    urgent=True,
                )
            except StoreUnavailable as error:
                log.warning("lease_renewal_failed", names=names, reason=str(error))
                continue
            for held in holding:
                if (held.name, held.fence) in kept:
                    held.until = asked + self._settings.ttl_s
                else:
                    held.lost.set()

    async def _release(self, name: str, fence: int) -> None:
        try:
            await self._database.write(
                lambda conn: leases.release(conn, name=name, holder=self.worker, fence=fence),
                name="lease-release",
                urgent=True,
            )
        except StoreUnavailable as error:
            log.warning("lease_release_failed", name=name, reason=str(error))


async def _run(body: Body, fence: int) -> None:
    await body(fence)
    raise BodyEnded
