"""One platform account at work: connected, listened to, delivered to; each part under its lease."""

import asyncio
from functools import partial

import structlog

from runtime.domain.errors import Forbidden, Unavailable
from runtime.domain.messages import ChatAddress, OutboundMessage
from runtime.ports.chat import AdapterStatus, ChatAdapter
from runtime.ports.clock import Clock
from runtime.ports.gatehouse import Gatehouse
from runtime.store import leases
from runtime.workers.delivery import Deliverer
from runtime.workers.leases import LeaseKeeper
from runtime.workers.looks import Looks
from runtime.workers.sending import DeliveryServices
from runtime.workers.typing import TypingSignals

log = structlog.get_logger(__name__)

FIRST_BACKOFF_S = 1.0
MAX_BACKOFF_S = 60.0


class Account:
    """Runs one adapter. A wrong token stops this account alone and stays visible in its status."""

    def __init__(
        self, adapter: ChatAdapter, gatehouse: Gatehouse, keeper: LeaseKeeper, clock: Clock
    ) -> None:
        self.adapter = adapter
        self._clock = clock
        self._gatehouse = gatehouse
        self._keeper = keeper
        self._refused = ""
        self._stopped = False
        self._listening: asyncio.Task[None] | None = None
        self.deliverer: Deliverer | None = None

    def status(self) -> AdapterStatus:
        """How the account stands, for /readyz, `status` and metrics."""
        if self._refused:
            return AdapterStatus(connected=False, detail=self._refused)
        return self.adapter.status()

    @property
    def standing_by(self) -> bool:
        """Whether the platform took the account, and another process listens for it."""
        return self.deliverer is not None and not self._keeper.holds(self._listening_lease)

    @property
    def _listening_lease(self) -> str:
        return f"listen:{self.adapter.channel}:{self.adapter.account}"

    async def run(self, services: DeliveryServices, looks: Looks) -> None:
        """Connect, then receive and deliver until cancelled."""
        if not await self._connect(services.clock):
            return
        name = f"{self.adapter.channel}:{self.adapter.account}"
        lease = leases.delivery(self.adapter.channel, self.adapter.account)
        held = partial(self._keeper.holds, lease)
        deliverer = Deliverer(self.adapter, services, looks=looks, held=held)
        self.deliverer = deliverer
        typing = TypingSignals(self.adapter, services.bus, services.clock, deliverer.buckets, held)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._keeper.hold(lease, deliverer.run), name=f"deliver {name}")
                if not self._stopped:
                    self._listening = group.create_task(
                        self._keeper.hold(self._listening_lease, self._listen),
                        name=f"listen {name}",
                    )
                if self.adapter.capabilities.typing_interval_s is not None:
                    group.create_task(typing.listen(), name=f"typing signals {name}")
                    group.create_task(typing.show(), name=f"typing {name}")
        finally:
            await self.adapter.close()

    async def stop_listening(self) -> None:
        """Take nothing more from the platform; what was not acknowledged comes again."""
        self._stopped = True
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.wait([self._listening])

    async def _listen(self, _fence: int) -> None:
        """Listen while the lease is held; a defect of the adapter must not end the engine."""
        wait = FIRST_BACKOFF_S
        while True:
            began = self._clock.monotonic()
            try:
                await self.adapter.listen(self._gatehouse)
                return
            except Exception:  # the worker root of everything that comes in from a platform
                log.exception("listening_failed", channel=self.adapter.channel)
            if self._clock.monotonic() - began >= MAX_BACKOFF_S:
                # It had worked for long: an old failure makes nobody wait for this one.
                wait = FIRST_BACKOFF_S
            await self._clock.sleep(wait)
            wait = min(wait * 2, MAX_BACKOFF_S)

    async def _connect(self, clock: Clock) -> bool:
        wait = FIRST_BACKOFF_S
        while True:
            try:
                await self.adapter.connect()
            except Forbidden as error:
                self._refused = str(error)
                log.error("adapter_refused", channel=self.adapter.channel, reason=str(error))
                return False
            except Unavailable as error:
                log.warning("adapter_unreachable", channel=self.adapter.channel, reason=str(error))
                await clock.sleep(wait)
                wait = min(wait * 2, MAX_BACKOFF_S)
            else:
                log.info(
                    "adapter_connected",
                    channel=self.adapter.channel,
                    account=self.adapter.account,
                )
                return True


class LocalDeliverers:
    """The deliverers of this process, by account: what finishing turns may hand replies to."""

    def __init__(self, accounts: list[Account]) -> None:
        self._accounts = accounts

    def offer(self, target: ChatAddress) -> tuple[str, int] | None:
        """A claim on a reply for an idle chat of a local deliverer."""
        deliverer = self._of(target)
        return None if deliverer is None else deliverer.offer(target)

    def hand(self, message: OutboundMessage, claim: tuple[str, int] | None) -> None:
        """Send a claimed reply; without its deliverer the row is found by the next one's sweep."""
        deliverer = self._of(message.target)
        if deliverer is not None:
            deliverer.hand(message, fence=None if claim is None else claim[1])

    def _of(self, target: ChatAddress) -> Deliverer | None:
        place = (target.channel, target.account)
        for account in self._accounts:
            # An account has a deliverer only once it is connected and so knows its own name.
            if account.deliverer is not None:
                adapter = account.adapter
                if (adapter.channel, adapter.account) == place:
                    return account.deliverer
        return None
