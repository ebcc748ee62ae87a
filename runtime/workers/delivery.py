"""The deliverer of one platform account: sends the outbox, per chat in order, once (MSG-10).

It runs only under the account's lease, so that one process at a time owns the order, the buckets
and the receipts. A send whose outcome is unknown is looked up where the platform can be asked,
else it is marked and shown; it is never repeated blindly (MSG-11).
"""

import asyncio
import random
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import structlog

from runtime.domain.errors import (
    DeliveryRejected,
    DeliveryRetry,
    DeliveryUnknown,
    StaleLease,
    StoreUnavailable,
)
from runtime.domain.messages import ChatAddress, OutboundMessage, Receipt
from runtime.inbox import deliveries
from runtime.inbox.claims import Holder
from runtime.ports.bus import EVENTS, OUTBOX, Bus
from runtime.ports.chat import ChatAdapter
from runtime.ports.clock import Clock
from runtime.store import Connection, Database, outbox
from runtime.store.database import no_point
from runtime.store.outbox import OutboxRow
from runtime.workers.buckets import Buckets
from runtime.workers.wake import Wake

log = structlog.get_logger(__name__)

BATCH = 32
BASE_BACKOFF_S = 1.0
MAX_BACKOFF_S = 300.0
SWEEP_TICKS = 5
HAND_OVER_MS = 5_000
REMEMBERED = 20_000


@dataclass(frozen=True, slots=True)
class DeliverySettings:
    """`give_up_after_s`: how long a message is tried. `resend_unknown`: the operator's choice to
    rather see a message twice than not at all."""

    give_up_after_s: float = 24 * 3600.0
    resend_unknown: bool = False


@dataclass(frozen=True, slots=True)
class DeliveryServices:
    """What every deliverer of a process uses; `point` is called around each send, for tests that
    end the process there; `jitter` is a source of numbers in [0, 1)."""

    database: Database
    bus: Bus
    clock: Clock
    worker: str
    settings: DeliverySettings = field(default_factory=DeliverySettings)
    jitter: Callable[[], float] = random.random
    point: Callable[[str], None] = no_point


