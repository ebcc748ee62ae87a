"""The turn worker: claims runs of free lanes and runs each in a task of its own.

At most `limit` turns run at once in this process; a parked run is a row and takes no place.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import structlog

from runtime.agent.run_release import Returns
from runtime.agent.turn import Turn, TurnServices
from runtime.domain.errors import StaleLease, StoreUnavailable
from runtime.domain.messages import ChatAddress, OutboundMessage
from runtime.domain.runs import Holder
from runtime.ports.bus import CANCEL, RUNS
from runtime.process.due_poll import Looks
from runtime.process.supervisor import Supervisor
from runtime.process.wakeup import TICK_S, Wake
from runtime.sessions import claims, runs
from runtime.sessions.bounds import PolicySettings
from runtime.sessions.claims import Claimed
from runtime.sessions.due_work import Due
from runtime.sessions.live_text import SNAPSHOT

log = structlog.get_logger(__name__)

CLAIM_BATCH = 32
CANCEL_CHECK_S = 0.5
AGAIN_S = 0.005
STOPPED = "stopped"
IDLE = "it made no progress"


class LocalDelivery(Protocol):
    """The deliverers of this process, as turns see them."""

    def offer(self, target: ChatAddress) -> Holder | None:
        """A local deliverer whose chat is idle, to claim a reply for it."""

    def hand(self, message: OutboundMessage, claim: Holder | None) -> None:
        """Send a reply that was claimed for a local deliverer by the offer `claim`."""


@dataclass(slots=True)
class _Offer:
    """What a turn was offered to claim its reply with; the last offer is the one it used."""

    ask: Callable[[ChatAddress], Holder | None]
    claim: Holder | None = None

    def __call__(self, target: ChatAddress) -> Holder | None:
        self.claim = self.ask(target)
        return self.claim


@dataclass(slots=True)
class _Live:
    turn: Turn
    offer: _Offer
    task: asyncio.Task[None]
    begun: bool = False
    stop: str | None = None
    idle: bool = False


def _idle(there: Mapping[str, _Live], now: float) -> Sequence[tuple[str, _Live]]:
    """Turns that made no progress for too long (SUB-21). A run that waits for somebody or for a
    slot has no turn, and so is none of them."""
    return [
        (run_id, live)
        for run_id, live in there.items()
        if live.stop is None and live.turn.is_idle(now)
    ]


@dataclass(kw_only=True)
class TurnWorker:
    """Runs turns until cancelled; `drain` ends it without losing any."""

    services: TurnServices
    policy: PolicySettings
    holder: Callable[[], Holder | None]
    delivery: LocalDelivery
    looks: Looks
    limit: int
    supervisor: Supervisor
    _again_s: float = AGAIN_S
    _live: dict[str, _Live] = field(default_factory=dict)
    _draining: bool = False
    _unsure: bool = False
    _left: bool = True
    """Whether the last look may have left ready runs, for want of room or of an answer."""
    _idle: asyncio.Event = field(default_factory=asyncio.Event)
    _busy: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self._wake = Wake(self.services.clock)
        self._returns = Returns(self.services.units)
        self._idle.set()

    def change(self, policy: PolicySettings) -> None:
        """Another policy for every turn that begins from now on."""
        self.policy = policy

    @property
    def running(self) -> int:
        """Turns that run in this process now."""
        return len(self._live)

    async def run(self) -> None:
        """Claim and run until cancelled; running turns are put back then, not lost.

        They are the group's, so that they go on while what starts and stops them is down.
        """

        def tell(due: Due) -> None:
            if due.runs or self._unsure or self._returns.waiting:
                self._wake.set()

        async def claim(group: asyncio.TaskGroup) -> None:
            try:
                with self.looks.for_runs(tell):
                    while True:
                        if not await self._claim(group):
                            await self._wake.wait(None)
            finally:
                # What ends this loop may have come between a claim and the turns of its runs.
                self._unsure = True

        async with asyncio.TaskGroup() as group:
            self.supervisor.start(group, "turn signals", self._listen)
            self.supervisor.start(group, "turn cancellations", self._watch_cancellations)
            self.supervisor.start(group, "claims", partial(claim, group))

    def stop_taking(self) -> None:
        """Claim nothing more; what is queued waits for the next process."""
        self._draining = True

    async def drain(self, grace_s: float) -> None:
        """Take nothing new and let what runs finish; after `grace_s` it is put back (OPS-10)."""
        self.stop_taking()
        timer = self.services.clock.call_later(grace_s, self._idle.set)
        await self._idle.wait()
        timer.cancel()
        tasks = [live.task for live in self._live.values()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _claim(self, group: asyncio.TaskGroup) -> bool:
        """Take what there is room for; True when there may be more at once."""
        holder = self.holder()
        room = min(self.limit - len(self._live), CLAIM_BATCH)
        if holder is None or room <= 0 or self._draining:
            self._left = True
            return False
        units, cache = self.services.units, self.services.cache
        try:
            if self._unsure:
                await self._returns.look(holder.worker, self._live)
                self._unsure = False
            await self._returns.all_waiting()
            found = await units.run(
                lambda unit: claims.claim(unit, holder, most=room, cache=cache), name="claim"
            )
        except StoreUnavailable as error:
            log.warning("claim_failed", reason=str(error))
            # The connection may have ended after COMMIT: then runs are ours that nobody runs.
            self._unsure = self._left = True
            return False
        for claimed in found.runs:
            self._start(group, claimed, holder)
        if found.passed_over:
            # A ready lane was another unit's at that moment (a receipt's, most likely). It is free
            # soon, and nobody else may have been told of it.
            self.services.clock.call_later(self._again_s, self._wake.set)
        self._again_s = min(self._again_s * 2, TICK_S) if found.passed_over else AGAIN_S
        self._left = found.full
        return found.full

    def _start(self, group: asyncio.TaskGroup, claimed: Claimed, holder: Holder) -> None:
        offer = _Offer(self.delivery.offer)
        turn = Turn(self.services, claimed, holder, policy=self.policy, offer=offer)
        task = group.create_task(
            self._run(turn, claimed.run.id, holder), name=f"turn {claimed.run.id}"
        )
        replaced = self._live.get(claimed.run.id)
        if replaced is not None:
            # It was claimed under a lease that was lost since; none of its writes would be taken.
            replaced.task.cancel()
        self._live[claimed.run.id] = _Live(turn, offer, task)
        self._idle.clear()
        self._busy.set()

    async def _run(self, turn: Turn, run_id: str, holder: Holder) -> None:
        """One turn, whatever happens in it: the loop above must never see its failure."""
        # Of this task alone. An agent has the id of its session.
        structlog.contextvars.bind_contextvars(
            run_id=run_id, session_id=turn.session_id, agent_id=turn.session_id
        )
        try:
            await self._guard(turn, run_id, holder)
        except StaleLease as error:
            log.warning("run_lost", run_id=run_id, reason=str(error))
        except StoreUnavailable as error:
            log.warning("run_interrupted", run_id=run_id, reason=str(error))
            self._returns.later(run_id, holder)
        except Exception:  # even its failing failed: it is tried again like after a crash
            log.exception("run_interrupted", run_id=run_id)
            self._returns.later(run_id, holder)
        finally:
            if self._is_live(turn, run_id):
                del self._live[run_id]
            if not self._live:
                self._idle.set()
                self._busy.clear()
            # The unit that ends a run says what may run behind it. Every other end is looked behind
            # here, and so is every end while there was less room than ready runs.
            if self._left or not turn.finished:
                self._wake.set()

    def _is_live(self, turn: Turn, run_id: str) -> bool:
        live = self._live.get(run_id)
        return live is not None and live.turn is turn

    async def _guard(self, turn: Turn, run_id: str, holder: Holder) -> None:
        live = self._live.get(run_id)
        try:
            if live is not None and live.turn is turn:
                live.begun = True
                if live.stop is not None:
                    await turn.stop(live.stop, idle=live.idle)
                    return
            reply = await turn.run()
            if reply is not None and self._is_live(turn, run_id):
                self.delivery.hand(reply, self._live[run_id].offer.claim)
        except asyncio.CancelledError:
            await self._cancelled(turn, run_id, holder)
        except (StaleLease, StoreUnavailable):
            raise
        except Exception as error:  # the worker root: a defect must end in words, not in silence
            log.exception("turn_failed", run_id=run_id)
            await turn.fail(f"{type(error).__name__}: {error}")

    async def _cancelled(self, turn: Turn, run_id: str, holder: Holder) -> None:
        """Somebody stopped the run, or the process ends: then the run goes back to its lane."""
        live, task = self._live[run_id], asyncio.current_task()
        if live.stop is None or live.turn is not turn:
            await self._returns.now(run_id, holder)
            raise asyncio.CancelledError
        if task is not None:
            task.uncancel()
        await turn.stop(live.stop, idle=live.idle)

    async def _listen(self) -> None:
        async with self.services.units.bus.subscribe(RUNS, CANCEL, SNAPSHOT) as signals:
            async for signal in signals:
                run_id = str(signal.data.get("run_id", ""))
                if signal.topic == CANCEL:
                    self._stop(run_id, str(signal.data.get("reason", STOPPED)))
                elif signal.topic == SNAPSHOT and run_id in self._live:
                    self._live[run_id].turn.live.repeat()
                else:
                    self._wake.set()

    async def _watch_cancellations(self) -> None:
        """The bus may lose a stop; the row does not. Nothing is asked while nothing runs."""
        while True:
            await self._busy.wait()
            await self.services.clock.sleep(CANCEL_CHECK_S)
            for run_id, live in _idle(self._live, self.services.clock.monotonic()):
                live.idle = True
                self._stop(run_id, IDLE)
            holder = self.holder()
            if holder is None or not self._live:
                continue
            asked = partial(runs.cancelled_of, worker=holder.worker)
            try:
                found = await self.services.units.database.read(asked)
            except StoreUnavailable:
                continue
            for run_id, reason in found:
                self._stop(run_id, reason)

    def _stop(self, run_id: str, reason: str) -> None:
        live = self._live.get(run_id)
        if live is not None and live.stop is None:
            live.stop = reason
            if live.begun:
                # A task that is cancelled before its first step never runs, and ends nothing.
                live.task.cancel()
