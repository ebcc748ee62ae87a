"""The Slack wire server's deliveries: Socket Mode with the real clients, and signed HTTP."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from urllib.parse import parse_qs

import pytest
import pytest_asyncio
from aiohttp import web
from slack_bolt.adapter.socket_mode.async_handler import AsyncSocketModeHandler
from slack_bolt.app.async_app import AsyncApp
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse
from slack_sdk.signature import SignatureVerifier
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.web.async_client import AsyncWebClient

from tests.wire.slack import ANNA, GENERAL, Delivery, JsonObject, SlackServer, Upload
from tests.wire.slack.core import WAIT


class Listener:
    """A Socket Mode client that keeps what it hears, and acknowledges unless told not to."""

    def __init__(self, slack: SlackServer) -> None:
        self.heard: list[SocketModeRequest] = []
        self.acknowledges = True
        self.response: JsonObject | None = None
        self.web = AsyncWebClient(
            token=slack.install.bot_token, base_url=slack.api_url, retry_handlers=[]
        )
        self.client = SocketModeClient(
            app_token=slack.install.app_token, web_client=self.web, ping_interval=0.1
        )
        self.client.socket_mode_request_listeners.append(self._hear)
        self._news = asyncio.Condition()

    async def _hear(self, client: SocketModeClient, request: SocketModeRequest) -> None:
        self.heard.append(request)
        async with self._news:
            self._news.notify_all()
        if self.acknowledges:
            answer: JsonObject = {"envelope_id": request.envelope_id}
            if self.response is not None:
                answer["payload"] = self.response
            await client.send_socket_mode_response(answer)

    async def hears(self, count: int) -> list[JsonObject]:
        async with asyncio.timeout(WAIT), self._news:
            await self._news.wait_for(lambda: len(self.heard) >= count)
        return [request.payload.get("event", {}) for request in self.heard]


Listen = Callable[[], AbstractAsyncContextManager[Listener]]


@pytest_asyncio.fixture
async def slack() -> AsyncIterator[SlackServer]:
    async with SlackServer().running() as server:
        yield server


@pytest_asyncio.fixture
async def listener(slack: SlackServer) -> AsyncIterator[Listener]:
    async with listening(slack) as one:
        yield one


@asynccontextmanager
async def listening(slack: SlackServer) -> AsyncIterator[Listener]:
    one, before = Listener(slack), len(slack.sockets)
    await one.client.connect()
    await slack.wait_for_sockets(before + 1)
    try:
        yield one
    finally:
        await one.client.close()


async def test_a_mention_is_heard_twice_with_one_ts(slack: SlackServer, listener: Listener) -> None:
    said = await slack.user_says(GENERAL, ANNA, "help me", mention=True)
    mention, message = await listener.hears(2)
    assert (mention["type"], message["type"]) == ("app_mention", "message")
    assert mention["ts"] == message["ts"] == said.ts
    assert (message["channel_type"], message["text"]) == ("channel", "<@U0BOT> help me")
    await slack.wait_for_quiet()
    assert slack.acked == [d.envelopes[0] for d in said.deliveries]
    assert len({d.event_id for d in said.deliveries}) == 2


async def test_a_direct_message_has_no_mention_event_and_a_foreign_channel_none_at_all(
    slack: SlackServer, listener: Listener
) -> None:
    outside = slack.workspace.add_channel("outside", with_bot=False)
    unheard = await slack.user_says(outside, ANNA, "hello", mention=True)
    await slack.user_says(slack.workspace.im(ANNA), ANNA, "hello", mention=True)
    (heard,) = await listener.hears(1)
    assert (heard["type"], heard["channel_type"]) == ("message", "im")
    assert unheard.deliveries == ()


async def test_edits_deletions_files_joins_and_reactions_are_told(
    slack: SlackServer, listener: Listener
) -> None:
    said = await slack.user_says(GENERAL, ANNA, "draft", files=[Upload("a.txt", b"x")])
    await slack.user_edits(GENERAL, said.ts, "final")
    await slack.user_reacts(GENERAL, said.ts, ANNA, "eyes")
    await slack.user_deletes(GENERAL, said.ts)
    newcomer = slack.workspace.add_user("cleo")
    await slack.user_joins(GENERAL, newcomer)
    heard = await listener.hears(6)
    kinds = [event.get("subtype", event["type"]) for event in heard]
    assert kinds == [
        "file_share",
        "message_changed",
        "reaction_added",
        "message_deleted",
        "channel_join",
        "member_joined_channel",
    ]
    edited = heard[1]["message"]
    assert isinstance(edited, dict)
    assert (edited["text"], edited["edited"]["user"]) == ("final", ANNA)
    assert heard[3]["deleted_ts"] == said.ts


async def test_the_bot_hears_its_own_words_before_it_has_the_receipt(
    slack: SlackServer, listener: Listener
) -> None:
    gate = slack.hold("chat.postMessage")
    async with asyncio.TaskGroup() as group:
        sending = group.create_task(
            listener.web.chat_postMessage(channel=GENERAL, text="hi"), name="sending"
        )
        (echo,) = await listener.hears(1)
        assert not sending.done()
        gate.release()
    assert (echo["ts"], echo["bot_id"]) == (sending.result()["ts"], "B0BOT")
    assert "subtype" not in echo
    await listener.web.chat_update(channel=GENERAL, ts=str(echo["ts"]), text="hello")
    assert (await listener.hears(2))[1]["subtype"] == "message_changed"
    await listener.web.chat_postMessage(channel=GENERAL, text="as", username="Nightly")
    assert (await listener.hears(3))[2]["subtype"] == "bot_message"


async def test_what_is_not_acknowledged_comes_again_three_times_and_no_more(
    slack: SlackServer, listener: Listener
) -> None:
    listener.acknowledges = False
    said = await slack.user_says(GENERAL, ANNA, "hello")
    for _ in range(4):
        await slack.redeliver_unacked()
    await listener.hears(4)
    attempts = [(r.retry_attempt, r.retry_reason) for r in listener.heard]
    assert attempts == [(0, ""), (1, "timeout"), (2, "timeout"), (3, "timeout")]
    assert len({r.envelope_id for r in listener.heard}) == 4
    assert len({r.payload["event_id"] for r in listener.heard}) == 1
    assert said.deliveries[0].abandoned


async def test_an_acknowledgement_after_the_redelivery_is_late(
    slack: SlackServer, listener: Listener
) -> None:
    listener.acknowledges = False
    said = await slack.user_says(GENERAL, ANNA, "hello")
    await listener.hears(1)
    await slack.redeliver_unacked()
    await listener.hears(2)
    await listener.client.send_message(json.dumps({"envelope_id": listener.heard[0].envelope_id}))
    delivery = await slack.wait_for_ack(said.deliveries[0])
    assert delivery.late


async def test_a_duplicate_has_the_same_event_id_in_another_envelope(
    slack: SlackServer, listener: Listener
) -> None:
    said = await slack.user_says(GENERAL, ANNA, "hello")
    again = await slack.duplicate(said.deliveries[0])
    await listener.hears(2)
    await slack.wait_for_quiet()
    assert again.event_id == said.deliveries[0].event_id
    assert again.envelopes != said.deliveries[0].envelopes


async def test_each_event_goes_to_one_of_several_sockets(slack: SlackServer) -> None:
    async with AsyncExitStack() as stack:
        both = [await stack.enter_async_context(listening(slack)) for _ in range(2)]
        for number in range(4):
            await slack.user_says(GENERAL, ANNA, str(number))
        await asyncio.gather(*(one.hears(2) for one in both))
        await slack.wait_for_quiet()
        texts = [r.payload["event"]["text"] for one in both for r in one.heard]
    assert sorted(texts) == ["0", "1", "2", "3"]


async def test_an_event_that_a_frozen_client_got_is_repeated_to_another(
    slack: SlackServer, listener: Listener
) -> None:
    """The frozen one's socket is open, and nothing tells that nobody reads there."""
    listener.acknowledges = False
    (frozen,) = slack.sockets
    slack.repeat_events(0.01)
    async with listening(slack) as other:
        slack.send_next_over(frozen)
        said = await slack.user_says(GENERAL, ANNA, "anybody?")
        await slack.wait_for_ack(said.deliveries[0])
        await other.hears(1)
        assert other.heard[0].payload["event"]["text"] == "anybody?"
        assert other.heard[0].retry_attempt >= 1


