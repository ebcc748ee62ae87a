"""Platforms that refuse, that cannot be reached, and that come back: said plainly, nothing lost."""

import json

import pytest

from gateway.cli.client import JsonObject
from runtime.domain.json_fields import objects_of
from tests.conftest import FailAfter
from tests.scenario.gateway.page import Page
from tests.scenario.gateway.town import Serving, Town
from tests.scenario.process.program import command
from tests.wire.openai import says
from tests.wire.slack import SlackServer


async def adapter(here: Serving, channel: str) -> JsonObject:
    """What `gatehouse status` says about a platform."""
    status = await here.client.get("/v1/status")
    return next(one for one in objects_of(status, "adapters") if one["channel"] == channel)


async def told(here: Serving, event: str, channel: str) -> None:
    """Until the log says this of the platform."""
    await here.program.until(here.program.err, lambda line: event in line and channel in line)


async def refused(here: Serving, channel: str) -> str:
    """What the operator reads of a platform that did not take the token."""
    await told(here, "adapter_refused", channel)
    found = await adapter(here, channel)
    assert not found["connected"]
    return str(found["detail"])


async def shown(here: Serving, text: str) -> str:
    """The line that stands in the terminal."""
    return await here.program.until(here.program.out, lambda line: line.startswith(text))


async def test_wrong_tokens_are_said_to_the_operator_and_right_ones_lose_nothing(
    town: Town, fail_after: FailAfter
) -> None:
    right = dict(town.place.variables)
    await town.on_slack("hello")
    town.on_telegram("hello")
    async with fail_after(90):
        town.place.variables["SLACK_BOT_TOKEN"] = "xoxb-made-up-and-wrong"
        town.place.variables["TELEGRAM_BOT_TOKEN"] = "123456:MADE-UP-AND-WRONG"
        async with town.serving() as here:
            page = await Page.open(here.client)
            await page.says("hello")
            await here.feed.settled(1)
            slack, telegram = await refused(here, "slack"), await refused(here, "telegram")
            assert await shown(here, "Slack: not connected.") == f"Slack: not connected. {slack}"
            assert "BotFather" in await shown(here, "Telegram: not connected.")
            assert "xoxb-" in slack
            assert "api.slack.com/apps" in slack
            assert "BotFather" in telegram
            for secret in ("made-up-and-wrong", "MADE-UP-AND-WRONG"):
                assert secret not in here.program.transcript + slack + telegram
        town.place.variables |= right
        town.place.variables["SLACK_APP_TOKEN"] = "xapp-made-up-and-wrong"
        async with town.serving() as here:
            assert "xapp-" in await refused(here, "slack")
            await here.feed.settled(2)
            assert len(town.telegram_texts()) == 1
            assert "made-up-and-wrong" not in here.program.transcript
        town.place.variables |= right
        async with town.serving() as here:
            assert town.slack.install.team_id in await shown(here, "Slack: connected as ")
            await shown(here, "Telegram: connected as 123456")
            for name in right:
                if name.startswith(("SLACK_", "TELEGRAM_", "OPENAI_")):
                    del town.place.variables[name]
            town.place.variables["GATEHOUSE_MODELS__DEFAULT"] = "offline:offline"
            first = json.loads((await command(town.place, "doctor", "--json")).out)[0]
            assert (first["name"], first["state"]) == ("gateway", "warn")
            assert "does not have: Slack, Telegram, the model openai:scripted." in first["found"]
            assert "secrets.toml" in first["fix"]
            await here.feed.settled(3)
            assert len(town.slack_texts()) == len(town.telegram_texts()) == 1


@pytest.mark.requirement("MSG-1", "OPS-3")
async def test_platforms_that_are_away_at_the_start_are_met_when_they_come(
    town: Town, fail_after: FailAfter
) -> None:
    await outage(town.slack)
    await town.telegram.down()
    await town.on_slack("hello")
    town.on_telegram("hello")
    async with fail_after(90), town.serving() as here:
        page = await Page.open(here.client)
        await page.says("hello")
        await here.feed.settled(1)
        for channel in ("slack", "telegram"):
            await told(here, "adapter_unreachable", channel)
            found = await adapter(here, channel)
            assert not found["connected"]
            assert found["detail"]
        await town.slack.up()
        await town.telegram.up()
        await here.feed.settled(3)
        assert len(town.slack_texts()) == len(town.telegram_texts()) == 1
        assert (await adapter(here, "slack"))["connected"]
        await town.telegram.wait_until(lambda: town.telegram.queue.polling)


@pytest.mark.requirement("MSG-1", "MSG-9")
async def test_platforms_that_go_away_in_the_middle_get_the_reply_once_when_they_are_back(
    town: Town, fail_after: FailAfter
) -> None:
    town.model.plays = lambda prompt: says("It took ", hold="long", ending="a while.")
    async with fail_after(90), town.serving() as here:
        await town.on_slack("one")
        town.on_telegram("one")
        await here.feed.until(lambda: here.feed.kinds().count("run.started") == 2)
        await town.model.gate("long").entered.wait()
        await outage(town.slack)
        await town.telegram.down()
        town.model.gate("long").opened.set()
        for run_id in here.feed.runs():
            assert await here.feed.ended(run_id) == "run.completed"
        await town.on_slack("two")
        town.on_telegram("two")
        await town.slack.up()
        await town.telegram.up()
        await here.feed.settled(4)
        assert town.slack_texts() == ["It took a while."] * 2
        assert town.telegram_texts() == ["It took a while."] * 2


async def outage(slack: SlackServer) -> None:
    """Slack is down, also for HTTP connections that were kept alive."""
    await slack.down()
    runner = slack._runner
    assert runner is not None
    assert runner.server is not None
    for connection in runner.server.connections:
        connection.force_close()
