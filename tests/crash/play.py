"""One conversation with a gateway that is killed on the way, and what came of it.

`discover` finds the points, `faults` kills at each, `recoveries` kills what recovers. Nothing here
asserts: a case says what happened, and its reader says what must not.
"""

import asyncio
import json
import multiprocessing
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, select

from adapters.system.clock import SystemClock
from runtime.domain.runs import TERMINAL, RunState
from runtime.sessions.tables import audit
from runtime.store import Database, open_database
from tests.crash.growing import whole
from tests.crash.platform import GROUP, OUTSIDE, Platform, Post
from tests.crash.process import ANY_PHASE, Kill, Order, main
from tests.stateful import snapshot
from tests.stateful.invariants import UNSETTLED
from tests.stateful.snapshot import Snapshot

PATIENCE_S: Final = 600.0
SIDE_BY_SIDE: Final = 4
UNHURRIED_S: Final = 120.0
TRIES: Final = 3
BOTH: Final = 2
MESSAGES: Final = ("note milk", "pay rent")
ASKS_TEAM: Final = "team home"
CARD_ENDED: Final = "**3 subagents**: "
RECOVERING: Final = ("take-over", "outbox-adopt", "outbox-retry")
"""Units of a gateway that goes on with what another one, or it itself, had in hand."""
RENEWAL: Final = "lease-renewal"
"""The unit that comes by the clock alone: while the card is open, the conversation waits for it."""

Make = Callable[[str], Awaitable[Order]]
"""Makes an order with a database of its own, for a case's name."""

CLOCK: Final = SystemClock()

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(["tests.crash.preloaded"])


@dataclass(frozen=True)
class Case:
    """A conversation that ended. `kills` counts the deaths of its gateways; `recovered_s` says
    how long each time the person waited from then on, in seconds of the machine's clock. `kept` are
    the points of the platform; `orphaned` the rows whose growing post was given up."""

    order: Order
    kills: int
    recovered_s: Sequence[float]
    points: Sequence[Kill]
    kept: Sequence[Kill]
    posts: Sequence[Post]
    orphaned: Sequence[str]
    edits: Sequence[str]
    acknowledged: frozenset[str]
    effects: Sequence[str]
    rows: Snapshot

    @property
    def name(self) -> str:
        """Where it was killed."""
        deaths = [kill for kill in (self.order.kill, self.order.then) if kill is not None]
        return " and ".join(f"{point} in phase {phase}" for phase, point in deaths)

    def answers(self, asked: str) -> Sequence[Post]:
        """The final posts that answer a message."""
        answers = [post for post in self.posts if post.text.startswith(f"{asked}: ")]
        return [post for post in answers if whole(post.text)]


