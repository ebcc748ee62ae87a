"""Sending one message to its end: sent, dead or unknown (I7), or put back to be tried again.

A send whose outcome is unknown is looked up where the platform can be asked, else it is marked
and shown; it is never repeated blindly (MSG-11).
"""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

import structlog

from runtime.domain.errors import (
    DeliveryRejected,
    DeliveryRetry,
    DeliveryUnknown,
    StaleLease,
    StoreUnavailable,
)
from runtime.domain.ids import made_at_ms
from runtime.domain.messages import Receipt
from runtime.inbox import deliveries
from runtime.inbox.claims import Holder
from runtime.ports.bus import EVENTS, Bus
from runtime.ports.chat import ChatAdapter
from runtime.ports.clock import Clock
from runtime.ports.metrics import NO_OBSERVER, DeliveryResult, Observer
from runtime.store import Connection, Database, outbox
from runtime.store.database import no_point
from runtime.store.outbox import OutboxRow
from runtime.workers.buckets import Buckets

log = structlog.get_logger(__name__)

BASE_BACKOFF_S = 1.0
MAX_BACKOFF_S = 300.0
ACCOUNT_PAUSE_S = 60.0


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
    observer: Observer = NO_OBSERVER


@dataclass(slots=True)
class _Attempt:
    """What a send came to so far: `handed` once the platform may have it; the ids of its posts."""

    posted: list[str]
    handed: bool = False


