"""Typing signals: a person sees that a run works (REN-5). Best effort, never before a message.

Each chat is told by a task of its own, so that one that does not answer keeps nobody else waiting.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from runtime.delivery.rate_limiter import Buckets
from runtime.domain.errors import DeliveryError
from runtime.domain.messages import ChatAddress
from runtime.domain.value import JsonObject
from runtime.ports.bus import LIVE, Bus
from runtime.ports.chat import ChatAdapter
from runtime.ports.clock import Clock
from runtime.process.wakeup import Wake

log = structlog.get_logger(__name__)

FORGET_AFTER_S = 600.0
"""A run that said nothing for so long is taken as gone: its last signal was lost."""
MOST_AT_ONCE = 32
"""Signals of one account that are on their way; the platform may be slow with all of them."""
MOST_RUNS = 1_000
"""Runs of one account that are shown at work, and chats that are still to be told of an end."""


@dataclass(slots=True)
class _Working:
    target: ChatAddress
    state: str
    heard: float
    shown: float | None = None


class TypingSignals:
    """Shows and renews the typing state of one account's chats while runs work there.

    Every process follows the runs of all; only the account's deliverer, by `held`, shows them.
    """

    def __init__(
        self,
        adapter: ChatAdapter,
        bus: Bus,
        clock: Clock,
        buckets: Buckets,
        held: Callable[[], bool] = lambda: True,
    ) -> None:
        self._adapter = adapter
        self._bus = bus
        self._clock = clock
        self._buckets = buckets
        self._held = held
        self._wake = Wake(clock)
        self._working: dict[str, _Working] = {}
        self._ended: dict[ChatAddress, None] = {}
        self._saying: set[ChatAddress] = set()

    async def listen(self) -> None:
        """Follow the runs of this account until cancelled."""
        async with self._bus.subscribe(LIVE, limit=4096) as signals:
            async for signal in signals:
                if signal.data.get("type") == "activity":
                    self._note(signal.data)

    async def show(self) -> None:
        """Send signals until cancelled."""
        interval = self._adapter.capabilities.typing_interval_s or 4.0
        async with asyncio.TaskGroup() as group:
            while True:
                await self._wake.wait(interval if self._working else 3600.0)
                now = self._clock.monotonic()
                for target in tuple(self._ended):
                    if self._begin(group, target, "done"):
                        del self._ended[target]
                for run_id, work in tuple(self._working.items()):
                    due = work.shown is None or now - work.shown >= interval * 0.9
                    if now - work.heard > FORGET_AFTER_S:
                        del self._working[run_id]
                    elif due and self._begin(group, work.target, work.state):
                        work.shown = now

    def _note(self, data: JsonObject) -> None:
        target = ChatAddress.model_validate(data.get("target"), extra="ignore")
        if (target.channel, target.account) != (self._adapter.channel, self._adapter.account):
            return
        run_id, state = str(data.get("run_id")), str(data.get("state"))
        if state == "done":
            if self._working.pop(run_id, None) is not None and len(self._ended) < MOST_RUNS:
                self._ended[target] = None
                self._wake.set()
            return
        now = self._clock.monotonic()
        work = self._working.get(run_id)
        if work is not None:
            work.state, work.heard = state, now
        elif len(self._working) < MOST_RUNS:
            self._working[run_id] = _Working(target, state, now)
            self._wake.set()

    def _begin(self, group: asyncio.TaskGroup, target: ChatAddress, state: str) -> bool:
        """Tell a chat, unless the last that it was told is still on its way."""
        if target in self._saying or len(self._saying) >= MOST_AT_ONCE:
            return False
        self._saying.add(target)
        group.create_task(self._tell(target, state), name=f"typing {target.chat_id}")
        return True

    async def _tell(self, target: ChatAddress, state: str) -> None:
        try:
            await self._say(target, state)
        finally:
            self._saying.discard(target)
            if self._ended:
                self._wake.set()

    async def _say(self, target: ChatAddress, state: str) -> None:
        if not self._held() or not self._buckets.spare():
            return
        try:
            await self._adapter.typing(target, state)
        except DeliveryError as error:
            log.debug("typing_failed", reason=str(error))
        except Exception:  # a signal is never worth more than the messages behind it
            log.exception("typing_failed", channel=self._adapter.channel)