class Gateway:
    """A gateway that is started again whenever it was killed."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self.kills = 0
        self.died: list[float] = []
        self.ended = asyncio.Event()
        self._ending = False
        self._process: Any = None

    async def keep(self) -> None:
        """Run it until `end`. Raises RuntimeError when it ends for another reason than a kill."""
        order = self._order
        while not self._ending:
            self._process = _processes.Process(target=main, args=(order,), daemon=True)
            self._process.start()
            await _readable(self._process.sentinel)
            self._process.join()
            code = self._process.exitcode
            if code != -signal.SIGKILL:
                log = (order.folder / "log").read_text(errors="replace")[-3000:]
                raise RuntimeError(f"the gateway ended with {code}:\n{log}")
            if not self._ending:
                self.kills += 1
                self.died.append(CLOCK.monotonic())
                self.ended.set()
            order = replace(order, kill=order.then, then=None)

    def kill(self) -> None:
        """Now, from outside."""
        self._process.kill()

    def freeze(self) -> None:
        """It does nothing more, and none of its connections is closed."""
        os.kill(self._process.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """It goes on as if no time had passed."""
        os.kill(self._process.pid, signal.SIGCONT)

    async def end(self, keeping: "asyncio.Task[None]") -> None:
        """Kill it for the last time."""
        self._ending = True
        if not keeping.done():
            self.kill()
        await keeping


class Conversation:
    """A platform, a gateway and the rows, and ways to wait for what happens to them."""

    def __init__(self, platform: Platform, gateway: Gateway, database: Database) -> None:
        self.platform = platform
        self.gateway = gateway
        self._database = database
        self.keeping: asyncio.Task[None] | None = None
        self.recovered_s: list[float] = []

    async def until(self, holds: Callable[[Snapshot], bool]) -> Snapshot:
        """The rows, once they are as they should be; looked at after each sign of life."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                self.platform.changed.clear()
                rows = await self._database.read(snapshot.take)
                if holds(rows):
                    self._recovered()
                    return rows
                if self.keeping is not None and self.keeping.done():
                    await self.keeping
                await self.platform.changed.wait()

    def _recovered(self) -> None:
        """What the person waited for is there, whatever died on the way."""
        died, self.gateway.died = self.gateway.died, []
        self.recovered_s += [CLOCK.monotonic() - moment for moment in died]

    async def died(self, times: int) -> None:
        """Until the gateway has died so often; a death that never comes is the reader's to see."""
        with suppress(TimeoutError):
            async with asyncio.timeout(UNHURRIED_S):
                while self.gateway.kills < times:
                    self.gateway.ended.clear()
                    await self.gateway.ended.wait()

    async def renewal(self, kill: Kill | None) -> None:
        """While nothing else happens: the next renewal of a lease, or the death that it is for."""
        if kill is None:
            await self._heard(f"{RENEWAL}:commit")
        elif kill[1].startswith(RENEWAL):
            await self.died(1)

    async def _heard(self, point: str) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not any(name == point for _, name in self.platform.points):
                self.platform.changed.clear()
                await self.platform.changed.wait()

    async def orphaned(self) -> Sequence[str]:
        """The rows whose growing post was given up, so that half a text may stand there."""
        return await self._database.read(orphans)

    async def first_message(self) -> None:
        """A person asks for something that is done at once."""
        self.platform.says("m1", MESSAGES[0])
        await self.until(lambda rows: _done(rows, 1))

    async def card(self) -> str:
        """A person asks for something that must be approved; the open call, once all is quiet."""
        self.platform.says("m2", MESSAGES[1], GROUP)
        rows = await self.until(
            lambda rows: _quiet(rows) and any(row["state"] == "open" for row in rows.open_calls)
        )
        return str(next(row["id"] for row in rows.open_calls if row["state"] == "open"))

    async def approve(self, open_call_id: str) -> Snapshot:
        """The person presses the button; the rows, once everything has ended."""
        self.platform.presses(open_call_id, "once")
        return await self.until(lambda rows: _done(rows, len(MESSAGES)))

    async def team(self, *, cards: bool) -> Snapshot:
        """A person asks for what children do; the rows, once nothing is left to do."""
        self.platform.says("m1", ASKS_TEAM)
        shown = self.platform.edits

        def over(rows: Snapshot) -> bool:
            ended = not cards or (bool(shown) and shown[-1].startswith(CARD_ENDED))
            return _calm(rows) and _answered(self.platform) and ended

        return await self.until(over)


@asynccontextmanager
async def conversation(order: Order, platform: Platform) -> AsyncIterator[Conversation]:
    """A gateway on `order`'s database and a platform for it."""
    database = open_database(order.url, clock=SystemClock(), pool_size=2)
    await database.start()
    async with platform.serving():
        gateway = Gateway(replace(order, port=platform.port))
        talk = Conversation(platform, gateway, database)
        keeping = talk.keeping = asyncio.create_task(gateway.keep(), name="gateway")
        try:
            yield talk
        finally:
            await gateway.end(keeping)
            await database.close()


async def run(order: Order) -> Case:
    """The whole conversation, with its kills. Raises TimeoutError when something gets stuck."""
    platform = Platform()
    async with conversation(_within(order), platform) as talk:
        if order.kill is not None and order.kill[1] in OUTSIDE:
            platform.on_kept = partial(_dies_at, talk, order.kill)
        if order.team:
            rows = await talk.team(cards=order.cards)
        else:
            await talk.first_message()
            card = await talk.card()
            await talk.renewal(order.kill)
            rows = await talk.approve(card)
        await talk.died(sum(kill is not None for kill in (order.kill, order.then)))
        kills = talk.gateway.kills
        orphaned = await talk.orphaned()
    return Case(
        order=order,
        kills=kills,
        recovered_s=tuple(talk.recovered_s),
        points=tuple(platform.points),
        kept=tuple(platform.kept),
        posts=tuple(platform.posts),
        orphaned=orphaned,
        edits=tuple(platform.edits),
        acknowledged=frozenset(platform.acknowledged),
        effects=order.effects.read_text().split() if order.effects.exists() else (),
        rows=rows,
    )