class Deliverer:
    """Sends one account's messages while its lease is held."""

    def __init__(self, adapter: ChatAdapter, services: DeliveryServices) -> None:
        clock = services.clock
        self._adapter = adapter
        self._services = services
        self._database = services.database
        self._clock = clock
        self._wake = Wake(clock)
        self._began: set[str] = set()
        self._started: OrderedDict[str, None] = OrderedDict()
        self._busy: dict[str, str] = {}
        self._handed: deque[OutboundMessage] = deque()
        self._holder: Holder | None = None
        can = adapter.capabilities
        self.buckets = Buckets(
            clock,
            chat=(can.chat_rate, can.chat_burst),
            account=(can.account_rate, can.account_burst),
        )

    def offer(self, target: ChatAddress) -> tuple[str, int] | None:
        """What a finishing run may claim its reply with; None while this is not the deliverer."""
        holder = self._holder
        if holder is None or target.chat_id in self._busy:
            return None
        return holder.worker, holder.fence

    def hand(self, message: OutboundMessage) -> None:
        """Send a reply that was claimed by an offer."""
        self._handed.append(message)
        self._wake.set()

    async def run(self, fence: int) -> None:
        """Deliver under the lease's fence until cancelled."""
        self._holder = Holder(self._services.worker, fence)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._listen(), name="delivery signals")
                ticks = 0
                while True:
                    full = await self._round(group, self._holder, sweep=ticks % SWEEP_TICKS == 0)
                    if not full and not await self._wake.wait():
                        ticks += 1
        finally:
            self._holder = None
            self._handed.clear()

    async def _listen(self) -> None:
        async with self._services.bus.subscribe(OUTBOX) as signals:
            async for _signal in signals:
                self._wake.set()

    async def _round(self, group: asyncio.TaskGroup, holder: Holder, *, sweep: bool) -> bool:
        """Start what can be sent now; True when there may be more."""
        while self._handed:
            message = self._handed.popleft()
            if self._first_start(message.outbox_id):
                self._start(group, holder, deliveries.fresh_row(message, holder))
        try:
            if sweep:
                for row in await self._left_behind(holder):
                    if self._first_start(row.message.outbox_id):
                        self._start(group, holder, row, resolve=True)
            rows = await self._take_due(holder)
        except StoreUnavailable as error:
            log.warning("delivery_waits", reason=str(error))
            return False
        for row in rows:
            self._start(group, holder, row)
        return len(rows) == BATCH

    async def _take_due(self, holder: Holder) -> Sequence[OutboxRow]:
        adapter = self._adapter
        found = await self._database.read(
            lambda conn: outbox.due(
                conn, channel=adapter.channel, account=adapter.account, most=BATCH
            )
        )
        free = [row for row in found if row.message.target.chat_id not in self._busy]
        if not free:
            return ()
        return await self._database.write(
            lambda conn: deliveries.claim(conn, free, holder), name="outbox-claim"
        )

    async def _left_behind(self, holder: Holder) -> Sequence[OutboxRow]:
        """Rows in hand of an earlier deliverer, or of a run of ours that was cut off.

        A row of ours that is young may be on its way here from the run that finished; it is left
        alone until it is old, and whoever starts a row first is the only one that does.
        """
        adapter, young = self._adapter, self._clock.now_ms() - HAND_OVER_MS
        found = await self._database.read(
            lambda conn: outbox.in_hand(conn, channel=adapter.channel, account=adapter.account)
        )
        lost = [
            row
            for row in found
            if row.message.outbox_id not in self._started
            and (row.worker != holder.worker or row.created_ms < young)
        ]
        if not lost:
            return ()
        return await self._database.write(
            lambda conn: deliveries.adopt(conn, lost, holder), name="outbox-adopt"
        )

    def _first_start(self, outbox_id: str) -> bool:
        """Whether this deliverer never started the row by a hand-over or a sweep before."""
        if outbox_id in self._started:
            return False
        self._started[outbox_id] = None
        while len(self._started) > REMEMBERED:
            self._started.popitem(last=False)
        return True

    def _start(
        self, group: asyncio.TaskGroup, holder: Holder, row: OutboxRow, *, resolve: bool = False
    ) -> None:
        outbox_id, chat = row.message.outbox_id, row.message.target.chat_id
        if self._busy.get(chat) == outbox_id:
            return
        self._busy[chat] = outbox_id
        group.create_task(self._deliver(row, holder, resolve=resolve), name=f"deliver {outbox_id}")

    async def _deliver(self, row: OutboxRow, holder: Holder, *, resolve: bool) -> None:
        chat = row.message.target.chat_id
        try:
            if resolve and not self._never_sent(row, holder):
                await self._resolve(row, holder)
            else:
                await self._send(row, holder)
        except StaleLease as error:
            log.warning("delivery_lost", outbox_id=row.message.outbox_id, reason=str(error))
        finally:
            self._began.discard(row.message.outbox_id)
            if self._busy.get(chat) == row.message.outbox_id:
                del self._busy[chat]
            self._wake.set()

    def _never_sent(self, row: OutboxRow, holder: Holder) -> bool:
        """A row that this deliverer holds and has not begun: its run was cut off in between."""
        mine = row.worker == holder.worker and row.fence == holder.fence
        return mine and row.message.outbox_id not in self._began

    async def _send(self, row: OutboxRow, holder: Holder) -> None:
        message = row.message
        posted = list(row.posted)

        async def on_posted(message_id: str) -> None:
            posted.append(message_id)
            await self._progress(message, posted, holder)

        await self.buckets.take(message.target.chat_id)
        self._began.add(message.outbox_id)
        try:
            self._services.point("send:begin")
            if row.kind == "edit":
                receipt = await self._edit(row)
            else:
                receipt = await self._adapter.send(
                    message, posted=tuple(row.posted), on_posted=on_posted
                )
            self._services.point("send:end")
        except DeliveryRetry as error:
            await self._retry(replace(row, posted=tuple(posted)), error, holder)
        except DeliveryRejected as error:
            await self._settle(row, "dead", str(error), holder)
        except DeliveryUnknown as error:
            log.warning("delivery_unknown", outbox_id=message.outbox_id, reason=str(error))
            await self._resolve(replace(row, posted=tuple(posted)), holder)
        except Exception as error:  # the worker root: an adapter's defect must not stop the others
            log.exception("delivery_failed", outbox_id=message.outbox_id)
            await self._settle(row, "unknown", f"{type(error).__name__}: {error}", holder)
        else:
            await self._sent(row, receipt, holder)

    async def _edit(self, row: OutboxRow) -> Receipt:
        """Change a card that was posted; where it cannot be changed, nothing is sent."""
        open_call = row.open_call_id
        card = None
        if open_call is not None:
            card = await self._database.read(lambda conn: outbox.card_of(conn, open_call))
        if card is None or not card.posted or not self._adapter.capabilities.edits:
            return Receipt(message_ids=())
        receipt = Receipt(message_ids=card.posted)
        await self._adapter.edit(row.message, receipt)
        return receipt

    async def _resolve(self, row: OutboxRow, holder: Holder) -> None:
        """Find out whether an unsettled send arrived."""
        if row.kind == "edit":
            await self._send(row, holder)
            return
        if not self._adapter.capabilities.lookup:
            if self._services.settings.resend_unknown:
                await self._retry(row, DeliveryRetry("resent by the operator's choice"), holder)
            else:
                reason = "it may have been sent: the gateway stopped before the receipt"
                await self._settle(row, "unknown", reason, holder)
            return
        try:
            receipt = await self._adapter.lookup(row.message, posted=row.posted)
        except DeliveryRetry as error:
            await self._clock.sleep(error.after_s or BASE_BACKOFF_S)
            await self._resolve(row, holder)
            return
        except DeliveryRejected as error:
            await self._settle(row, "unknown", f"it could not be looked up: {error}", holder)
            return
        if receipt is not None:
            await self._sent(row, receipt, holder)
        else:
            await self._retry(row, DeliveryRetry("it had not arrived"), holder)

    async def _progress(
        self, message: OutboundMessage, posted: Sequence[str], holder: Holder
    ) -> None:
        await self._keep(
            lambda conn: deliveries.progress(conn, message, posted, holder), name="outbox-progress"
        )

    async def _sent(self, row: OutboxRow, receipt: Receipt, holder: Holder) -> None:
        await self._keep(
            lambda conn: deliveries.sent(conn, row.message, receipt, holder), name="receipt"
        )
        self._services.bus.publish(EVENTS, {"session_id": row.message.session_id or ""})

    async def _settle(self, row: OutboxRow, state: str, reason: str, holder: Holder) -> None:
        log.error("delivery_ended", outbox_id=row.message.outbox_id, state=state, reason=reason)
        await self._keep(
            lambda conn: deliveries.end(conn, row.message, state, reason, holder), name="outbox-end"
        )
        self._services.bus.publish(EVENTS, {"session_id": row.message.session_id or ""})

    async def _retry(self, row: OutboxRow, error: DeliveryRetry, holder: Holder) -> None:
        if self._clock.now_ms() - row.created_ms > self._services.settings.give_up_after_s * 1000:
            await self._settle(row, "dead", f"given up: {error.reason}", holder)
            return
        wait = error.after_s
        if wait is None:
            doubled = BASE_BACKOFF_S * 2 ** min(row.attempt, 10) * (1 + self._services.jitter() / 4)
            wait = min(doubled, MAX_BACKOFF_S)
        else:
            self.buckets.block(row.message.target.chat_id, wait)
        delay_ms = int(wait * 1000)
        await self._keep(
            lambda conn: deliveries.retry(conn, row, error.reason, delay_ms, holder),
            name="outbox-retry",
        )
        self._clock.call_later(wait, self._wake.set)

    async def _keep(self, work: Callable[[Connection], None], *, name: str) -> None:
        """Write what is known of a send however long the store is away: only this process knows.

        It ends when the lease does. Raises `StaleLease`.
        """
        while True:
            try:
                await self._database.write(work, name=name)
                return
            except StoreUnavailable as error:
                log.warning("receipt_waits", reason=str(error))
            await self._clock.sleep(BASE_BACKOFF_S)