class Sender:
    """Sends the rows of one account; the deliverer decides which and in what order.

    `retried` is called with the seconds after which a row that was put back may be tried again.
    `held` says whether the account's lease is surely ours at this moment.
    """

    def __init__(
        self,
        adapter: ChatAdapter,
        services: DeliveryServices,
        buckets: Buckets,
        retried: Callable[[float], None],
        *,
        held: Callable[[], bool] = lambda: True,
    ) -> None:
        self._adapter = adapter
        self._services = services
        self._database = services.database
        self._clock = services.clock
        self._retried = retried
        self._held = held
        self.buckets = buckets

    async def deliver(self, row: OutboxRow, holder: Holder, *, resolve: bool) -> bool:
        """Bring one row to its end; with `resolve` an earlier send of it may have happened.

        False when the store went away in front of it: then it is still to be done.
        """
        try:
            if resolve:
                await self._resolve(row, holder)
            else:
                await self._send(row, holder)
        except StaleLease as error:
            log.warning("delivery_lost", outbox_id=row.message.outbox_id, reason=str(error))
        except StoreUnavailable as error:
            # Nothing was sent: the store went away in front of it. The sweep takes it up again.
            log.warning("delivery_waits", outbox_id=row.message.outbox_id, reason=str(error))
            return False
        except Exception as error:  # the worker root: an adapter's defect must not stop the others
            log.exception("delivery_failed", outbox_id=row.message.outbox_id)
            await self._give_up(row, f"{type(error).__name__}: {error}", holder)
        return True

    async def _give_up(self, row: OutboxRow, reason: str, holder: Holder) -> None:
        try:
            await self._settle(row, "unknown", reason, holder)
        except StaleLease as error:
            log.warning("delivery_lost", outbox_id=row.message.outbox_id, reason=str(error))

    async def _send(self, row: OutboxRow, holder: Holder) -> None:
        attempt = _Attempt(list(row.posted))
        try:
            await self._attempt(row, attempt, holder)
        except StaleLease:
            await self._unfenced(row, attempt)
            raise
        except asyncio.CancelledError:
            if not self._held():
                await self._unfenced(row, attempt)
            raise

    async def _attempt(self, row: OutboxRow, attempt: "_Attempt", holder: Holder) -> None:
        message, posted = row.message, attempt.posted

        async def on_posted(message_id: str) -> None:
            posted.append(message_id)
            await self._keep(
                lambda conn: deliveries.progress(conn, message, posted, holder),
                name="outbox-progress",
            )

        row = await self._begun(row, holder)
        try:
            self._services.point("send:begin")
            attempt.handed = row.kind != "edit"
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
            if error.account_wide:
                # The token, not the message, is what is wrong: it goes out once that is mended.
                again = DeliveryRetry(str(error), after_s=ACCOUNT_PAUSE_S)
                await self._retry(replace(row, posted=tuple(posted)), again, holder)
            else:
                await self._settle(row, "dead", str(error), holder)
        except DeliveryUnknown as error:
            if row.kind == "edit":
                # Changing a card twice changes nothing more.
                again = DeliveryRetry(str(error))
                await self._retry(row, again, holder)
                return
            log.warning("delivery_unknown", outbox_id=message.outbox_id, reason=str(error))
            await self._resolve(replace(row, posted=tuple(posted)), holder)
        else:
            await self._sent(row, receipt, holder)

    async def _begun(self, row: OutboxRow, holder: Holder) -> OutboxRow:
        """The row when it may go out now, as it is then. Raises `StaleLease`."""
        message, can = row.message, self._adapter.capabilities
        await self.buckets.take(message.target.chat_id)
        if not (can.lookup or can.repeatable):
            await self._keep(lambda conn: deliveries.begin(conn, message, holder), name="begin")
            row = replace(row, begun_ms=self._clock.now_ms())
        if not self._held():
            # It was frozen or cut off since it took the row: the next deliverer sends it.
            raise StaleLease(f"message {message.outbox_id}")
        return row

    async def _unfenced(self, row: OutboxRow, attempt: "_Attempt") -> None:
        """Count what the platform was handed under a lease that another may hold by now.

        No fence reaches a request that is on its way: it may be a second post of the message.
        """
        if not attempt.handed:
            return
        message, posted = row.message, attempt.posted[len(row.posted) :]
        log.error("delivery_unfenced", outbox_id=message.outbox_id, posted=posted)
        try:
            await self._database.write(
                lambda conn: deliveries.unfenced(conn, message, posted), name="unfenced"
            )
        except StoreUnavailable as error:
            log.warning("delivery_unfenced_not_kept", reason=str(error))

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
        can = self._adapter.capabilities
        if can.repeatable or (not can.lookup and row.begun_ms is None):
            await self._send(row, holder)
            return
        if not can.lookup:
            if self._services.settings.resend_unknown:
                await self._retry(row, DeliveryRetry("resent by the operator's choice"), holder)
            else:
                reason = "it may have been sent: the gateway stopped before the receipt"
                await self._settle(row, "unknown", reason, holder)
            return
        try:
            receipt = await self._look_up(row)
        except DeliveryRejected as error:
            await self._settle(row, "unknown", f"it could not be looked up: {error}", holder)
            return
        if receipt is not None:
            # What was found may be a part of it: a send of what is there already posts the rest.
            await self._send(replace(row, posted=receipt.message_ids), holder)
        else:
            await self._retry(row, DeliveryRetry("it had not arrived"), holder)

    async def _look_up(self, row: OutboxRow) -> Receipt | None:
        """Ask until the platform answers, less and less often; the chat waits for it.

        Raises `DeliveryRejected` once the message is too old to be worth asking for.
        """
        wait = BASE_BACKOFF_S
        while True:
            try:
                return await self._adapter.lookup(row.message, posted=row.posted)
            except DeliveryRetry as error:
                if self._too_old(row):
                    raise DeliveryRejected(error.reason) from error
                await self._clock.sleep(error.after_s or wait)
                wait = min(wait * 2, MAX_BACKOFF_S)

    def _too_old(self, row: OutboxRow) -> bool:
        age_ms = self._clock.now_ms() - row.created_ms
        return age_ms > self._services.settings.give_up_after_s * 1000

    async def _sent(self, row: OutboxRow, receipt: Receipt, holder: Holder) -> None:
        await self._keep(
            lambda conn: deliveries.sent(conn, row.message, receipt, holder), name="receipt"
        )
        _tell(self._services, row, "sent")
        self._services.bus.publish(EVENTS, {"session_id": row.message.session_id or ""})

    async def _settle(
        self, row: OutboxRow, state: Literal["dead", "unknown"], reason: str, holder: Holder
    ) -> None:
        log.error("delivery_ended", outbox_id=row.message.outbox_id, state=state, reason=reason)
        await self._keep(
            lambda conn: deliveries.end(conn, row.message, state, reason, holder), name="outbox-end"
        )
        _tell(self._services, row, state)
        self._services.bus.publish(EVENTS, {"session_id": row.message.session_id or ""})

    async def _retry(self, row: OutboxRow, error: DeliveryRetry, holder: Holder) -> None:
        if self._too_old(row):
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
        _tell(self._services, row, "retry")
        self._retried(wait)

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


def _tell(services: DeliveryServices, row: OutboxRow, result: DeliveryResult) -> None:
    observer, channel = services.observer, row.message.target.channel
    observer.delivered(channel, result)
    if result == "sent" and row.kind == "final" and row.message.run_id is not None:
        took_ms = services.clock.now_ms() - made_at_ms(row.message.run_id)
        observer.replied(channel, took_ms / 1000)
