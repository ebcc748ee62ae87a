"""Sending one message to its end: sent, dead or unknown (I7), or put back to be tried again.

A send whose outcome is unknown is looked up where the platform can be asked, else it is marked
and shown; it is never repeated blindly (MSG-11).
"""

import asyncio
import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import structlog

from runtime.delivery import outbox_units
from runtime.delivery.poster import (
    Attempt,
    DeliveryServices,
    DeliverySettings,
    Poster,
    believed,
    keep,
    tell_unfenced,
)
from runtime.delivery.rate_limiter import Buckets
from runtime.delivery.undeliverable_files import fitting
from runtime.domain.errors import (
    DeliveryRejected,
    DeliveryRetry,
    DeliveryUnknown,
    StaleLease,
    StoreUnavailable,
)
from runtime.domain.ids import made_at_ms
from runtime.domain.messages import Receipt
from runtime.domain.runs import Holder
from runtime.domain.value import JsonObject
from runtime.ports import tracing
from runtime.ports.bus import EVENTS, RUNS
from runtime.ports.chat import ChatAdapter
from runtime.ports.metrics import DeliveryResult
from runtime.ports.tracing import Span, Tracer, Value
from runtime.sessions.outbox import OutboxRow, Stream
from runtime.store import now_ms

__all__ = ["DeliveryServices", "DeliverySettings", "Sender"]

log = structlog.get_logger(__name__)

BASE_BACKOFF_S = 1.0
MAX_BACKOFF_S = 300.0
ACCOUNT_PAUSE_S = 60.0
LOOK_LATER_S = 0.005
"""A look for a row that is to be tried again comes behind its time by the store's clock."""


