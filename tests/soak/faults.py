"""What goes wrong. A fault undoes itself; add a class to `FAULTS`.

`lethal` faults end a gateway; they come in the first part of a soak alone, so that the memory of
the last process can be watched. `costs` are the channels whose receipts it may cost: an unknown
delivery there soon after it is explained by it.
"""

import signal
from collections.abc import Callable, Sequence
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

    def lies_in_wait(self, stage: Stage) -> Callable[[], bool] | None:
        """Asked after `strike`: tells whether nobody has met it yet. None for what is over."""
        ...


class _Harmless:
    weight = 2
    lethal = False
    costs: frozenset[str] = frozenset()

    def lies_in_wait(self, _stage: Stage) -> Callable[[], bool] | None:
        return None


class _WaitsInSlack(_Harmless):
    costs = frozenset({"slack"})

    def lies_in_wait(self, stage: Stage) -> Callable[[], bool] | None:
        armed = stage.town.slack.faults.armed
        planned = armed[-1]
        return lambda: planned in armed


class _WaitsInTelegram(_Harmless):
    costs = frozenset({"telegram"})

    def lies_in_wait(self, stage: Stage) -> Callable[[], bool] | None:
        planned = stage.town.telegram._planned[-1]
        return lambda: planned.left > 0


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


class SlackStumbles(_WaitsInSlack):
    """A page of an overloaded edge instead of an answer."""

    async def strike(self, stage: Stage) -> None:
        stage.town.slack.break_http("chat.postMessage", 503)


class SlackCutsAPost(_WaitsInSlack):
    """The post is made, and its answer lost."""

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


class SlackIsImpatient(_Harmless):
    """What was not acknowledged yet comes once more."""

    async def strike(self, stage: Stage) -> None:
        # On a slow machine the repeats alone may have used up the retries: what Slack itself gave
        # up would count as lost by the gateway.
        await stage.town.slack.redeliver_unacked(abandon=False)


class SlackRepeats(_Harmless):
    """An event of some time ago is delivered again, as if it were new."""

    async def strike(self, stage: Stage) -> None:
        kept = [one for one in stage.town.slack.deliveries.all if one.kind == "events_api"]
        if kept:
            await stage.town.slack.duplicate(stage.random.choice(kept))


class TelegramIsBusy(_Harmless):
    """429 with retry_after."""

    async def strike(self, stage: Stage) -> None:
        stage.town.telegram.rate_limit("sendMessage", times=2, retry_after=1)


class TelegramStumbles(_WaitsInTelegram):
    """A bad gateway instead of an answer."""

    async def strike(self, stage: Stage) -> None:
        stage.town.telegram.fail("sendMessage", 502, "Bad Gateway")


class TelegramCutsAPost(_WaitsInTelegram):
    """The message is sent, and its answer lost."""

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


class TelegramRepeats(_Harmless):
    """An update of some time ago comes again under its old number."""

    async def strike(self, stage: Stage) -> None:
        queue = stage.town.telegram.queue
        if queue.history:
            queue.redeliver(int(str(stage.random.choice(queue.history)["update_id"])))


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
    SlackIsImpatient(),
    SlackRepeats(),
    TelegramIsBusy(),
    TelegramStumbles(),
    TelegramCutsAPost(),
    TelegramIsAway(),
    TelegramRepeats(),
    ModelStumbles(),
    Kill(),
    Terminate(),
)
