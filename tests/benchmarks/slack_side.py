"""Slack and the model for the benchmark of events, in a process of their own.

    python -m tests.benchmarks.slack_side 200

It says where it listens, takes one order a line on its standard input, and answers each with a line
of JSON. The model answers nobody: whoever asked it goes on waiting.
"""

import asyncio
import json
import sys
import time
from collections.abc import Callable, Mapping
from copy import deepcopy

from adapters.system.clock import SystemClock
from tests.scenario.gateway.town import installed
from tests.wire.openai import ModelServer, says
from tests.wire.slack import GENERAL, SlackServer
from tests.wire.slack.deliveries import Delivery
from tests.wire.slack.state import JsonObject

PATIENCE_S = 3.0
"""How long Slack waits to hear that an event arrived."""
LOOK_S = 0.5
TEXT = (
    "Could you look at the figures of the last week again, please? I think that something is off."
)


def later_event(first: JsonObject, number: int, at: float) -> JsonObject:
    """Another message like the first one of its conversation: message `number`, said at `at`."""
    payload = deepcopy(first)
    event = payload["event"]
    assert isinstance(event, dict)
    ts = f"{at:.6f}"
    if event["channel_type"] != "im":
        event["thread_ts"] = event["ts"]
    event |= {"ts": ts, "event_ts": ts, "client_msg_id": f"later-{number}"}
    event["text"] = f"{TEXT} ({number})"
    event.pop("blocks", None)
    return payload | {"event_id": f"EvLater{number}", "event_time": int(at)}


class Side:
    """The servers, and what the benchmark orders."""

    def __init__(self, slack: SlackServer, model: ModelServer, people: int) -> None:
        self._slack = slack
        self._model = model
        self._users = [slack.workspace.add_user(f"person{each}") for each in range(people)]
        members = slack.workspace.channels[GENERAL].members
        members |= {*self._users, slack.install.bot_user}
        self._first: list[JsonObject] = []
        self._clock = SystemClock()
        model.plays = lambda prompt: says("Wait ", hold="for ever")

    def place(self) -> JsonObject:
        """What the gateway must be told."""
        install = self._slack.install
        return {
            "users": list(self._users),
            "variables": {
                "SLACK_BOT_TOKEN": install.bot_token,
                "SLACK_APP_TOKEN": install.app_token,
                "SLACK_SIGNING_SECRET": install.signing_secret,
                "SLACK_API_URL": self._slack.api_url,
                "OPENAI_API_KEY": "sk-test-key",
                "OPENAI_BASE_URL": self._model.url,
                "GATEHOUSE_MODELS__DEFAULT": "openai:scripted",
            },
        }

    async def greet(self, url: str) -> JsonObject:
        """Half of the people write to the bot, half begin a thread; until every run is at work."""
        if url:
            self._slack.use_http(url)
        for number, user in enumerate(self._users):
            direct = number % 2 == 0
            channel = self._slack.workspace.im(user) if direct else GENERAL
            said = await self._slack.user_says(channel, user, "hello", mention=not direct)
            self._first.append(said.deliveries[-1].payload)
        await self._until(lambda: len(self._model.prompts) >= len(self._users))
        return {"first": list(self._first)}

    async def flood(self, rate: int, seconds: float, first: int) -> JsonObject:
        """Events over the sockets at a steady rate; milliseconds from due to acknowledged each."""
        amount, begun_at = int(rate * seconds), self._clock.now_ms() / 1000
        made = [
            Delivery(
                kind="events_api",
                payload=later_event(
                    self._first[number % len(self._first)], number, begun_at + number / 1e6
                ),
            )
            for number in range(first, first + amount)
        ]
        due: dict[Delivery, float] = {}
        took: list[float] = []

        async def acknowledged(delivery: Delivery) -> None:
            # The echoes of what the bot posts are acknowledged too, and are not of the flood.
            if delivery in due:
                took.append((time.perf_counter() - due.pop(delivery)) * 1000)

        self._slack.on_ack(acknowledged)
        begun = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            again = group.create_task(self._again(due), name="again")
            for number, delivery in enumerate(made):
                due[delivery] = begun + number / rate
                await self._clock.sleep(max(due[delivery] - time.perf_counter(), 0))
                self._slack.deliveries.add(delivery)
                await self._slack.hub.deliver(delivery)
            await self._until(lambda: len(took) == amount)
            again.cancel()
        seconds, repeated = time.perf_counter() - begun, sum(bool(each.retries) for each in made)
        return {"took": list(took), "seconds": seconds, "repeated": repeated}

    async def _again(self, due: Mapping[Delivery, float]) -> None:
        """Send again what was not acknowledged within Slack's patience, as Slack does."""
        sent: dict[Delivery, float] = {}
        while True:
            await self._clock.sleep(LOOK_S)
            for delivery in [*due]:
                patience = time.perf_counter() - sent.get(delivery, due[delivery])
                if delivery.envelopes and patience > PATIENCE_S:
                    sent[delivery] = time.perf_counter()
                    retried = self._slack.deliveries.prepare_retry(delivery, "timeout")
                    assert retried, "Slack gave up on an event: the rate is more than is carried"
                    await self._slack.hub.deliver(delivery)

    async def _until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(120):
            while not condition():
                await self._clock.sleep(0.02)


async def main(people: int) -> None:
    """Serve until there are no more orders."""
    reader = asyncio.StreamReader(limit=2**24)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    # Slack's clock is the gateway's, so that nothing seems late.
    clock = SystemClock()
    slack = SlackServer(installed(), now=lambda: clock.now_ms() / 1000)
    async with slack.running(), ModelServer().running() as model:
        side = Side(slack, model, people)
        print(json.dumps(side.place()), flush=True)
        async for line in reader:
            order = json.loads(line)
            told = await (
                side.greet(order["url"])
                if "url" in order
                else side.flood(order["rate"], order["seconds"], order["first"])
            )
            print(json.dumps(told), flush=True)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