@dataclass(frozen=True, slots=True)
class Sender:
    """Sends the rows of one account; the deliverer decides which and in what order.

    `retried` is called with the seconds after which a row that was put back may be tried again.
    `held` says whether the account's lease is surely ours at this moment.
    """

    adapter: ChatAdapter
    services: DeliveryServices
    buckets: Buckets
    retried: Callable[[float], object]
    held: Callable[[], bool]

    @property
    def _poster(self) -> Poster:
        return Poster(self.adapter, self.services, self.buckets, self.held)

    async def deliver(self, row: OutboxRow, holder: Holder, *, resolve: bool) -> bool:
        """Bring one row to its end; with `resolve` an earlier send of it may have happened.

        False when the store went away in front of it: then it is still to be done.
        """
        can, commands = self.adapter.capabilities, self.services.commands
        row = replace(row, message=fitting(row.message, can, commands))
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
        if row.kind == "edit" and await self._is_early(row, holder):
            return
        attempt = Attempt(list(row.posted), row.stream)
        try:
            await self._attempt(row, attempt, holder)
        except StaleLease:
            await self._unfenced(row, attempt)
            raise
        except asyncio.CancelledError:
            if not self.held():
                await self._unfenced(row, attempt)
            raise

    async def _is_early(self, row: OutboxRow, holder: Holder) -> bool:
        """Put an edit back that comes too soon behind another of its chat (REN-4): what else is to
        go there need not wait for it. One that is in time has its turn from now on."""
        edits, chat = self.buckets.edits, row.message.target.chat_id
        wait = edits.wait_s(chat)
        if wait <= 0:
            edits.begin(chat)
            return False
        delay_ms = math.ceil(wait * 1000)
        await keep(
            self.services,
            lambda conn: outbox_units.put_off(conn, row, delay_ms, holder),
            name="outbox-put-off",
        )
        self.retried(wait + LOOK_LATER_S)
        return True

    async def _attempt(self, row: OutboxRow, attempt: Attempt, holder: Holder) -> None:
        message, posted = row.message, attempt.posted
        row = await self._begun(row, holder)
        try:
            self.services.point("send:begin")
            with _span(self.services.tracer, row):
                receipt = await self._poster.hand_over(row, attempt, holder)
            self.services.point("send:end")
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
            begun_ms = row.begun_ms or attempt.begun_ms
            row = replace(row, stream=attempt.stream, begun_ms=begun_ms)
            if row.kind == "edit" or _is_own_post(row, posted):
                # Changing a post twice changes nothing more.
                again = DeliveryRetry(str(error))
                await self._retry(row, again, holder)
                return
            log.warning("delivery_unknown", outbox_id=message.outbox_id, reason=str(error))
            await self._resolve(replace(row, posted=tuple(posted)), holder)
        else:
            await self._sent(row, receipt, holder)

    async def _begun(self, row: OutboxRow, holder: Holder) -> OutboxRow:
        """The row when it may go out now, as it is then. Raises `StaleLease`."""
        message = row.message
        await self._poster.take(message)
        if row.stream is None or row.stream.id == "" or row.posted:
            await self._poster.mark(message, holder)
            row = replace(row, begun_ms=self.services.clock.now_ms())
        if not self.held():
            # It was frozen or cut off since it took the row: the next deliverer sends it.
            raise StaleLease(f"message {message.outbox_id}")
        return row

    async def _unfenced(self, row: OutboxRow, attempt: Attempt) -> None:
        if attempt.handed:
            posted = attempt.posted[len(row.posted) :]
            await tell_unfenced(self.services, row.message, posted)

    async def _resolve(self, row: OutboxRow, holder: Holder) -> None:
        """Find out whether an unsettled send arrived."""
        if row.kind == "edit":
            await self._send(row, holder)
            return
        can = self.adapter.capabilities
        unbegun = not can.lookup and row.begun_ms is None
        # A post that grew may be half: it is found and closed, and never taken for the reply.
        half = row.stream == Stream() and not row.posted
        if can.repeatable or unbegun or half or _is_own_post(row, row.posted):
            await self._send(row, holder)
            return
        if not can.lookup:
            if self.services.settings.resend_unknown:
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
        ask = partial(self.adapter.lookup, row.message, posted=row.posted)
        while True:
            try:
                return await believed(self.services.clock, ask)
            except DeliveryRetry as error:
                if await self._too_old(row):
                    raise DeliveryRejected(error.reason) from error
                await self.services.clock.sleep(error.after_s or wait)
                wait = min(wait * 2, MAX_BACKOFF_S)

    async def _too_old(self, row: OutboxRow) -> bool:
        """By the store's time, as the row was made: a replica's own clock may be an hour off."""
        try:
            age_ms = await self.services.units.database.read(now_ms) - row.created_ms
        except StoreUnavailable:
            # It is asked again at the next try.
            return False
        return age_ms > self.services.settings.give_up_after_s * 1000

    async def _sent(self, row: OutboxRow, receipt: Receipt, holder: Holder) -> None:
        ready = await keep(
            self.services,
            lambda conn: outbox_units.sent(conn, row.message, receipt, holder),
            name="receipt",
        )
        self._ended(row, "sent", ready=ready)

    async def _settle(
        self, row: OutboxRow, state: Literal["dead", "unknown"], reason: str, holder: Holder
    ) -> None:
        log.error("delivery_ended", outbox_id=row.message.outbox_id, state=state, reason=reason)
        ready = await keep(
            self.services,
            lambda conn: outbox_units.end(conn, row.message, state, reason, holder),
            name="outbox-end",
        )
        self._ended(row, state, ready=ready)

    def _ended(self, row: OutboxRow, result: DeliveryResult, *, ready: bool) -> None:
        _tell(self.services, row, result)
        told: JsonObject = {"session_id": row.message.session_id or ""}
        self.services.units.bus.publish(EVENTS, told)
        if ready:
            # A claim passed over its lane while the unit above held that.
            self.services.units.bus.publish(RUNS, told)

    async def _retry(self, row: OutboxRow, error: DeliveryRetry, holder: Holder) -> None:
        if await self._too_old(row):
            await self._settle(row, "dead", f"given up: {error.reason}", holder)
            return
        wait = error.after_s
        if wait is None:
            doubled = BASE_BACKOFF_S * 2 ** min(row.attempt, 10) * (1 + self.services.jitter() / 4)
            wait = min(doubled, MAX_BACKOFF_S)
        else:
            target = row.message.target
            self.buckets.block(target.chat_id, wait, group=target.chat_kind != "direct")
        delay_ms = int(wait * 1000)
        await keep(
            self.services,
            lambda conn: outbox_units.retry(conn, row, error.reason, delay_ms, holder),
            name="outbox-retry",
        )
        _tell(self.services, row, "retry")
        self.retried(wait + LOOK_LATER_S)


def _is_own_post(row: OutboxRow, posted: Sequence[str]) -> bool:
    """Whether all that may be on its way is a change of the post in which the text grew.

    A further post is only begun once that one is among the `posted`.
    """
    return row.stream is not None and not posted and bool(row.stream.id)


def _tell(services: DeliveryServices, row: OutboxRow, result: DeliveryResult) -> None:
    observer, channel = services.observer, row.message.target.channel
    observer.delivered(channel, result)
    if result == "sent" and row.kind == "final" and row.message.run_id is not None:
        took_ms = services.clock.now_ms() - made_at_ms(row.message.run_id)
        observer.replied(channel, took_ms / 1000)


def _span(tracer: Tracer, row: OutboxRow) -> AbstractContextManager[Span]:
    """The span of one attempt. It is of its run's trace; what has no run has a trace of its own."""
    message = row.message
    facts: dict[str, Value] = {tracing.OUTBOX: message.outbox_id}
    facts[tracing.CHANNEL] = message.target.channel
    if message.run_id is not None:
        facts[tracing.RUN] = message.run_id
    if message.session_id is not None:
        facts[tracing.CONVERSATION] = message.session_id
    of = message.run_id or message.outbox_id
    return tracer.span("deliver", of, message.target.channel, facts)
