"""One platform account at work: connected, listened to, delivered to; each part under its lease."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import structlog

from runtime.delivery.deliverer import Deliverer, account_name
from runtime.delivery.sender import DeliveryServices
from runtime.delivery.typing_signals import TypingSignals
from runtime.domain.errors import Forbidden, Unavailable
from runtime.domain.messages import ChatAddress, OutboundMessage
from runtime.domain.runs import Holder
from runtime.ports.chat import AdapterStatus, ChatAdapter
from runtime.ports.clock import Clock
from runtime.ports.gatehouse import Gatehouse
from runtime.process.due_poll import Looks
from runtime.process.lease_keeper import LeaseKeeper
from runtime.process.supervisor import Supervisor
from runtime.store import leases

log = structlog.get_logger(__name__)

FIRST_BACKOFF_S = 1.0
MAX_BACKOFF_S = 60.0


class Account:
    """Runs one adapter. A wrong token stops this account alone and stays visible in its status."""

    def __init__(
        self,
        adapter: ChatAdapter,
        gatehouse: Gatehouse,
        keeper: LeaseKeeper,
        supervisor: Supervisor,
        *,
        name: str,
    ) -> None:
        """`name` tells it from the other accounts, before it is known which one it is."""
        self.adapter = adapter
        self.name = name
        self.connecting = True
        """Until the platform has answered, or could not be reached, for the first time."""
        self._name = f"account {name}"
        self._supervisor = supervisor
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
        fault = self._supervisor.reason(self._name) or self._supervisor.reason(self._listening_name)
        if fault:
            return AdapterStatus(connected=False, detail=f"It failed and is tried again: {fault}")
        return self.adapter.status()

    @property
    def standing_by(self) -> bool:
        """Whether the platform took the account, and another process listens for it."""
        return self.deliverer is not None and not self._keeper.holds(self._listening_lease)

    @property
    def _listening_lease(self) -> str:
        return f"listen:{account_name(self.adapter)}"

    @property
    def _listening_name(self) -> str:
        return f"listening {account_name(self.adapter)}"

    async def run(self, services: DeliveryServices, looks: Looks) -> None:
        """Connect, then receive and deliver until cancelled.

        It is not needed for readiness, and neither is listening: one platform that fails must not
        take the others and the page out of service. `status` says that it does.
        """
        try:
            body = partial(self._serve, services, looks)
            await self._supervisor.keep(self._name, body, needed=False)
        finally:
            await self.adapter.close()

    async def _serve(self, services: DeliveryServices, looks: Looks) -> None:
        if not await self._connect(services.clock):
            await asyncio.Event().wait()
        start, name = self._supervisor.start, account_name(self.adapter)
        lease = leases.delivery(self.adapter.channel, self.adapter.account)
        held = partial(self._keeper.holds, lease)
        deliverer = Deliverer(
            self.adapter, services, looks=looks, held=held, supervisor=self._supervisor
        )
        self.deliverer = deliverer
        typing = TypingSignals(
            self.adapter, services.units.bus, services.clock, deliverer.buckets, held
        )
        async with asyncio.TaskGroup() as group:
            start(group, f"lease {lease}", partial(self._keeper.hold, lease, deliverer.run))
            if not self._stopped:
                listen = self._listening_lease
                hold = partial(self._keeper.hold, listen, self._listen)
                self._listening = start(group, f"lease {listen}", hold)
            if self.adapter.capabilities.typing_interval_s is not None:
                start(group, f"typing signals {name}", typing.listen, needed=False)
                start(group, f"typing {name}", typing.show, needed=False)

    async def stop_listening(self) -> None:
        """Take nothing more from the platform; what was not acknowledged comes again."""
        self._stopped = True
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.wait([self._listening])

    async def _listen(self, _fence: int) -> None:
        """Listen while the lease is held; a defect of the adapter does not give it away."""
        listen = partial(self.adapter.listen, self._gatehouse)
        await self._supervisor.keep(self._listening_name, listen, needed=False)

    async def _connect(self, clock: Clock) -> bool:
        wait = FIRST_BACKOFF_S
        while True:
            try:
                await self.adapter.connect()
            except Forbidden as error:
                self._refused, self.connecting = str(error), False
                log.error("adapter_refused", channel=self.adapter.channel, reason=str(error))
                return False
            except Unavailable as error:
                self.connecting = False
                log.warning("adapter_unreachable", channel=self.adapter.channel, reason=str(error))
                await clock.sleep(wait)
                wait = min(wait * 2, MAX_BACKOFF_S)
            else:
                self.connecting = False
                log.info(
                    "adapter_connected",
                    channel=self.adapter.channel,
                    account=self.adapter.account,
                )
                return True


@dataclass(frozen=True, slots=True)
class LocalDeliverers:
    """The deliverers of this process, by account: what finishing turns may hand replies to."""

    accounts: Sequence[Account]

    def offer(self, target: ChatAddress) -> Holder | None:
        """A claim on a reply for an idle chat of a local deliverer."""
        deliverer = self._of(target)
        return None if deliverer is None else deliverer.offer(target)

    def hand(self, message: OutboundMessage, claim: Holder | None) -> None:
        """Send a claimed reply; without its deliverer the row is found by the next one's sweep."""
        deliverer = self._of(message.target)
        if deliverer is not None:
            deliverer.hand(message, fence=None if claim is None else claim.fence)

    def _of(self, target: ChatAddress) -> Deliverer | None:
        place = (target.channel, target.account)
        for account in self.accounts:
            # An account has a deliverer only once it is connected and so knows its own name.
            if account.deliverer is not None:
                adapter = account.adapter
                if (adapter.channel, adapter.account) == place:
                    return account.deliverer
        return None