async def test_a_dropped_client_comes_back_and_gets_what_it_owed(
    slack: SlackServer, listener: Listener
) -> None:
    listener.acknowledges = False
    await slack.user_says(GENERAL, ANNA, "before")
    await listener.hears(1)
    listener.acknowledges = True
    await slack.drop_sockets()
    await slack.user_says(GENERAL, ANNA, "while nobody listened")
    await slack.wait_for_quiet()
    assert [(r.payload["event"]["text"], r.retry_attempt) for r in listener.heard] == [
        ("before", 0),
        ("before", 1),
        ("while nobody listened", 0),
    ]


async def test_a_silent_socket_is_left_for_a_new_one(
    slack: SlackServer, listener: Listener
) -> None:
    silent = slack.sockets[0]
    slack.go_silent()
    said = await slack.user_says(GENERAL, ANNA, "into the void")
    assert said.deliveries[0].envelopes
    await slack.wait_for_quiet()
    assert listener.heard[0].retry_attempt == 1
    assert silent not in slack.sockets


@pytest.mark.parametrize("reason", ["warning", "refresh_requested", "link_disabled"])
async def test_a_client_that_is_told_to_leave_opens_a_new_socket(
    slack: SlackServer, listener: Listener, reason: str
) -> None:
    first = slack.sockets[0]
    await slack.disconnect(reason)
    await slack.until(lambda: bool(slack.sockets) and first not in slack.sockets)
    await slack.user_says(GENERAL, ANNA, "still there?")
    assert (await listener.hears(1))[0]["text"] == "still there?"


