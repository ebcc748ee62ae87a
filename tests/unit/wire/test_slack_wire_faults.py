"""The faults that the Slack wire server plays on order, met by the real `slack_sdk` client."""

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import pytest
import pytest_asyncio
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from tests.wire.slack import ANNA, GENERAL, SlackServer

METADATA = {"event_type": "gatehouse_outbox", "event_payload": {"outbox_id": "out_1"}}


@pytest_asyncio.fixture
async def slack() -> AsyncIterator[SlackServer]:
    async with SlackServer().running() as server:
        yield server


@pytest.fixture
def client(slack: SlackServer) -> AsyncWebClient:
    # No retry handler: the SDK's own would repeat a post whose connection was cut.
    return AsyncWebClient(
        token=slack.install.bot_token, base_url=slack.api_url, timeout=5, retry_handlers=[]
    )


async def test_a_rate_limit_counts_by_method_and_channel(
    slack: SlackServer, client: AsyncWebClient
) -> None:
    slack.rate_limit("chat.postMessage", times=1, retry_after=7, channel=GENERAL)
    await client.chat_postMessage(channel=ANNA, text="another channel")
    with pytest.raises(SlackApiError) as caught:
        await client.chat_postMessage(channel=GENERAL, text="limited")
    assert caught.value.response.status_code == 429
    assert caught.value.response.headers["Retry-After"] == "7"
    await client.chat_postMessage(channel=GENERAL, text="again")
    assert [p.text for p in slack.posts(GENERAL)] == ["again"]


async def test_ordered_failures_come_once_and_store_nothing(
    slack: SlackServer, client: AsyncWebClient
) -> None:
    slack.fail("chat.postMessage", "fatal_error")
    slack.break_http("chat.postMessage", 503)
    with pytest.raises(SlackApiError) as caught:
        await client.chat_postMessage(channel=GENERAL, text="x")
    assert caught.value.response["error"] == "fatal_error"
    with pytest.raises(SlackApiError):
        await client.chat_postMessage(channel=GENERAL, text="x")
    assert slack.posts() == []
    await client.chat_postMessage(channel=GENERAL, text="through")
    assert [p.text for p in slack.posts()] == ["through"]


@pytest.mark.parametrize("cut", [True, False])
async def test_an_ambiguous_send_is_stored_though_no_answer_comes(
    slack: SlackServer, cut: bool
) -> None:
    client = AsyncWebClient(
        token=slack.install.bot_token, base_url=slack.api_url, timeout=1, retry_handlers=[]
    )
    slack.hang("chat.postMessage", cut=cut)
    with pytest.raises((aiohttp.ClientError, TimeoutError)):
        await client.chat_postMessage(channel=GENERAL, text="did it arrive?", metadata=METADATA)
    assert [p.metadata for p in slack.posts(GENERAL)] == [METADATA]


async def test_a_held_answer_shows_the_message_before_its_receipt(
    slack: SlackServer, client: AsyncWebClient
) -> None:
    gate = slack.hold("chat.postMessage")
    async with asyncio.TaskGroup() as group:
        sending = group.create_task(
            client.chat_postMessage(channel=GENERAL, text="held"), name="sending"
        )
        post = await slack.wait_for_post(lambda m: m.text == "held")
        await gate.entered.wait()
        assert not sending.done()
        gate.release()
    assert sending.result()["ts"] == post.ts


async def test_down_refuses_everybody_and_up_serves_at_the_same_address(
    slack: SlackServer, client: AsyncWebClient
) -> None:
    await slack.down()
    with pytest.raises(aiohttp.ClientConnectionError):
        await client.auth_test()
    await slack.up()
    assert (await client.auth_test())["ok"] is True
