"""Handing one message to its platform: each post in its turn, progress kept, streams closed.

What may be on its way is always in the rows first; what became of it is for `sending` to judge.
"""

import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

import structlog

from runtime.delivery import outbox_units, stream_units
from runtime.delivery.rate_limiter import Buckets
from runtime.delivery.undeliverable_files import intact
from runtime.domain.errors import DeliveryRejected, StaleLease, StoreUnavailable
from runtime.domain.messages import OutboundMessage, Receipt, TextPart
from runtime.domain.runs import Holder
from runtime.ports.chat import ChatAdapter, Posted
from runtime.ports.clock import Clock
from runtime.ports.metrics import NO_OBSERVER, Observer
from runtime.ports.tracing import NO_TRACER, Tracer
from runtime.sessions import outbox
from runtime.sessions.outbox import LIVE_CARD, OutboxRow, Stream
from runtime.sessions.unit import Units
from runtime.store import Connection
from runtime.store.database import no_point

log = structlog.get_logger(__name__)

T = TypeVar("T")

KEEP_AGAIN_S = 1.0
IN_FLIGHT_S = 2.0
"""How long after its sender's death a request may still be carried out, and then be seen."""


@dataclass(frozen=True, slots=True)
class DeliverySettings:
    """`give_up_after_s`: how long a message is tried. `resend_unknown`: the operator's choice to
    rather see a message twice than not at all. `quiet` are channels in which no text is shown
    while it grows. `keep_files_s`: how long copies of sent files are kept."""

    give_up_after_s: float = 24 * 3600.0
    resend_unknown: bool = False
    quiet: frozenset[str] = frozenset()
    keep_files_s: float = 7 * 24 * 3600.0


@dataclass(frozen=True, slots=True)
class DeliveryServices:
    """What every deliverer of a process uses; `point` is called around each send, for tests that
    end the process there; `jitter` is a source of numbers in [0, 1); the paths of files that are
    sent begin at `workspace`; `commands` are put into each platform's spelling."""

    units: Units
    clock: Clock
    worker: str
    settings: DeliverySettings = field(default_factory=DeliverySettings)
    jitter: Callable[[], float] = random.random
    point: Callable[[str], None] = no_point
    observer: Observer = NO_OBSERVER
    tracer: Tracer = NO_TRACER
    workspace: Path = Path()
    commands: frozenset[str] = frozenset()


async def believed(clock: Clock, ask: Callable[[], Awaitable[T | None]]) -> T | None:
    """What `ask` finds at the platform; None only once it said so twice, `IN_FLIGHT_S` apart.

    Whoever sent it may have died with the request on its way: what is not there yet may still come,
    and would stand there twice.
    """
    found = await ask()
    if found is None:
        await clock.sleep(IN_FLIGHT_S)
        found = await ask()
    return found


@dataclass(slots=True)
class Attempt:
    """What a send came to so far: `handed` once the platform may have it; the ids of its posts;
    the post in which its text grew, None once that was given up for new ones; when it was noted
    that a new one begins."""

    posted: list[str]
    stream: Stream | None = None
    handed: bool = False
    begun_ms: int | None = None


async def keep(services: DeliveryServices, work: Callable[[Connection], T], *, name: str) -> T:
    """Write what is known of a send however long the store is away: only this process knows.

    It ends when the lease does. Raises `StaleLease`.
    """
    while True:
        try:
            return await services.units.database.write(work, name=name)
        except StoreUnavailable as error:
            log.warning("receipt_waits", reason=str(error))
        await services.clock.sleep(KEEP_AGAIN_S)


async def tell_unfenced(
    services: DeliveryServices, message: OutboundMessage, posted: Sequence[str]
) -> None:
    """Keep that the platform was handed something under a lease that another may hold by now.

    No fence reaches a request that is on its way: it may be a second post of the message. `posted`
    are the posts that were made; none where one was changed, or nobody knows.
    """
    log.error("delivery_unfenced", outbox_id=message.outbox_id, posted=list(posted))
    try:
        await services.units.database.write(
            lambda conn: outbox_units.unfenced(conn, message, posted), name="unfenced"
        )
    except StoreUnavailable as error:
        log.warning("delivery_unfenced_not_kept", reason=str(error))


