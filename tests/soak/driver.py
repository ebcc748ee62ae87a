"""The soak itself: a town, people in many places, faults, an operator, and scales.

    result = await soak(path, Order(seconds=60, seed=1))
    result = await soak(path, Order(messages=10_000, restart_every=500, people=20, pages=0))

It ends after a time, or with a number of messages, and then the gateway is restarted with every so
many of them instead of now and then: in turns as an operator does it and by SIGKILL. Everything
random comes from the seed; what the machine does with it is its own. The lethal faults of a soak by
time stop after `lethal_share` of it, and all of them before the books are closed.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

from adapters.system.clock import SystemClock
from tests.scenario.gateway.town import Town, town_at
from tests.scenario.process.program import Place as Machine
from tests.soak.actions import ACTIONS
from tests.soak.books import close
from tests.soak.deciding import decide_for_the_absent
from tests.soak.faults import FAULTS, Fault, Kill, Terminate
from tests.soak.gateways import Gateways, Replica
from tests.soak.ledger import Ledger, Struck
from tests.soak.places import (
    Place,
    SlackDirect,
    SlackThread,
    TelegramDirect,
    TelegramGroup,
    WebPage,
)
from tests.soak.reading import Cast, watch_pages, watch_slack, watch_telegram
from tests.soak.report import Report, Sample
from tests.soak.script import Script
from tests.soak.stage import Stage
from tests.wire.slack import GENERAL

THINK_S: Final = (0.5, 2.5)
SLOW_THINK_S: Final = (6.0, 12.0)
"""Groups of Telegram take twenty messages a minute."""
SAMPLE_S: Final = 2.0
OPERATOR_S: Final = 5.0
THREADS: Final = 3
"""All threads are in one channel, which takes one post a second."""
SETTINGS: Final = """
shutdown_grace_s = 2.0
[log]
level = "warning"
[queue]
mode = "followup"
[tools]
sandbox = "none"
[policy]
allow = ["exec", "write_file"]
ask = ["exec(printf:*)", "write_file(permit/**)"]
[workers]
lease_ttl_s = {lease_s}
"""


@dataclass(frozen=True, slots=True)
class Order:
    """How long, with whom and on what. `people` counts each kind of place; times are seconds.

    With `messages` the soak ends when so many were said, not after `seconds`; `restart_every` are
    messages too. `beside` is a checkout of another version, which every second replica runs.
    """

    seconds: float = 60.0
    seed: int = 1
    people: int = 3
    pages: int = 2
    messages: int = 0
    restart_every: int = 0
    replicas: int = 1
    database_url: str = ""
    beside: str = ""
    fault_every_s: float = 4.0
    lethal_every_s: float = 12.0
    lethal_share: float = 0.4
    settle_s: float = 90.0
    lease_s: float = 3.0
    """How long a gateway may stand still and keep what it works at."""


async def soak(path: Path, order: Order) -> Report:
    """Run it; what came of it. Raises when a server's rules were broken or a scene failed."""
    clock = SystemClock()
    async with town_at(path) as town:
        replicas = _replicas(town, order)
        gateways = Gateways(replicas, clock)
        cast = _cast(town, order, gateways)
        ledger = Ledger()
        script = Script(town.model, ledger)
        stage = Stage(
            town, gateways, ledger, script, clock, Random(order.seed), began=clock.monotonic()
        )
        report = Report(order.seconds, order.seed, ledger)
        async with gateways.running(), _watched(stage, cast, report):
            # The books begin when everybody can be heard.
            stage.began = clock.monotonic()
            await _play(stage, cast, order)
            report.seconds = stage.now()
            await _calm(stage, order)
            await close(stage, report)
        report.oddities += gateways.oddities
        report.restarts = sum(one.lives - 1 for one in replicas)
        return report


def _replicas(town: Town, order: Order) -> list[Replica]:
    variables = {**town.place.variables}
    if order.database_url:
        variables["GATEHOUSE_DATABASE__URL"] = order.database_url
    other = {**variables, "PYTHONPATH": order.beside} if order.beside else variables
    return [
        Replica(Machine(town.place.path, other if number % 2 else variables, loaded=False))
        for number in range(order.replicas)
    ]


