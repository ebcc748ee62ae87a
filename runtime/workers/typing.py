"""Typing signals: a person sees that a run works (REN-5). Best effort, never before a message."""

from collections.abc import Callable
from dataclasses import dataclass

import structlog

from runtime.domain.errors import DeliveryError
from runtime.domain.messages import ChatAddress
from runtime.domain.value import JsonObject
from runtime.ports.bus import LIVE, Bus
from runtime.ports.chat import ChatAdapter
from runtime.ports.clock import Clock
from runtime.workers.buckets import Buckets
from runtime.workers.wake import Wake

log = structlog.get_logger(__name__)

FORGET_AFTER_S = 600.0
"""A run that said nothing for so long is taken as gone: its last signal was lost."""


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
        self._ended: list[ChatAddress] = []

    async def listen(self) -> None:
        """Follow the runs of this account until cancelled."""
        async with self._bus.subscribe(LIVE, limit=4096) as signals:
            async for signal in signals:
                if signal.data.get("type") == "activity":
                    self._note(signal.data)

    async def show(self) -> None:
        """Send signals until cancelled."""
        interval = self._adapter.capabilities.typing_interval_s or 4.0
        while True:
            await self._wake.wait(interval if self._working else 3600.0)
            now = self._clock.monotonic()
            while self._ended:
                await self._say(self._ended.pop(), "done")
            for run_id, work in tuple(self._working.items()):
                if now - work.heard > FORGET_AFTER_S:
                    del self._working[run_id]
                elif work.shown is None or now - work.shown >= interval * 0.9:
                    work.shown = now
                    await self._say(work.target, work.state)

    def _note(self, data: JsonObject) -> None:
        target = ChatAddress.model_validate(data.get("target"), extra="ignore")
        if (target.channel, target.account) != (self._adapter.channel, self._adapter.account):
            return
        run_id, state = str(data.get("run_id")), str(data.get("state"))
        if state == "done":
            if self._working.pop(run_id, None) is not None:
                self._ended.append(target)
                self._wake.set()
            return
        now = self._clock.monotonic()
        work = self._working.get(run_id)
        if work is None:
            self._working[run_id] = _Working(target, state, now)
            self._wake.set()
        else:
            work.state, work.heard = state, now

    async def _say(self, target: ChatAddress, state: str) -> None:
        if not self._held() or not self._buckets.spare():
            return
        try:
            await self._adapter.typing(target, state)
        except DeliveryError as error:
            log.debug("typing_failed", reason=str(error))
        except Exception:  # a signal is never worth more than the messages behind it
            log.exception("typing_failed", channel=self._adapter.channel)