async def test_the_client_answers_the_servers_ping(slack: SlackServer, listener: Listener) -> None:
    link = slack.sockets[0]
    await slack.ping_sockets()
    await slack.until(lambda: link.pongs >= 1)


async def test_nothing_said_while_slack_is_down_is_lost(
    slack: SlackServer, listener: Listener
) -> None:
    await slack.down()
    await slack.user_says(GENERAL, ANNA, "during the outage")
    assert slack.sockets == []
    await slack.up()
    assert (await listener.hears(1))[0]["text"] == "during the outage"


async def test_frames_that_are_no_acknowledgement_are_violations(
    slack: SlackServer, listener: Listener
) -> None:
    for frame in ("hello", '{"ok": true}', '{"envelope_id": "unknown"}'):
        await listener.client.send_message(frame)
    await slack.ping_sockets()
    await slack.until(lambda: slack.sockets[0].pongs == 1)
    details = [v.detail for v in slack.violations]
    assert len(details) == 3
    assert details[2] == "an unknown envelope: 'unknown'"
    slack.violations.clear()


async def test_the_hook_sees_an_acknowledgement_before_it_counts(
    slack: SlackServer, listener: Listener
) -> None:
    seen: list[bool] = []

    async def hook(delivery: Delivery) -> None:
        seen.append(delivery.acked)

    slack.on_ack(hook)
    await slack.user_says(GENERAL, ANNA, "hello")
    await slack.wait_for_quiet()
    assert seen == [False]


