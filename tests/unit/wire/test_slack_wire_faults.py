"""The faults that the Slack wire server plays on order, met by the real `slack_sdk` client."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import aiohttp
import pytest
import pytest_asyncio
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from tests.wire.slack import ANNA, GENERAL, Install, SlackServer

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


async def test_a_share_of_all_calls_is_limited_the_same_for_the_same_seed() -> None:
    async def story(seed: int) -> list[bool]:
        async with SlackServer().running() as slack:
            slack.limit_share(0.5, seed=seed, retry_after=1, now=slack.workspace.now)
            client = AsyncWebClient(
                token=slack.install.bot_token, base_url=slack.api_url, retry_handlers=[]
            )
            for _ in range(12):
                with suppress(SlackApiError):
                    await client.chat_postMessage(channel=GENERAL, text="hello")
            return [call.error is None for call in slack.calls]

    assert await story(7) == await story(7) != await story(8)


async def test_who_calls_again_before_retry_after_has_broken_the_rule() -> None:
    server = SlackServer()
    await server.start()
    try:
        server.limit_share(1.0, seed=1, retry_after=60, now=lambda: 0.0)
        client = AsyncWebClient(
            token=server.install.bot_token, base_url=server.api_url, retry_handlers=[]
        )
        for _ in range(2):
            with pytest.raises(SlackApiError, match="ratelimited"):
                await client.chat_postMessage(channel=GENERAL, text="hello")
        (violation,) = server.violations
        assert "before Retry-After" in violation.detail
    finally:
        await server.stop()


async def test_an_installation_hears_only_what_its_scopes_allow_and_is_told_them() -> None:
    install = Install(scopes=frozenset({"chat:write", "im:history"}))
    async with SlackServer(install).running() as slack:
        direct = slack.workspace.im(ANNA)
        assert len((await slack.user_says(direct, ANNA, "hello")).deliveries) == 1
        assert (await slack.user_says(GENERAL, ANNA, "hello", mention=True)).deliveries == ()
        assert (await slack.user_joins(GENERAL, "U0BOT")).deliveries == ()
        with pytest.raises(LookupError):
            await slack.user_commands(GENERAL, ANNA, "help")
        client = AsyncWebClient(token=install.bot_token, base_url=slack.api_url)
        answer = await client.auth_test()
        assert answer.headers["X-OAuth-Scopes"] == "chat:write,im:history"
        assert slack.workspace.used_scopes == {"im:history"}