@dataclass(frozen=True, slots=True)
class Poster:
    """Talks to one account's adapter. `held` says whether its lease is surely ours."""

    adapter: ChatAdapter
    services: DeliveryServices
    buckets: Buckets
    held: Callable[[], bool]

    async def hand_over(self, row: OutboxRow, attempt: Attempt, holder: Holder) -> Receipt:
        """Let the adapter post what is not posted yet; each post takes its turn."""
        message, posted = row.message, attempt.posted

        async def on_posted(message_id: str) -> None:
            posted.append(message_id)
            await keep(
                self.services,
                lambda conn: outbox_units.progress(conn, message, posted, holder),
                name="outbox-progress",
            )
            if row.begun_ms is None:
                await self._begin(message, attempt, holder)
            await self.take(message)
            if not self.held():
                raise StaleLease(f"message {message.outbox_id}")

        if row.kind == "edit":
            return await self._edit(row)
        if row.stream is not None:
            return await self._close(row, attempt, on_posted, holder)
        if row.kind == LIVE_CARD and not self.adapter.capabilities.live_cards:
            return Receipt(message_ids=())
        attempt.handed = True
        whole = await intact(message, self.services.workspace)
        return await self.adapter.send(whole, posted=tuple(row.posted), on_posted=on_posted)

    async def _edit(self, row: OutboxRow) -> Receipt:
        """Change a card that was posted; where it cannot be changed, nothing is sent."""
        open_call = row.open_call_id
        card = None
        if open_call is not None:
            card = await self.services.units.database.read(
                lambda conn: outbox.card_of(conn, open_call)
            )
        if card is None or not card.posted or not self.adapter.capabilities.edits:
            return Receipt(message_ids=())
        receipt = Receipt(message_ids=card.posted)
        try:
            await self.adapter.edit(row.message, receipt)
        finally:
            # Its turn was taken in front of this.
            self.buckets.edits.ended(row.message.target.chat_id)
        return receipt

    async def _close(
        self, row: OutboxRow, attempt: Attempt, on_posted: Posted, holder: Holder
    ) -> Receipt:
        """Put the reply in the place of what was streamed; where that is lost, send it whole."""
        message, posted, streams = row.message, row.posted, self.adapter.streams
        reason = "nobody can tell where it is"
        found = row.stream.id if row.stream is not None else None
        if found is None and streams is not None:
            find = partial(streams.find, message)
            can_find = self.adapter.capabilities.lookup
            found = await (believed(self.services.clock, find) if can_find else find())
            if found is not None:
                # Kept before it is changed, so that a repetition changes the same post.
                await keep(
                    self.services,
                    lambda conn: stream_units.keep(conn, message, Stream(found), holder),
                    name="stream-keep",
                )
                attempt.stream = Stream(found)
        if found is not None and streams is not None:
            try:
                shown = _shown(row)
                async with self._ending(message, found, attempt, shown):
                    receipt = await streams.close(
                        message, found, posted=posted, on_posted=on_posted, shown=shown
                    )
            except DeliveryRejected as error:
                if error.account_wide or attempt.posted:
                    raise
                reason = str(error)
            else:
                self.services.point("stream:closed")
                return receipt
        log.warning("stream_orphaned", outbox_id=message.outbox_id, reason=reason)
        await keep(
            self.services,
            lambda conn: stream_units.orphaned(conn, message, Stream(found), reason, holder),
            name="stream-orphaned",
        )
        attempt.stream = None
        self.services.observer.delivered(message.target.channel, "orphaned")
        await self._begin(message, attempt, holder)
        attempt.handed = True
        return await self.adapter.send(message, posted=posted, on_posted=on_posted)

    @asynccontextmanager
    async def _ending(
        self,
        message: OutboundMessage,
        stream: str,
        attempt: Attempt,
        shown: OutboundMessage | None,
    ) -> AsyncIterator[None]:
        """A stream's end, in its turn where it is an edit of its post. Raises `StaleLease`."""
        streams, chat = self.adapter.streams, message.target.chat_id
        edits = streams is not None and bool(stream) and not attempt.posted
        if edits and streams is not None and streams.ends_by_edit(message, stream, shown=shown):
            async with self.buckets.edits.turn(chat):
                if not self.held():
                    raise StaleLease(f"message {message.outbox_id}")
                attempt.handed = True
                yield
            return
        attempt.handed = True
        yield

    async def _begin(self, message: OutboundMessage, attempt: Attempt, holder: Holder) -> None:
        attempt.begun_ms = self.services.clock.now_ms()
        await self.mark(message, holder)

    async def mark(self, message: OutboundMessage, holder: Holder) -> None:
        """Keep that a post begins, where nobody could look it up afterwards."""
        can = self.adapter.capabilities
        if not (can.lookup or can.repeatable):
            await keep(
                self.services, lambda conn: outbox_units.begin(conn, message, holder), name="begin"
            )

    async def take(self, message: OutboundMessage) -> None:
        """Wait for the message's turn; each of its posts takes one (MSG-10)."""
        target = message.target
        is_group = target.chat_kind != "direct"
        await self.buckets.take(target.chat_id, group=is_group, message=message.outbox_id)


def _shown(row: OutboxRow) -> OutboundMessage | None:
    """What the post of a stream surely shows; None where nobody knows."""
    if row.stream is None or row.stream.shown is None:
        return None
    return row.message.model_copy(update={"parts": (TextPart(markdown=row.stream.shown),)})
