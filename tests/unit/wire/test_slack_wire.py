"""The Slack wire server's Web API, driven by the real `slack_sdk` client."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from tests.wire.slack import (
    ANNA,
    BEN,
    GENERAL,
    Install,
    JsonObject,
    SlackServer,
    Upload,
    buttons_of,
)

METADATA = {"event_type": "gatehouse_outbox", "event_payload": {"outbox_id": "out_1"}}
APPROVE = {
    "type": "actions",
    "elements": [
        {
            "type": "button",
            "action_id": "approve",
            "text": {"type": "plain_text", "text": "Approve"},
            "value": "apr_1",
        }
    ],
}


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


async def refusal(call: object) -> str:
    assert asyncio.iscoroutine(call)
    with pytest.raises(SlackApiError) as caught:
        await call
    return str(caught.value.response["error"])


async def test_a_bot_learns_who_it_is_and_a_wrong_token_learns_nothing(
    slack: SlackServer, client: AsyncWebClient
) -> None:
    me = await client.auth_test()
    assert (me["user_id"], me["bot_id"], me["team_id"]) == ("U0BOT", "B0BOT", "T0TEAM")
    assert await refusal(client.auth_test(token="xoxb-wrong")) == "invalid_auth"
    assert await refusal(AsyncWebClient(base_url=slack.api_url).auth_test()) == "not_authed"
    assert await refusal(client.apps_connections_open(app_token=slack.install.bot_token)) == (
        "not_allowed_token_type"
    )


async def test_a_token_without_the_scope_is_told_which_one_it_needs() -> None:
    install = Install(scopes=frozenset({"channels:read"}))
    async with SlackServer(install).running() as slack:
        client = AsyncWebClient(token=install.bot_token, base_url=slack.api_url)
        with pytest.raises(SlackApiError) as caught:
            await client.chat_postMessage(channel=GENERAL, text="hello")
        assert caught.value.response["needed"] == "chat:write"
        assert (await client.conversations_info(channel=GENERAL))["channel"]["name"] == "general"
        assert await refusal(client.conversations_history(channel=GENERAL)) == "missing_scope"


@pytest.mark.parametrize(
    ("method", "arguments", "error", "said"),
    [
        ("chat.shout", {"channel": GENERAL}, "unknown_method", "unknown_method"),
        (
            "chat.postMessage",
            {"channel": GENERAL, "text": "x", "as_user": True},
            "invalid_arguments",
            "unknown argument: as_user",
        ),
        ("chat.postMessage", {"text": "x"}, "invalid_arguments", "missing required field: channel"),
        (
            "chat.postMessage",
            {"channel": GENERAL, "text": 1},
            "invalid_arguments",
            "text: must be a string",
        ),
        (
            "chat.postMessage",
            {"channel": GENERAL, "text": "x", "thread_ts": "now"},
            "invalid_arguments",
            "thread_ts: is no message timestamp",
        ),
        (
            "chat.startStream",
            {"channel": GENERAL, "thread_ts": "1700000001.000100", "metadata": METADATA},
            "invalid_arguments",
            "unknown argument: metadata",
        ),
    ],
)
async def test_a_call_that_no_correct_client_makes_is_refused_and_recorded(
    slack: SlackServer,
    client: AsyncWebClient,
    method: str,
    arguments: JsonObject,
    error: str,
    said: str,
) -> None:
    assert await refusal(client.api_call(method, json=arguments)) == error
    (violation,) = slack.violations
    assert violation.where == method
    assert said in violation.detail
    slack.violations.clear()


async def test_a_violation_fails_the_test_at_its_end() -> None:
    async def careless() -> None:
        async with SlackServer().running() as slack:
            client = AsyncWebClient(token=slack.install.bot_token, base_url=slack.api_url)
            await refusal(client.api_call("chat.shout"))

    with pytest.raises(AssertionError, match=r"chat\.shout"):
        await careless()


async def test_arguments_arrive_as_query_form_and_json(
    slack: SlackServer, client: AsyncWebClient
) -> None:
    await client.api_call("chat.postMessage", params={"channel": GENERAL, "text": "query"})
    await client.api_call(
        "chat.postMessage",
        data={"channel": GENERAL, "text": "form", "mrkdwn": "0", "metadata": json.dumps(METADATA)},
    )
    await client.api_call("chat.postMessage", json={"channel": GENERAL, "text": "json"})
    async with aiohttp.ClientSession() as session:
        body = {"token": slack.install.bot_token, "channel": GENERAL, "text": "token in the form"}
        async with session.post(slack.api_url + "chat.postMessage", data=body) as answer:
            assert (await answer.json())["ok"] is True
    texts = [post.text for post in slack.posts(GENERAL)]
    assert texts == ["query", "form", "json", "token in the form"]
    assert slack.posts()[1].metadata == METADATA


async def test_ts_values_are_unique_and_grow_even_when_the_clock_stands_still() -> None:
    async with SlackServer(now=lambda: 1_700_000_000.0).running() as slack:
        client = AsyncWebClient(token=slack.install.bot_token, base_url=slack.api_url)
        found = [
            (await client.chat_postMessage(channel=GENERAL, text=str(n)))["ts"] for n in range(3)
        ]
    assert found == ["1700000000.000100", "1700000000.000200", "1700000000.000300"]


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"text": "x" * 40_001}, "msg_too_long"),
        ({"text": "x", "blocks": [{"type": "divider"}] * 51}, "invalid_blocks"),
        (
            {"text": "x", "blocks": [{"type": "markdown", "text": "y" * 6_001}] * 2},
            "msg_blocks_too_long",
        ),
        (
            {
                "text": "x",
                "blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": "y" * 3_001}}],
            },
            "invalid_blocks",
        ),
        ({"text": "x", "blocks": [{"type": "section"}]}, "invalid_blocks"),
        ({"text": "x", "blocks": [{"type": "paragraph"}]}, "invalid_blocks"),
        ({"text": "x", "blocks": [{"type": "divider", "colour": "red"}]}, "invalid_blocks"),
        ({"text": "x", "metadata": {"event_type": "outbox"}}, "invalid_metadata_format"),
        ({"text": "x", "thread_ts": "1600000000.000100"}, "thread_not_found"),
    ],
)
async def test_a_message_over_a_limit_is_refused(
    slack: SlackServer, client: AsyncWebClient, body: dict[str, Any], error: str
) -> None:
    assert await refusal(client.chat_postMessage(channel=GENERAL, **body)) == error
    empty = client.api_call("chat.postMessage", json={"channel": GENERAL, "text": " "})
    assert await refusal(empty) == "no_text"
    assert slack.posts() == []


async def test_a_message_at_the_limits_is_accepted(
    slack: SlackServer, client: AsyncWebClient
) -> None:
    blocks = [{"type": "markdown", "text": "y" * 6_000}] * 2 + [{"type": "divider"}] * 48
    await client.chat_postMessage(channel=GENERAL, text="x" * 40_000, blocks=blocks)
    assert len(slack.posts(GENERAL)[0].blocks) == 50


async def test_channels_that_cannot_be_written_to(
    slack: SlackServer, client: AsyncWebClient
) -> None:
    outside = slack.workspace.add_channel("outside", with_bot=False)
    secret = slack.workspace.add_channel("secret", private=True, with_bot=False)
    old = slack.workspace.add_channel("old")
    slack.workspace.channels[old].archived = True
    for channel, error in (
        ("C0NOWHERE", "channel_not_found"),
        (outside, "not_in_channel"),
        (secret, "channel_not_found"),
        (old, "is_archived"),
    ):
        assert await refusal(client.chat_postMessage(channel=channel, text="x")) == error
    sent = await client.chat_postMessage(channel=ANNA, text="to a person")
    opened = await client.conversations_open(users=ANNA)
    assert sent["channel"] == opened["channel"]["id"] == slack.workspace.im(ANNA)


async def test_an_outbox_id_is_found_again_in_history_and_thread(
    slack: SlackServer, client: AsyncWebClient
) -> None:
    said = await slack.user_says(GENERAL, ANNA, "question")
    sent = await client.chat_postMessage(
        channel=GENERAL, text="answer", thread_ts=said.ts, metadata=METADATA
    )
    top = await client.chat_postMessage(channel=GENERAL, text="top", metadata=METADATA)
    thread = await client.conversations_replies(
        channel=GENERAL, ts=said.ts, include_all_metadata=True, limit=50
    )
    assert [m["ts"] for m in thread["messages"]] == [said.ts, sent["ts"]]
    assert thread["messages"][1]["metadata"] == METADATA
    assert thread["messages"][0]["reply_count"] == 1
    history = await client.conversations_history(
        channel=GENERAL, include_all_metadata=True, oldest=said.ts
    )
    assert [(m["ts"], m["metadata"]) for m in history["messages"]] == [(top["ts"], METADATA)]
    bare = await client.conversations_history(channel=GENERAL)
    assert all("metadata" not in m for m in bare["messages"])
    first = await client.conversations_history(channel=GENERAL, limit=1)
    assert first["has_more"]
    pages = [page["messages"][0]["ts"] async for page in first]
    assert pages == [top["ts"], said.ts]


async def test_edit_delete_and_react(slack: SlackServer, client: AsyncWebClient) -> None:
    sent = await client.chat_postMessage(channel=GENERAL, text="draft")
    ts = sent["ts"]
    await client.chat_update(channel=GENERAL, ts=ts, text="final")
    assert [(p.text, p.revisions) for p in slack.posts()] == [("final", ["draft"])]
    said = await slack.user_says(GENERAL, ANNA, "mine")
    foreign = client.chat_update(channel=GENERAL, ts=said.ts, text="x")
    assert await refusal(foreign) == "cant_update_message"
    react = {"channel": GENERAL, "timestamp": said.ts, "name": "eyes"}
    await client.reactions_add(**react)
    assert await refusal(client.reactions_add(**react)) == "already_reacted"
    await client.reactions_remove(**react)
    assert await refusal(client.reactions_remove(**react)) == "no_reaction"
    assert await refusal(client.reactions_add(**{**react, "name": ":eyes:"})) == "invalid_name"
    await client.chat_delete(channel=GENERAL, ts=ts)
    assert slack.posts() == []
    assert await refusal(client.chat_delete(channel=GENERAL, ts=ts)) == "message_not_found"


async def test_only_the_named_person_sees_an_ephemeral_message(
    slack: SlackServer, client: AsyncWebClient
) -> None:
    await client.chat_postEphemeral(channel=GENERAL, user=ANNA, text="for you")
    assert [m.text for m in slack.ephemerals(ANNA)] == ["for you"]
    assert slack.ephemerals(BEN) == slack.posts() == []


async def test_a_stream_grows_and_keeps_its_metadata_from_the_stop(
    slack: SlackServer, client: AsyncWebClient
) -> None:
    said = await slack.user_says(slack.workspace.im(ANNA), ANNA, "tell me")
    stream = await client.chat_startStream(
        channel=said.channel, thread_ts=said.ts, markdown_text="Once "
    )
    at = {"channel": said.channel, "ts": stream["ts"]}
    assert await refusal(client.chat_update(**at, text="x")) == "streaming_state_conflict"
    await client.chat_appendStream(**at, markdown_text="upon ")
    await client.chat_appendStream(**at, chunks=[{"type": "markdown_text", "text": "a "}])
    await client.chat_stopStream(**at, markdown_text="time", metadata=METADATA)
    (post,) = slack.posts(said.channel, said.ts)
    assert (post.text, post.streaming, post.metadata) == (
        "Once upon a time",
        "completed",
        METADATA,
    )
    assert await refusal(client.chat_appendStream(**at, markdown_text="x")) == (
        "message_not_in_streaming_state"
    )


async def test_a_stream_in_a_channel_names_its_reader_and_a_person_may_stop_it(
    slack: SlackServer, client: AsyncWebClient
) -> None:
    said = await slack.user_says(GENERAL, ANNA, "tell me", mention=True)
    start = {"channel": GENERAL, "thread_ts": said.ts, "recipient_team_id": "T0TEAM"}
    assert await refusal(client.chat_startStream(**start)) == "missing_recipient_user_id"
    stream = await client.chat_startStream(**start, recipient_user_id=ANNA)
    await slack.stream_ends(GENERAL, stream["ts"], by_user=True)
    stopped = client.chat_stopStream(channel=GENERAL, ts=stream["ts"])
    assert await refusal(stopped) == "stopped_by_user"


async def test_status_title_and_prompts_of_an_assistant_thread(
    slack: SlackServer, client: AsyncWebClient
) -> None:
    thread = await slack.user_opens_assistant(ANNA)
    at = {"channel_id": thread.channel, "thread_ts": thread.ts}
    await client.assistant_threads_setStatus(**at, status="is thinking...")
    await client.assistant_threads_setTitle(**at, title="Deploys")
    prompt = {"title": "Status", "message": "What is running?"}
    await client.assistant_threads_setSuggestedPrompts(**at, prompts=[prompt])
    assert slack.calls_to("assistant.threads.setStatus")[0].arguments["status"] == (
        "is thinking..."
    )
    assert slack.workspace.channels[thread.channel].messages[thread.ts].assistant_title == "Deploys"
    wrong = client.assistant_threads_setTitle(channel_id=GENERAL, thread_ts=thread.ts, title="x")
    assert await refusal(wrong) == "channel_type_not_supported"


async def test_files_go_up_and_come_down_with_the_token(
    slack: SlackServer, client: AsyncWebClient
) -> None:
    said = await slack.user_says(GENERAL, ANNA, "log", files=[Upload("a.log", b"line\n")])
    await client.files_upload_v2(
        channel=GENERAL, filename="report.txt", content="all good", thread_ts=said.ts
    )
    (post,) = slack.posts(GENERAL, said.ts)
    assert [(f.name, f.content) for f in post.files] == [("report.txt", b"all good")]
    history = await client.conversations_history(channel=GENERAL)
    shared = history["messages"][0]["files"][0]
    assert (shared["name"], shared["size"]) == ("a.log", 5)
    address = shared["url_private_download"]
    async with aiohttp.ClientSession() as session:
        signed = {"Authorization": f"Bearer {slack.install.bot_token}"}
        async with session.get(address, headers=signed) as answer:
            assert await answer.read() == b"line\n"
        async with session.get(address) as answer:
            assert answer.content_type == "text/html"


async def test_a_button_is_shown_pressed_and_answered_through_its_response_url(
    slack: SlackServer, client: AsyncWebClient
) -> None:
    sent = await client.chat_postMessage(channel=GENERAL, text="May I?", blocks=[APPROVE])
    assert buttons_of(slack.posts()[0]) == ["Approve"]
    with pytest.raises(LookupError):
        await slack.user_presses(GENERAL, sent["ts"], ANNA, "deny")
    pressed = await slack.user_presses(GENERAL, sent["ts"], ANNA, "approve")
    (action,) = pressed.payload["actions"]
    assert (action["value"], pressed.payload["user"]["id"]) == ("apr_1", ANNA)
    async with aiohttp.ClientSession() as session:
        answer = {"replace_original": True, "text": "Approved"}
        await session.post(pressed.payload["response_url"], json=answer)
    assert [(p.text, buttons_of(p)) for p in slack.posts()] == [("Approved", [])]
