"""The deliverer of one platform account: takes the outbox in order per chat (MSG-10).

It runs only under the account's lease, so that one process at a time owns the order, the buckets
and the receipts; `sending` brings each message to its end.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence, Sized
from functools import partial

import structlog

from runtime.delivery import outbox_units
from runtime.delivery.chat_streams import GrowingTexts
from runtime.delivery.rate_limiter import Buckets
from runtime.delivery.sender import DeliveryServices, Sender
from runtime.domain.errors import StoreUnavailable
from runtime.domain.messages import ChatAddress, OutboundMessage
from runtime.domain.runs import Holder
from runtime.ports.bus import OUTBOX
from runtime.ports.chat import ChatAdapter
from runtime.process.due_poll import Looks
from runtime.process.supervisor import Supervisor
from runtime.process.wakeup import Wake
from runtime.sessions import outbox
from runtime.sessions.due_work import Due
from runtime.sessions.outbox import OutboxRow
from runtime.store import Connection, now_ms

log = structlog.get_logger(__name__)

BATCH = 32
SWEEP_TICKS = 5
HAND_OVER_MS = 5_000
REMEMBERED = 20_000
MOST = 500
"""Chats of one account to which something is on its way at once. The others wait in the outbox:
only a platform that answers nobody has so many, and it must not fill the memory too (SCALE-5)."""


class Deliverer:
    """Sends one account's messages while its lease is held, which `held` knows without asking.

    It asks the outbox when it was signalled, when a tick's look found something, and when a
    delivery ended behind which there may be more.
    """

    def __init__(
        self,
        adapter: ChatAdapter,
        services: DeliveryServices,
        *,
        looks: Looks,
        held: Callable[[], bool],
        supervisor: Supervisor,
    ) -> None:
        clock = services.clock
        self._supervisor = supervisor
        self._adapter = adapter
        self._services = services
        self._database = services.units.database
        self._wake = Wake(clock)
        self._looks = looks
        self._ask = self._sweep = True
        self._full = False
        self._signals = 0
        self._offered: dict[str, int] = {}
        self._started: OrderedDict[str, None] = OrderedDict()
        self._busy: dict[str, set[str]] = {}
        self._handed: deque[OutboundMessage] = deque()
        self._ticks = 0
        self._holder: Holder | None = None
        self._held = held
        self._growing: GrowingTexts | None = None
        can = adapter.capabilities
        self.buckets = Buckets(
            clock,
            chat=(can.chat_rate, can.chat_burst),
            account=(can.account_rate, can.account_burst),
            group=None if can.group_rate is None else (can.group_rate, can.group_burst or 1),
            edit_every_s=can.edit_interval_s,
        )
        retried = partial(clock.call_later, callback=self._look_again)
        self._sender = Sender(adapter, services, self.buckets, retried, held=held)

    def offer(self, target: ChatAddress) -> Holder | None:
        """What a finishing run may claim its reply with; None while this is not the deliverer."""
        holder = self._holder
        if holder is None or target.chat_id in self._busy or _room(self._busy, self._handed) <= 0:
            return None
        if len(self._offered) > REMEMBERED:
            self._offered.clear()
        self._offered[target.chat_id] = self._signals
        return holder

    def hand(self, message: OutboundMessage, *, fence: int | None = None) -> None:
        """Send a reply that was claimed by an offer; `fence` is the offer's.

        A claim of a lease that was lost meanwhile is another deliverer's to sweep up, or this
        one's under its next lease: nobody knows any more whether it was sent.
        """
        holder = self._holder
        if holder is None or fence not in (None, holder.fence):
            return
        self._handed.append(message)
        self._wake.set()

    async def run(self, fence: int) -> None:
        """Deliver under the lease's fence until cancelled."""
        self._holder = holder = Holder(self._services.worker, fence)
        # What an earlier lease of this process had begun was cut off with it: it is swept up.
        self._started.clear()
        self._busy.clear()
        self._growing = texts = GrowingTexts(
            self._adapter,
            self._services,
            self.buckets,
            holder,
            held=self._held,
            ended=self._look_again,
        )

        async def send(group: asyncio.TaskGroup) -> None:
            self._ask = self._sweep = True
            with self._looks.for_outbox(self._adapter.channel, self._adapter.account, self._tell):
                while True:
                    await self._round(group, holder)
                    if not self._ask:
                        await self._wake.wait(None)

        try:
            # Sends are the group's: they come to their end while what starts them is down.
            async with asyncio.TaskGroup() as group:
                start, place = self._supervisor.start, account_name(self._adapter)
                start(group, f"delivery signals {place}", self._listen)
                if texts.shown:
                    start(group, f"growing texts {place}", texts.run, needed=False)
                start(group, f"delivery {place}", partial(send, group))
        finally:
            self._holder = self._growing = None
            self._handed.clear()

    async def _listen(self) -> None:
        async with self._services.units.bus.subscribe(OUTBOX) as signals:
            async for _signal in signals:
                self._look_again()

    def _tell(self, due: Due) -> None:
        """A tick: what is in hand keeps the sweep going, and what is due was not heard of."""
        if (self._adapter.channel, self._adapter.account) in due.accounts:
            self._ticks += 1
            self._sweep = self._sweep or self._ticks % SWEEP_TICKS == 0
            self._look_again()

    def _look_again(self) -> None:
        self._signals += 1
        self._ask = True
        self._wake.set()

    async def _round(self, group: asyncio.TaskGroup, holder: Holder) -> None:
        """Start what was handed over, and what the outbox has for us where that is to be asked."""
        while self._handed:
            message = self._handed.popleft()
            if self._first_start(message.outbox_id):
                self._start(group, holder, outbox_units.fresh_row(message, holder))
        if self._ask:
            self._ask = False
            try:
                await self._look(group, holder)
            except StoreUnavailable as error:
                log.warning("delivery_waits", reason=str(error))

    async def _look(self, group: asyncio.TaskGroup, holder: Holder) -> None:
        if self._sweep:
            for row in await self._left_behind(holder):
                if self._first_start(row.message.outbox_id):
                    self._start(group, holder, row, resolve=True)
            self._sweep = False
        for row in await self._growing.to_close() if self._growing is not None else ():
            if self._first_start(row.message.outbox_id):
                self._start(group, holder, row)
        rows = await self._take_due(holder)
        for row in rows:
            self._start(group, holder, row)
        self._ask = self._ask or len(rows) == BATCH

    async def _take_due(self, holder: Holder) -> Sequence[OutboxRow]:
        adapter, room = self._adapter, min(BATCH, _room(self._busy, self._handed))
        if room <= 0:
            # Each delivery that ends looks again.
            if not self._full:
                log.warning("delivery_full", channel=adapter.channel, chats=MOST)
            self._full = True
            return ()
        self._full = False
        # A chat whose changed card is on its way may have a post due: it must not take the place
        # of a chat that is free.
        most = BATCH + len(self._busy)
        found = await self._database.read(
            lambda conn: outbox.due(
                conn, channel=adapter.channel, account=adapter.account, most=most
            )
        )
        free = [row for row in found if row.message.target.chat_id not in self._busy][:room]
        if not free:
            return ()
        return await self._database.write(
            lambda conn: outbox_units.claim(conn, free, holder), name="outbox-claim"
        )

    async def _left_behind(self, holder: Holder) -> Sequence[OutboxRow]:
        """Rows in hand of an earlier deliverer, or of a run of ours that was cut off.

        A row of this lease that is young may be on its way here from the run that finished; it is
        left alone until it is old, and whoever starts a row first is the only one that does.
        """
        adapter = self._adapter
        found, now = await self._database.read(
            lambda conn: _in_hand_now(conn, channel=adapter.channel, account=adapter.account)
        )
        shown = [row for row in found if row.state == "streaming"]
        if shown and self._growing is not None:
            await self._growing.care(shown)
        lost = [
            row
            for row in found
            if row.state == "sending"
            and row.message.outbox_id not in self._started
            and not self._in_hand(row)
            and (
                (row.worker, row.fence) != (holder.worker, holder.fence)
                or row.created_ms < now - HAND_OVER_MS
            )
        ]
        if not lost:
            return ()
        return await self._database.write(
            lambda conn: outbox_units.adopt(conn, lost, holder), name="outbox-adopt"
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
        if self._in_hand(row):
            return
        self._busy.setdefault(chat, set()).add(outbox_id)
        group.create_task(self._deliver(row, holder, resolve=resolve), name=f"deliver {outbox_id}")

    async def _deliver(self, row: OutboxRow, holder: Holder, *, resolve: bool) -> None:
        # A row that this deliverer held and never started was cut off from its run: not sent.
        mine = row.worker == holder.worker and row.fence == holder.fence
        chat = row.message.target.chat_id
        try:
            if self._growing is not None:
                row = await self._growing.settled(row)
            if not await self._sender.deliver(row, holder, resolve=resolve and not mine):
                self._started.pop(row.message.outbox_id, None)
        except Exception:  # the root of one message: the sends beside it must not end with it
            # Nobody knows whether it was sent: it stays in hand until the next lease looks it up.
            log.exception("delivery_failed", outbox_id=row.message.outbox_id)
        finally:
            rest = self._busy.get(chat, set())
            rest.discard(row.message.outbox_id)
            if not rest:
                self._busy.pop(chat, None)
            # What came for the chat meanwhile waits behind this, and told us so when it came.
            if self._offered.pop(chat, None) != self._signals:
                self._look_again()

    def _in_hand(self, row: OutboxRow) -> bool:
        """Whether it is being delivered now. A chat may have two: a changed card beside a post."""
        return row.message.outbox_id in self._busy.get(row.message.target.chat_id, ())


def _in_hand_now(
    conn: Connection, *, channel: str, account: str
) -> tuple[Sequence[OutboxRow], int]:
    """The account's rows in hand, and the store's time, by which they were made: a replica's own
    clock may be an hour off."""
    found = outbox.in_hand(conn, channel=channel, account=account)
    return found, now_ms(conn) if found else 0


def account_name(adapter: ChatAdapter) -> str:
    """How the tasks of an account are called."""
    return f"{adapter.channel}:{adapter.account}"


def _room(busy: Sized, handed: Sized) -> int:
    """To how many more chats something may be on its way."""
    return MOST - len(busy) - len(handed)
