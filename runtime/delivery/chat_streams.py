"""Text that is shown in a chat while it grows (REN-4): follows live text, opens and feeds streams.

It runs inside the account's deliverer and under its lease, and it is best effort: whatever fails
here, the reply comes by the outbox. It closes nothing: the deliverer does, once the run has ended.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from runtime.delivery import stream_units
from runtime.delivery.poster import DeliveryServices
from runtime.delivery.rate_limiter import Buckets
from runtime.delivery.throttled_edits import GrowingText, Showing
from runtime.delivery.typing_signals import FORGET_AFTER_S
from runtime.domain.messages import ChatAddress
from runtime.domain.runs import Holder
from runtime.domain.value import JsonObject
from runtime.ports.bus import LIVE
from runtime.ports.chat import ChatAdapter
from runtime.process.wakeup import Wake
from runtime.sessions import streams
from runtime.sessions.live_text import SNAPSHOT
from runtime.sessions.outbox import OutboxRow, Stream

MOST = 200
"""Texts of one account that are shown at once; further runs are only answered."""


@dataclass(slots=True)
class GrowingTexts:
    """Shows the texts of one account's runs; made anew for each lease.

    `held` says whether the lease is surely ours at this moment; `ended` is called when a run that
    was followed says nothing more, because its row may be to close.
    """

    adapter: ChatAdapter
    services: DeliveryServices
    buckets: Buckets
    holder: Holder
    held: Callable[[], bool]
    ended: Callable[[], None]
    _texts: dict[str, GrowingText] = field(default_factory=dict)
    _showing: Showing = field(init=False)

    def __post_init__(self) -> None:
        self._showing = Showing(self.adapter, self.services, self.buckets, self.holder, self.held)

    @property
    def shown(self) -> bool:
        """Whether this account shows texts at all while they grow."""
        quiet = self.adapter.channel in self.services.settings.quiet
        return self.adapter.streams is not None and not quiet

    async def run(self) -> None:
        """Follow the runs of this account until cancelled."""
        async with (
            self.services.units.bus.subscribe(LIVE, limit=4096) as signals,
            asyncio.TaskGroup() as group,
        ):
            async for signal in signals:
                if signal.gap:
                    self._ask_all()
                match signal.data.get("type"):
                    case "delta":
                        self._hear(group, signal.data)
                    case "activity":
                        self._note(signal.data)

    def adopt(self, row: OutboxRow) -> None:
        """Go on with a text that a deliverer had shown under an earlier lease."""
        run_id = row.message.run_id
        if run_id is None or run_id in self._texts or self.adapter.streams is None:
            return
        one = self._follow(run_id, row.message.target)
        if one is not None:
            one.row, one.stream, one.missing = row, row.stream, True
            self._ask(run_id)

    async def care(self, shown: Sequence[OutboxRow]) -> None:
        """Go on with the texts that an earlier deliverer had shown, and end those left over."""
        channel, account = self.adapter.channel, self.adapter.account
        over = await self.services.units.database.read(
            lambda conn: streams.over(conn, channel=channel, account=account)
        )
        mine = (self.holder.worker, self.holder.fence)
        due = [
            row for row in shown if (row.worker, row.fence) != mine or row.message.outbox_id in over
        ]
        if due:
            cared = await self.services.units.database.write(
                lambda conn: stream_units.care(conn, due, self.holder), name="stream-care"
            )
            for row in (*cared.growing, *cared.closing):
                self.adopt(row)

    async def to_close(self) -> Sequence[OutboxRow]:
        """Rows whose run ended and whose stream is still open; no look where none is followed."""
        if not any(one.row is not None for one in self._texts.values()):
            return ()
        adapter, holder = self.adapter, self.holder
        return await self.services.units.database.read(
            lambda conn: streams.ended(
                conn,
                channel=adapter.channel,
                account=adapter.account,
                holder=holder,
            )
        )

    async def settled(self, row: OutboxRow) -> OutboxRow:
        """A row that is to be closed, with what is known of its stream, once nothing of it is on
        its way to the platform any more."""
        one = self._texts.get(row.message.run_id or "")
        if one is None or not _is_of(one, row):
            return row
        del self._texts[one.run_id]
        one.over = True
        one.wake.set()
        if one.task is not None:
            await asyncio.wait([one.task])
        if one.goes_on:
            self._ask(one.run_id)
        if one.row is None or one.stream == Stream():
            return row
        # The row may have been read before the post of its stream was known, or that it has none.
        return replace(row, stream=one.stream and replace(one.stream, shown=one.standing))

    def _note(self, data: JsonObject) -> None:
        run_id = str(data.get("run_id"))
        one = self._texts.get(run_id)
        if data.get("state") == "done":
            if one is not None:
                self._rest(one)
        elif one is None or one.over:
            self._follow(run_id, ChatAddress.model_validate(data.get("target"), extra="ignore"))
        else:
            one.heard = self.services.clock.monotonic()

    def _rest(self, one: GrowingText) -> None:
        one.over = True
        one.wake.set()
        if one.row is None and (one.task is None or one.task.done()):
            _drop(self._texts, one)
        self.ended()

    def _follow(self, run_id: str, target: ChatAddress) -> GrowingText | None:
        """Keep an eye on a run of this account; None where its chat gets no stream."""
        mine = (target.channel, target.account) == (self.adapter.channel, self.adapter.account)
        streams = self.adapter.streams
        if not mine or streams is None or streams.interval_s(target) is None:
            return None
        self._forget()
        if len(self._texts) >= MOST:
            return None
        former = self._texts.get(run_id)
        if former is not None and former.is_closing:
            # The run goes on, and says more once this one is closed.
            former.goes_on = True
            return None
        one = GrowingText(
            run_id, target, self.services.clock.monotonic(), Wake(self.services.clock)
        )
        self._texts[run_id] = one
        return one

    def _forget(self) -> None:
        """A run that said nothing for long is gone: the last word of it was lost."""
        before = self.services.clock.monotonic() - FORGET_AFTER_S
        for one in [one for one in self._texts.values() if one.heard < before]:
            one.over = True
            one.wake.set()
            if one.task is None or one.task.done():
                del self._texts[one.run_id]

    def _hear(self, group: asyncio.TaskGroup, data: JsonObject) -> None:
        run_id = str(data.get("run_id"))
        one = self._texts.get(run_id)
        if (one is None or one.over) and "target" in data:
            one = self._follow(run_id, ChatAddress.model_validate(data["target"], extra="ignore"))
        if one is None or one.over:
            return
        now = self.services.clock.monotonic()
        one.heard = now
        missed = one.missing
        step, offset, piece = data.get("step"), data.get("offset"), data.get("text")
        if not (isinstance(step, int) and isinstance(offset, int) and isinstance(piece, str)):
            return
        if not one.take(step, offset, piece, now):
            if not missed:
                self._ask(run_id)
            return
        if one.task is None and piece:
            one.task = group.create_task(self._show(one), name=f"stream {run_id}")
        one.wake.set()

    async def _show(self, one: GrowingText) -> None:
        await self._showing.show(one)
        if one.over and one.row is None:
            _drop(self._texts, one)
        elif one.over:
            # Its row was written when its run had ended: nobody looked for it then.
            self.ended()

    def _ask_all(self) -> None:
        for one in self._texts.values():
            if not one.over:
                one.missing = True
                self._ask(one.run_id)

    def _ask(self, run_id: str) -> None:
        self.services.units.bus.publish(SNAPSHOT, {"run_id": run_id})


def _is_of(one: GrowingText, row: OutboxRow) -> bool:
    """Whether a row to be closed is the one of a text, which learns of it after it is kept."""
    if one.row is None:
        return row.stream is not None and one.task is not None
    return one.row.message.outbox_id == row.message.outbox_id


def _drop(texts: dict[str, GrowingText], one: GrowingText) -> None:
    """Forget a text, unless its run has another by now."""
    if texts.get(one.run_id) is one:
        del texts[one.run_id]