def _within(order: Order) -> Order:
    """The order without a kill that comes from outside of the process."""
    outside = order.kill is not None and order.kill[1] in OUTSIDE
    return replace(order, kill=None) if outside else order


def _dies_at(talk: Conversation, kill: Kill, kept: Kill) -> bool:
    """The first time that the platform gets there, the gateway dies before it hears of it."""
    if kept != kill or talk.platform.kept.count(kept) > 1:
        return False
    talk.gateway.kill()
    return True


async def discover(order: Order) -> Sequence[Kill]:
    """The points of a conversation that nobody disturbs, each where it first is in its phase.

    A lease's points come by the clock, so only their first place is taken. Where the machine is so
    busy that a lease runs out, its gateway recovers from that: these points are for `recoveries`.
    """
    seen: dict[Kill, None] = {}
    case = await run(order)
    for phase, name in case.points:
        if name.startswith(RECOVERING):
            continue
        # In which phase a renewal comes is the clock's choice too.
        kill = (ANY_PHASE, name) if name.startswith("lease") else (phase, name)
        seen[kill] = None
    return (*seen, *dict.fromkeys(case.kept))


async def faults(
    make: Make, points: Sequence[Kill], *, side_by_side: int = SIDE_BY_SIDE
) -> Sequence[Case]:
    """One conversation for each point."""
    return await _play(make, "once", [(point, None) for point in points], side_by_side)


async def recoveries(
    make: Make,
    cases: Sequence[Case],
    points: Sequence[Kill],
    *,
    side_by_side: int = SIDE_BY_SIDE,
) -> Sequence[Case]:
    """One more for each point that is none of `points`: only a gateway that recovers passes it."""
    known = {name for _, name in points}
    met: dict[str, dict[Kill | None, None]] = {}
    for case in cases:
        for _, name in case.points:
            if name not in known and not name.startswith("lease"):
                met.setdefault(name, {})[case.order.kill] = None
    pending = {name: list(firsts)[-TRIES:] for name, firsts in sorted(met.items())}
    found: dict[str, Case] = {}
    for number in range(TRIES):
        # What a recovering gateway passes may be the machine's order: then another way there.
        tried = {name: firsts.pop() for name, firsts in pending.items() if firsts}
        twice = [(first, (ANY_PHASE, name)) for name, first in tried.items()]
        played = await _play(make, f"twice-{number}", twice, side_by_side)
        found |= dict(zip(tried, played, strict=True))
        pending = {name: pending[name] for name in tried if found[name].kills < BOTH}
    return list(found.values())


async def _play(
    make: Make,
    name: str,
    kills: Sequence[tuple[Kill | None, Kill | None]],
    side_by_side: int,
) -> Sequence[Case]:
    """Conversations on databases of their own, a few of them side by side."""
    room = asyncio.Semaphore(side_by_side)

    async def one(number: int, kill: Kill | None, then: Kill | None) -> Case:
        async with room:
            order = await make(f"{name}-{number}")
            try:
                return await run(replace(order, kill=kill, then=then))
            except TimeoutError as error:
                raise TimeoutError(f"stuck after a kill at {kill}, {then}") from error

    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(one(number, *pair), name=f"{pair}")
            for number, pair in enumerate(kills)
        ]
    return [task.result() for task in tasks]


def folder(parent: Path, name: str) -> Path:
    """A new folder for one case."""
    made = parent / name
    made.mkdir()
    return made


def orphans(conn: Connection) -> Sequence[str]:
    """What the audit log has of growing posts that were given up, as ids of the outbox."""
    given_up = select(audit.c.data).where(audit.c.action == "delivery.orphaned")
    return [json.loads(data)["outbox_id"] for data in conn.execute(given_up).scalars()]


def _quiet(rows: Snapshot) -> bool:
    return not any(row["state"] in UNSETTLED for row in rows.outbox)


def _done(rows: Snapshot, runs: int) -> bool:
    ended = [row for row in rows.runs if RunState(row["state"]) in TERMINAL]
    return len(ended) == len(rows.runs) == runs and _quiet(rows)


def _calm(rows: Snapshot) -> bool:
    return all(RunState(row["state"]) in TERMINAL for row in rows.runs) and _quiet(rows)


def _answered(platform: Platform) -> bool:
    return any(post.text.startswith(f"{ASKS_TEAM}: ") for post in platform.posts)


async def _readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(descriptor, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)
