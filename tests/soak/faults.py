"""What goes wrong. A fault undoes itself; add a class to `FAULTS`.

`lethal` faults end a gateway; they come in the first part of a soak alone, so that the memory of
the last process can be watched. `costs` are the channels whose receipts it may cost: an unknown
delivery there soon after it is explained by it.
"""

import signal
from collections.abc import Sequence
from typing import Protocol

from tests.scenario.gateway.test_platforms import outage
from tests.soak.stage import Stage
from tests.wire.openai import Answer

AWAY_S = 1.5
EVERYWHERE = frozenset({"slack", "telegram", "web"})


class Fault(Protocol):
    """Something that goes wrong. `weight` is how often it comes, compared with its like."""

    weight: int
    lethal: bool
    costs: frozenset[str]

    async def strike(self, stage: Stage) -> None:
        """Do it, and return when nothing needs to be undone any more."""
        ...


class _Harmless:
    weight = 2
    lethal = False
    costs: frozenset[str] = frozenset()


class SlackCutsSockets(_Harmless):
    """Every socket breaks in the middle."""

    async def strike(self, stage: Stage) -> None:
        await stage.town.slack.drop_sockets()


class SlackRefreshes(_Harmless):
    """Slack asks to connect anew, as it does every few hours."""

    async def strike(self, stage: Stage) -> None:
        await stage.town.slack.disconnect("refresh_requested")


class SlackIsBusy(_Harmless):
    """429 with Retry-After."""

    async def strike(self, stage: Stage) -> None:
        stage.town.slack.rate_limit("chat.postMessage", times=2, retry_after=1)


class SlackStumbles(_Harmless):
    """A page of an overloaded edge instead of an answer."""

    costs = frozenset({"slack"})

    async def strike(self, stage: Stage) -> None:
        stage.town.slack.break_http("chat.postMessage", 503)


class SlackCutsAPost(_Harmless):
    """The post is made, and its answer lost."""

    costs = frozenset({"slack"})

    async def strike(self, stage: Stage) -> None:
        stage.town.slack.hang("chat.postMessage", cut=True)


class SlackIsAway(_Harmless):
    """Nobody reaches Slack for a moment."""

    costs = frozenset({"slack"})
    weight = 1

    async def strike(self, stage: Stage) -> None:
        await outage(stage.town.slack)
        await stage.clock.sleep(AWAY_S)
        await stage.town.slack.up()


class TelegramIsBusy(_Harmless):
    """429 with retry_after."""

    async def strike(self, stage: Stage) -> None:
        stage.town.telegram.rate_limit("sendMessage", times=2, retry_after=1)


class TelegramStumbles(_Harmless):
    """A bad gateway instead of an answer."""

    costs = frozenset({"telegram"})

    async def strike(self, stage: Stage) -> None:
        stage.town.telegram.fail("sendMessage", 502, "Bad Gateway")


class TelegramCutsAPost(_Harmless):
    """The message is sent, and its answer lost."""

    costs = frozenset({"telegram"})

    async def strike(self, stage: Stage) -> None:
        stage.town.telegram.hang("sendMessage")


class TelegramIsAway(_Harmless):
    """Nobody reaches Telegram for a moment."""

    costs = frozenset({"telegram"})
    weight = 1

    async def strike(self, stage: Stage) -> None:
        await stage.town.telegram.down()
        await stage.clock.sleep(AWAY_S)
        await stage.town.telegram.up()


class ModelStumbles(_Harmless):
    """The model is overloaded, or its stream breaks in the middle of a word."""

    weight = 3

    async def strike(self, stage: Stage) -> None:
        broken = Answer(pieces=("Half an ans",), cut=True)
        stage.script.trouble.append(stage.random.choice([Answer(status=503), broken]))


class Kill(_Harmless):
    """A gateway dies without a word, and is started again."""

    costs = EVERYWHERE
    weight = 3
    lethal = True

    async def strike(self, stage: Stage) -> None:
        await stage.random.choice(stage.gateways.replicas).dies(signal.SIGKILL)


class Terminate(_Harmless):
    """A gateway is restarted as an operator does it."""

    costs = EVERYWHERE
    lethal = True

    async def strike(self, stage: Stage) -> None:
        await stage.random.choice(stage.gateways.replicas).dies(signal.SIGTERM)


FAULTS: Sequence[Fault] = (
    SlackCutsSockets(),
    SlackRefreshes(),
    SlackIsBusy(),
    SlackStumbles(),
    SlackCutsAPost(),
    SlackIsAway(),
    TelegramIsBusy(),
    TelegramStumbles(),
    TelegramCutsAPost(),
    TelegramIsAway(),
    ModelStumbles(),
    Kill(),
    Terminate(),
)