async def test_a_slash_command_and_a_modal_take_a_response(
    slack: SlackServer, listener: Listener
) -> None:
    listener.response = {"text": "2 sessions"}
    asked = await slack.user_commands(GENERAL, ANNA, "status")
    await slack.wait_for_ack(asked)
    assert (asked.payload["command"], asked.response) == ("/gatehouse", {"text": "2 sessions"})
    title = {"type": "plain_text", "text": "Why?"}
    field = {"type": "plain_text_input", "action_id": "why"}
    body = {"type": "input", "block_id": "reason", "label": title, "element": field}
    view = {"type": "modal", "title": title, "submit": title, "blocks": [body]}
    await listener.web.views_open(trigger_id=str(asked.payload["trigger_id"]), view=view)
    (modal,) = slack.open_modals(ANNA)
    listener.response = {"response_action": "errors", "errors": {"reason": "too short"}}
    sent = await slack.user_submits(modal, {"reason": {"why": "x"}})
    assert await slack.modal_answered(modal, sent) == {"reason": "too short"}
    assert sent.payload["view"]["state"]["values"]["reason"]["why"]["value"] == "x"
    listener.response = {"response_action": "clear"}
    await slack.modal_answered(modal, await slack.user_submits(modal))
    assert slack.open_modals(ANNA) == []


async def test_an_unanswered_command_is_never_repeated(
    slack: SlackServer, listener: Listener
) -> None:
    listener.acknowledges = False
    asked = await slack.user_commands(GENERAL, ANNA, "status")
    assert await slack.redeliver_unacked() == []
    assert asked.abandoned


async def test_bolt_gets_events_through_its_middleware(slack: SlackServer) -> None:
    app = AsyncApp(
        client=AsyncWebClient(token=slack.install.bot_token, base_url=slack.api_url),
        signing_secret="",
        request_verification_enabled=False,
    )
    heard: list[object] = []

    # A global middleware that returns the response: nothing behind it runs, Bolt acknowledges.
    @app.middleware
    async def accept(req: AsyncBoltRequest) -> BoltResponse:
        heard.append(req.body["event"]["text"])
        return BoltResponse(status=200)

    handler = AsyncSocketModeHandler(app, slack.install.app_token)
    await handler.connect_async()
    try:
        await slack.user_says(GENERAL, ANNA, "through bolt")
        await slack.wait_for_quiet()
    finally:
        await handler.close_async()
    assert heard == ["through bolt"]


async def test_http_deliveries_are_signed_and_retried(slack: SlackServer) -> None:
    received: list[tuple[dict[str, str], bytes]] = []
    statuses = iter([200, 500, 200, 200])

    async def hook(request: web.Request) -> web.Response:
        body = await request.read()
        received.append((dict(request.headers), body))
        return web.Response(
            status=next(statuses),
            text=json.loads(body).get("challenge", "")
            if request.content_type == "application/json"
            else "noted",
        )

    app = web.Application()
    app.router.add_post("/slack", hook)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    push = slack.use_http(f"http://127.0.0.1:{runner.addresses[0][1]}/slack")
    assert (await push.verify_url()).text == "3eZbrw"
    await slack.user_says(GENERAL, ANNA, "hello")
    await slack.until(lambda: len(push.answers) == 2)
    await slack.redeliver_unacked("http_error")
    await slack.wait_for_quiet()
    asked = await slack.user_commands(GENERAL, ANNA, "status")
    await slack.wait_for_ack(asked)
    await runner.cleanup()
    assert asked.response == {"text": "noted"}
    assert parse_qs(received[3][1].decode())["text"] == ["status"]
    (first, body), (second, _) = received[1], received[2]
    assert "X-Slack-Retry-Num" not in first
    assert (second["X-Slack-Retry-Num"], second["X-Slack-Retry-Reason"]) == ("1", "http_error")
    signed = SignatureVerifier(slack.install.signing_secret).generate_signature(
        timestamp=first["X-Slack-Request-Timestamp"], body=body
    )
    assert first["X-Slack-Signature"] == signed
