"""Showing one text while it grows (REN-4): when it is worth it, at most once an interval.

It talks to the platform and keeps what it learns of the post; who says what, and when a run is
over, is `chat_streams`'s business. A failure here costs nobody the reply.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import structlog

from runtime.delivery import stream_units
from runtime.delivery.poster import KEEP_AGAIN_S, DeliveryServices, keep, tell_unfenced
from runtime.delivery.rate_limiter import Buckets
from runtime.delivery.typing_signals import FORGET_AFTER_S
from runtime.domain.errors import (
    DeliveryRejected,
    DeliveryRetry,
    DeliveryUnknown,
    StaleLease,
    StoreUnavailable,
)
from runtime.domain.messages import ChatAddress, OutboundMessage, TextPart
from runtime.domain.runs import Holder
from runtime.ports.chat import ChatAdapter, Streams
from runtime.process.wakeup import Wake
from runtime.sessions.outbox import OutboxRow, Stream

log = structlog.get_logger(__name__)

WORTH_CHARACTERS = 20
"""A text is shown once it is as long, or once `WORTH_S` have passed since its first word."""
WORTH_S = 1.0
OPENING_CHARACTERS = 80


def opening(text: str, *, findable: bool) -> str:
    """What of a text the post begins with in which it is to grow.

    Where nobody can find that post again, a crash before its id is known leaves it standing beside
    the reply (MSG-11): so it holds no more than half of what was said, and says that more follows.
    """
    if findable:
        return text
    said = text.strip()
    begun = said[: min(len(said) // 2, OPENING_CHARACTERS)].rstrip()
    return f"{begun} \N{HORIZONTAL ELLIPSIS}".lstrip()


@dataclass(slots=True)
class GrowingText:
    """One run's text as far as it was heard, and what of it was shown.

    `shown` is what it was last shown with, `standing` what its post surely shows now.
    """

    run_id: str
    target: ChatAddress
    heard: float
    wake: Wake
    step: int = 0
    pieces: list[str] = field(default_factory=list)
    length: int = 0
    began: float = 0.0
    missing: bool = False
    row: OutboxRow | None = None
    stream: Stream | None = None
    shown: str = ""
    standing: str | None = None
    shown_step: int = 0
    not_before: float = 0.0
    over: bool = False
    given_up: bool = False
    goes_on: bool = False
    task: asyncio.Task[None] | None = None

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    @property
    def is_closing(self) -> bool:
        """Whether something of it is on its way to the platform, or its row is open there."""
        return self.row is not None or (self.task is not None and not self.task.done())

    def take(self, step: int, offset: int, piece: str, now: float) -> bool:
        """Add a piece; False where something before it was not heard."""
        if offset == 0:
            self.step, self.pieces, self.length, self.missing = step, [], 0, False
        elif self.missing or step != self.step or offset != self.length:
            self.missing = True
            return False
        if piece and not self.length:
            self.began = now
        self.pieces.append(piece)
        self.length += len(piece)
        return True


@dataclass(frozen=True, slots=True)
class Showing:
    """Shows the texts of one account under one lease; `held` says whether it is surely ours."""

    adapter: ChatAdapter
    services: DeliveryServices
    buckets: Buckets
    holder: Holder
    held: Callable[[], bool]
    _edited: dict[str, GrowingText] = field(default_factory=dict)

    async def show(self, one: GrowingText) -> None:
        """Show one text as it grows, at most once an interval, until its run ends."""
        while not one.over and not one.given_up:
            wait = self._wait_s(one)
            if wait > 0:
                await one.wake.wait(wait)
                continue
            try:
                await self._update(one)
            except StaleLease as error:
                log.warning("stream_lost", run_id=one.run_id, reason=str(error))
                one.given_up = True
            except StoreUnavailable as error:
                log.warning("stream_waits", run_id=one.run_id, reason=str(error))
                one.not_before = self.services.clock.monotonic() + KEEP_AGAIN_S
            except Exception:  # the worker root: what is shown meanwhile must not cost the reply
                log.exception("stream_failed", run_id=one.run_id)
                one.given_up = True

    def _wait_s(self, one: GrowingText) -> float:
        """Seconds until there may be something to show; a long time where a signal comes first."""
        now, text = self.services.clock.monotonic(), one.text
        if one.missing or not text.strip() or text == one.shown:
            return FORGET_AFTER_S
        due = one.not_before
        if one.step != one.shown_step and len(text) < WORTH_CHARACTERS:
            due = max(due, one.began + WORTH_S)
        return due - now

    async def _update(self, one: GrowingText) -> None:
        streams = self.adapter.streams
        interval = None if streams is None else streams.interval_s(one.target)
        if streams is None or interval is None or not self.held():
            one.given_up = True
            return
        one.not_before = self.services.clock.monotonic() + interval
        if self._is_early(one, streams):
            return
        group = one.target.chat_kind != "direct"
        if not self.buckets.spare_for(one.target.chat_id, group=group):
            return
        if one.stream is None and not await self._begin(one):
            return
        text, step = one.text, one.step
        # Until the platform has answered, nobody knows what the post shows.
        one.standing = None
        try:
            text = await self._show_now(one, text)
        except DeliveryRetry as error:
            await self._later(one, error, interval)
        except (DeliveryRejected, DeliveryUnknown) as error:
            # It grows no more; what is known of its post decides how it is closed.
            log.info("stream_refused", run_id=one.run_id, reason=str(error))
            one.given_up = True
            if isinstance(error, DeliveryRejected) and one.stream == Stream():
                await self._keep(one, None)
        else:
            one.shown, one.shown_step = text, step
            # What was given up was not shown: its post is known to nobody.
            one.standing = None if one.given_up else text

    def _is_early(self, one: GrowingText, streams: Streams) -> bool:
        """Whether a text that grows by edits must wait: for the pause between two edits of its
        chat, or, before it is begun, for another that grows there so (REN-4).

        One is enough: each ends in an edit too, and no reply is to wait for those of many.
        """
        stream, pause = one.stream.id if one.stream else None, self._edit_interval_s
        if pause <= 0 or not streams.grows_by_edits(one.target, stream):
            return False
        other = self._edited.get(one.target.chat_id, one)
        if one.stream is None and other is not one and not (other.over or other.given_up):
            return True
        wait = self.buckets.edits.wait_s(one.target.chat_id)
        one.not_before = max(one.not_before, self.services.clock.monotonic() + wait)
        return wait > 0

    @property
    def _edit_interval_s(self) -> float:
        return self.adapter.capabilities.edit_interval_s

    async def _begin(self, one: GrowingText) -> bool:
        row = await self.services.units.run(
            lambda unit: stream_units.begin(unit, one.run_id, self.holder), name="stream-begin"
        )
        if row is None:
            return False
        one.row, one.stream = row, row.stream
        if row.stream is None:
            one.stream = Stream()
            self.services.point("stream:begun")
        return self.held()

    async def _show_now(self, one: GrowingText, text: str) -> str:
        """Show it; what of it is seen now."""
        streams, row = self.adapter.streams, one.row
        if streams is None or row is None or one.stream is None:
            return text
        if one.stream.id is None and row.stream is None:
            text = opening(text, findable=self.adapter.capabilities.lookup)
        message = row.message.model_copy(update={"parts": (TextPart(markdown=text),)})
        if one.stream.id is None and row.stream is not None:
            # Whoever opened it died before its post was known.
            found = await streams.find(message)
            if found is None:
                one.given_up = True
                return text
            await self._keep(one, Stream(found))
        elif one.stream.id is None:
            async with self._handing(message):
                opened = await streams.open(message)
            self._opened(one, streams, opened)
            await self._keep(one, Stream(opened))
            self.services.point("stream:kept")
            return text
        async with self._editing(one, streams), self._handing(message):
            await streams.grow(message, one.stream.id or "")
        if not self.held():
            # The next holder may have put the reply there before: this half text is over it.
            await tell_unfenced(self.services, message, ())
            raise StaleLease(f"message {message.outbox_id}")
        return text

    def _opened(self, one: GrowingText, streams: Streams, stream: str) -> None:
        """What begins to grow by edits has its first one after the pause."""
        if not streams.grows_by_edits(one.target, stream):
            return
        for chat in [chat for chat, text in self._edited.items() if text.over or text.given_up]:
            del self._edited[chat]
        self._edited[one.target.chat_id] = one
        after = self.services.clock.monotonic() + self._edit_interval_s
        one.not_before = max(one.not_before, after)

    @asynccontextmanager
    async def _editing(self, one: GrowingText, streams: Streams) -> AsyncIterator[None]:
        stream = one.stream.id if one.stream else None
        if not streams.grows_by_edits(one.target, stream):
            yield
            return
        async with self.buckets.edits.turn(one.target.chat_id):
            yield

    @asynccontextmanager
    async def _handing(self, message: OutboundMessage) -> AsyncIterator[None]:
        """A request to the platform; counted where its end is not known and the lease is lost."""
        if not self.held():
            # It was frozen or cut off meanwhile: the next deliverer goes on with the post.
            raise StaleLease(f"message {message.outbox_id}")
        try:
            yield
        except (asyncio.CancelledError, DeliveryUnknown):
            if not self.held():
                await tell_unfenced(self.services, message, ())
            raise

    async def _later(self, one: GrowingText, error: DeliveryRetry, interval: float) -> None:
        wait = error.after_s or interval
        if error.after_s is not None:
            group = one.target.chat_kind != "direct"
            self.buckets.block(one.target.chat_id, error.after_s, group=group)
        one.not_before = self.services.clock.monotonic() + wait
        opened_here = one.row is not None and one.row.stream is None
        if one.stream == Stream() and opened_here:
            await self._keep(one, None)

    async def _keep(self, one: GrowingText, stream: Stream | None) -> None:
        """Keep what is known of the post however long the store is away: only we know it.

        Raises `StaleLease`; a post that was made under a lost lease is counted.
        """
        row = one.row
        if row is None:
            return
        one.stream, message = stream, row.message
        try:
            await keep(
                self.services,
                lambda conn: stream_units.keep(conn, message, stream, self.holder),
                name="stream-keep",
            )
        except StaleLease:
            if stream is not None and stream.id:
                await tell_unfenced(self.services, message, (stream.id,))
            raise
        one.row = replace(row, stream=stream)
