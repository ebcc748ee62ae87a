"""Random kills under load: people write and approve, gateways die, and everything is counted.

On PostgreSQL two replicas work beside each other and one of them dies; on SQLite it is the one.
"""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from sqlalchemy import Connection, func, select

from adapters.system.clock import SystemClock
from runtime.domain.runs import TERMINAL
from runtime.sessions.streams import CUT
from runtime.sessions.tables import open_calls, outbox, runs
from runtime.store import Database, open_database
from tests.crash.growing import whole
from tests.crash.platform import Platform, Post
from tests.crash.play import Gateway, orphans
from tests.crash.process import Order
from tests.faults.worlds import Pace, World, orders
from tests.stateful import invariants, snapshot
from tests.stateful.invariants import UNSETTLED
from tests.stateful.snapshot import Snapshot

PEOPLE: Final = 8
REPLICAS: Final = {"sqlite": 1, "postgresql": 2}
SHORTEST_S, LONGEST_S = 0.1, 0.9
"""Between two kills, in seconds of the machine's clock."""
PATIENCE_S: Final = 120.0
GLANCE_S: Final = 0.05
"""How long the model waits for its words to be shown: the other replica may be the deliverer."""
GAVE_UP: Final = "I was stopped"
_OVER = [state.value for state in TERMINAL]


@dataclass
class Tally:
    """What a world came to. `gave_up`: runs that were told to have died too often, in words;
    `half`: texts that were left standing half and that the audit log tells of."""

    replicas: int = 1
    kills: int = 0
    messages: int = 0
    gave_up: int = 0
    unknown: int = 0
    unknown_posted: int = 0
    half: int = 0
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        """Whether nothing happened that must not."""
        return not (self.lost or self.doubled or self.broken)


@dataclass(frozen=True)
class _Progress:
    ended: int
    unsettled: int
    cards: Sequence[str]


def _progress(conn: Connection) -> _Progress:
    ended = conn.execute(select(func.count()).where(runs.c.state.in_(_OVER))).scalar_one()
    waiting = select(func.count()).where(outbox.c.state.in_(UNSETTLED))
    cards = select(open_calls.c.id).where(open_calls.c.state == "open")
    return _Progress(ended, conn.execute(waiting).scalar_one(), list(conn.execute(cards).scalars()))


class People:
    """Keep at most `PEOPLE` messages or replies in the air; every card is approved once."""

    def __init__(self, platform: Platform, database: Database) -> None:
        self._platform = platform
        self._database = database
        self._pressed: set[str] = set()
        self.said: list[str] = []
        self.stop = asyncio.Event()

    async def talk(self) -> None:
        """Until `stop`, and until everything that was said has come to an end."""
        while True:
            self._platform.changed.clear()
            now = await self._database.read(_progress)
            for card in set(now.cards) - self._pressed:
                self._pressed.add(card)
                self._platform.presses(card, "once")
            if not self.stop.is_set():
                self._say(PEOPLE - (len(self.said) - now.ended) - now.unsettled)
            elif now.ended == len(self.said) and not now.unsettled:
                return
            await self._platform.changed.wait()

    def _say(self, amount: int) -> None:
        for _ in range(amount):
            number = len(self.said)
            text = f"{'pay' if number % 4 == 3 else 'note'} n{number}"
            self.said.append(text)
            person = number % PEOPLE
            self._platform.says(f"m{number}", text, f"{'DG'[person % 2]}-{person}")


async def endure(world: World, pace: Pace, *, kills: int, seed: int) -> Tally:
    """A world with `kills` kills at random moments. Raises `TimeoutError` when it gets stuck."""
    async with orders(world, pace) as make:
        order = replace(await make("load"), patience_s=GLANCE_S)
        database = open_database(order.url, clock=SystemClock(), pool_size=2)
        await database.start()
        try:
            return await _endure(order, database, REPLICAS[world.dialect], kills, seed)
        finally:
            await database.close()


async def _endure(order: Order, database: Database, replicas: int, kills: int, seed: int) -> Tally:
    platform = Platform()
    async with platform.serving():
        gateways = [Gateway(replace(order, port=platform.port)) for _ in range(replicas)]
        people = People(platform, database)
        async with asyncio.TaskGroup() as group:
            keeping = [
                group.create_task(one.keep(), name=f"gateway {number}")
                for number, one in enumerate(gateways)
            ]
            talking = group.create_task(people.talk(), name="people")
            await _kill(gateways, kills, random.Random(seed), platform)
            people.stop.set()
            platform.changed.set()
            async with asyncio.timeout(PATIENCE_S):
                await talking
            for gateway, task in zip(gateways, keeping, strict=True):
                await gateway.end(task)
        rows = await database.read(snapshot.take)
        orphaned = await database.read(orphans)
    died = sum(one.kills for one in gateways)
    tally = count(people.said, platform, rows, order)
    notices = _notices(rows)
    left = [post for post in platform.posts if not is_complete(post, notices)]
    count_halves(tally, left, orphaned, findable=order.lookup)
    return replace(tally, kills=died, replicas=replicas)