def _cast(town: Town, order: Order, gateways: Gateways) -> Cast:
    cast, slack, telegram = Cast(), town.slack, town.telegram
    users = [slack.workspace.add_user(f"person{number}") for number in range(order.people)]
    for user in users:
        slack.workspace.channels[GENERAL].members.add(user)
    slack.workspace.channels[GENERAL].members.add(slack.install.bot_user)
    cast.slack += [SlackDirect(slack, user) for user in users]
    cast.slack += [
        SlackThread(slack, users, number) for number in range(min(order.people, THREADS))
    ]
    others = [telegram.world.user(f"Person{number}") for number in range(order.people)]
    cast.telegram += [TelegramDirect(telegram, user) for user in others]
    cast.telegram += [TelegramGroup(telegram, others, number) for number in range(2)]
    cast.pages += [WebPage(number, gateways.clock, gateways.url) for number in range(order.pages)]
    quoted = ", ".join(f'"{user}"' for user in users)
    ids = ", ".join(f'"{user.id}"' for user in others)
    town.place.configure(
        f"{SETTINGS.format(lease_s=order.lease_s)}"
        f'[slack]\nowners = [{quoted}]\ngroup_policy = "open"\n'
        f'[telegram]\nowners = [{ids}]\ngroup_policy = "open"\n'
    )
    return cast


async def _play(stage: Stage, cast: Cast, order: Order) -> None:
    """People and faults until it is over; scenes that are begun are played to their end."""
    async with asyncio.TaskGroup() as group:
        for number, place in enumerate(cast.places):
            dice = Random(f"{order.seed}-{number}")
            group.create_task(_person(stage, place, order, dice), name=f"people of {place.name}")
        group.create_task(_faults(stage, order, lethal=False), name="faults")
        if order.restart_every:
            group.create_task(_restarts(stage, order), name="restarts")
        else:
            group.create_task(_faults(stage, order, lethal=True), name="lethal faults")


def _is_over(stage: Stage, order: Order) -> bool:
    if order.messages:
        return len(stage.ledger.wishes) >= order.messages
    return stage.now() >= order.seconds


async def _person(stage: Stage, place: Place, order: Order, dice: Random) -> None:
    scenes = [one for one in ACTIONS if one.fits(place)]
    weights = [one.weight for one in scenes]
    think = SLOW_THINK_S if place.slow else THINK_S
    while not _is_over(stage, order):
        (scene,) = dice.choices(scenes, weights)
        await scene.play(stage, place)
        await stage.clock.sleep(dice.uniform(*think))


async def _faults(stage: Stage, order: Order, *, lethal: bool) -> None:
    dice = Random(f"{order.seed}-{lethal}")
    faults = [one for one in FAULTS if one.lethal is lethal]
    every = order.lethal_every_s if lethal else order.fault_every_s
    until = order.seconds * order.lethal_share
    while True:
        await stage.clock.sleep(dice.uniform(0.5, 1.5) * every)
        if _is_over(stage, order) or (lethal and stage.now() >= until):
            return
        (fault,) = dice.choices(faults, [one.weight for one in faults])
        await _strike(stage, fault)


async def _restarts(stage: Stage, order: Order) -> None:
    """One with every so many messages, whatever is under way then: SIGTERM and SIGKILL by turns."""
    for number in range(1, order.messages // order.restart_every + 1):
        await stage.said(number * order.restart_every)
        await _strike(stage, Terminate() if number % 2 else Kill())


async def _strike(stage: Stage, fault: Fault) -> None:
    began = stage.now()
    struck = Struck(type(fault).__name__, began, began)
    stage.ledger.faults.append(struck)
    await fault.strike(stage)
    struck.until = stage.now()
    struck.lies_in_wait = fault.lies_in_wait(stage)


async def _calm(stage: Stage, order: Order) -> None:
    """No faults any more; wait until everybody has an answer, or for so long."""
    stage.script.trouble.clear()
    stage.town.slack.clear_faults()
    stage.town.telegram._planned.clear()
    over = stage.ledger.signal.until(lambda: not stage.ledger.open)
    await stage.within(over, order.settle_s)


@contextlib.asynccontextmanager
async def _watched(stage: Stage, cast: Cast, report: Report) -> AsyncIterator[None]:
    """Read what the bot says, weigh the gateways, and decide what nobody decided."""
    async with asyncio.TaskGroup() as group:
        watchers = [
            group.create_task(watch_slack(stage, cast), name="reading Slack"),
            group.create_task(watch_telegram(stage, cast), name="reading Telegram"),
            group.create_task(watch_pages(stage, cast), name="reading the pages"),
            group.create_task(_weigh(stage, report), name="scales"),
            group.create_task(_operate(stage), name="operator"),
        ]
        try:
            yield
        finally:
            for watcher in watchers:
                watcher.cancel()


async def _weigh(stage: Stage, report: Report) -> None:
    while True:
        await stage.clock.sleep(SAMPLE_S)
        stage.ledger.linger(stage.now())
        for one in stage.gateways.replicas:
            weighed = one.resident_mb()
            if weighed is not None:
                report.samples.append(Sample(stage.now(), *weighed))
            one.forget()


async def _operate(stage: Stage) -> None:
    while True:
        await stage.clock.sleep(OPERATOR_S)
        await decide_for_the_absent(stage)