async def _kill(
    gateways: Sequence[Gateway], kills: int, chance: random.Random, platform: Platform
) -> None:
    clock = SystemClock()
    while sum(one.kills for one in gateways) < kills:
        await _at_work(platform)
        await clock.sleep(chance.uniform(SHORTEST_S, LONGEST_S))
        chosen = chance.choice(gateways)
        before = chosen.kills
        while chosen.kills == before:
            chosen.ended.clear()
            chosen.kill()
            with suppress(TimeoutError):
                async with asyncio.timeout(1):
                    await chosen.ended.wait()


async def _at_work(platform: Platform) -> None:
    """Until a gateway does something: on a slow machine the kills would else strike only those that
    are not up yet."""
    before = len(platform.points)
    with suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE_S / 4):
            while len(platform.points) == before:
                platform.worked.clear()
                await platform.worked.wait()


def count(said: Sequence[str], platform: Platform, rows: Snapshot, order: Order) -> Tally:
    """Look at all of it from outside."""
    tally = Tally(messages=len(said))
    notices = _notices(rows)
    complete = [post for post in platform.posts if is_complete(post, notices)]
    posts = Counter(post.outbox_id for post in complete)
    tally.doubled += [f"{one} was posted {n} times" for one, n in posts.items() if n > 1]
    answers = Counter(post.text.partition(": ")[0] for post in complete)
    tally.doubled += [
        f"{one!r} was answered {answers[one]} times" for one in said if answers[one] > 1
    ]
    run_of, state_of = _runs(rows), _finals(rows)
    stored = Counter(json.loads(row["message"])["message_id"] for row in rows.inputs)
    texts = {post.outbox_id: post.text for post in complete}
    for number, text in enumerate(said):
        name = f"m{number}"
        outbox_id, state = state_of.get(run_of.get(name, ""), ("", ""))
        gave_up = texts.get(outbox_id, "").startswith(GAVE_UP)
        tally.gave_up += gave_up
        if name not in platform.acknowledged or stored[name] != 1:
            tally.lost.append(f"{name} is stored {stored[name]} times")
        elif not (answers[text] or gave_up or state == "unknown"):
            tally.lost.append(f"no answer to {text!r}: its reply is {state or 'nowhere'}")
    unknown = [row["id"] for row in rows.outbox if row["state"] == "unknown"]
    tally.unknown = len(unknown)
    tally.unknown_posted = sum(one in posts for one in unknown)
    tally.broken += _broken(rows, order)
    return tally


def _notices(rows: Snapshot) -> frozenset[str]:
    """Lines of the engine's own, which never grow."""
    return frozenset(row["id"] for row in rows.outbox if row["kind"] == "notice")


def is_complete(post: Post, notices: Collection[str]) -> bool:
    """Whether a post is a card, a whole text, or words that the engine itself had to say."""
    if post.outbox_id in notices:
        return True
    cut = GAVE_UP in post.text or post.text.endswith(CUT)
    return post.text.startswith("card") or whole(post.text) or cut


def count_halves(
    tally: Tally, left: Sequence[Post], orphaned: Sequence[str], *, findable: bool
) -> None:
    """Texts that were left standing half: where they could have been found, that is broken."""
    tally.half = len(left)
    told = Counter(orphaned)
    tally.broken += [
        f"{n} halves of {one} stand there"
        for one, n in Counter(post.outbox_id for post in left).items()
        if findable or n > told[one]
    ]


def _runs(rows: Snapshot) -> dict[str, str]:
    return {json.loads(row["message"])["message_id"]: row["run_id"] for row in rows.inputs}


def _finals(rows: Snapshot) -> dict[str, tuple[str, str]]:
    finals = (row for row in rows.outbox if row["kind"] == "final")
    return {row["run_id"]: (row["id"], row["state"]) for row in finals}


def _broken(rows: Snapshot, order: Order) -> Sequence[str]:
    lines = Counter(order.effects.read_text().split() if order.effects.exists() else ())
    found = [f"the effect of {one} was had {n} times" for one, n in lines.items() if n > 1]
    found += [f"a {row['kind']} is dead" for row in rows.outbox if row["state"] == "dead"]
    try:
        invariants.check(rows)
    except AssertionError as error:
        found.append(f"{error!r}")
    return found
