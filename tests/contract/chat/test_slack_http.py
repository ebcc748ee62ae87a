"""Slack that calls: signed requests on the gateway's own route, good ones and all the others."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlencode

import aiohttp
import pytest
import pytest_asyncio
from pydantic import SecretStr, ValidationError

from gateway.http.hooks import MAX_BODY
from tests.contract.chat.slack_support import (
    START_MS,
    Desk,
    doors,
    settings_by_http,
    settings_for,
    slack,
)
from tests.wire.slack import ANNA, GENERAL, SlackServer, signed_headers

__all__ = ["slack"]

NOW = START_MS // 1000


@dataclass
class Caller:
    """Somebody who sends requests to the hook, Slack or not."""

    desk: Desk
    url: str
    client: aiohttp.ClientSession

    async def post(self, body: bytes, headers: dict[str, str]) -> tuple[int, str]:
        async with self.client.post(self.url, data=body, headers=headers) as answer:
            return answer.status, await answer.text()

    async def signed(
        self, body: bytes, *, at: int = NOW, content_type: str = "application/json", retry: int = 0
    ) -> tuple[int, str]:
        secret = self.desk.slack.install.signing_secret
        headers = signed_headers(
            body, secret=secret, timestamp=at, content_type=content_type, retry=retry
        )
        return await self.post(body, headers)


@pytest_asyncio.fixture
async def caller(slack: SlackServer) -> AsyncIterator[Caller]:
    async with doors(slack, "http") as door, aiohttp.ClientSession() as client:
        push = slack.push
        assert push is not None
        yield Caller(door.desk, push.url, client)


def said(text: str, *, ts: str = "1700000000.000100", chat: str = "D0000000009") -> bytes:
    """The body of an event: Anna said something."""
    event = {
        "type": "message",
        "user": ANNA,
        "text": text,
        "ts": ts,
        "channel": chat,
        "channel_type": "im",
    }
    return json.dumps({"type": "event_callback", "event_id": "Ev1", "event": event}).encode()


def test_the_credentials_choose_the_way_in(slack: SlackServer) -> None:
    secret = SecretStr("shh")
    both = settings_for(slack, signing_secret=secret)
    assert not both.by_http, "Socket Mode needs no public address, so it is taken where it can be"
    assert settings_by_http(slack).by_http
    with pytest.raises(ValidationError, match="signing secret"):
        settings_for(slack, app_token=None)


@pytest.mark.requirement("SLK-1")
async def test_the_address_is_verified_before_anything_else_works(caller: Caller) -> None:
    caller.desk.slack.fail("auth.test", "invalid_auth", times=9)
    push = caller.desk.slack.push
    assert push is not None
    answer = await push.verify_url()
    assert (answer.status, answer.text) == (200, "3eZbrw")


@pytest.mark.requirement("SLK-1", "MSG-1")
async def test_a_message_is_stored_before_slack_gets_its_200(caller: Caller) -> None:
    desk = caller.desk
    desk.gatehouse.gate.clear()
    told = await desk.slack.user_says(desk.direct(ANNA), ANNA, "hello")
    await desk.gatehouse.until(lambda: len(desk.gatehouse.offered) == 1)
    assert desk.slack.unacked == list(told.deliveries)
    desk.gatehouse.gate.set()
    await desk.slack.wait_for_quiet()
    assert desk.gatehouse.texts == ["hello"]
    assert desk.adapter.status().connected
    assert desk.slack.calls_to("apps.connections.open") == []


@pytest.mark.requirement("SLK-1", "MSG-1", "MSG-2")
async def test_a_store_that_is_down_is_a_503_and_the_retry_is_the_same_message(
    caller: Caller,
) -> None:
    caller.desk.gatehouse.break_store()
    body = said("hello")
    assert (await caller.signed(body))[0] == 503
    assert caller.desk.gatehouse.texts == []
    for retry in (1, 2):
        assert await caller.signed(body, retry=retry) == (200, "")
    assert caller.desk.gatehouse.texts == ["hello"]


@pytest.mark.requirement("SLK-1", "MSG-1")
async def test_a_request_that_meets_a_defect_is_a_500_and_others_go_on(caller: Caller) -> None:
    caller.desk.gatehouse.fail(ValueError("a defect"))
    body = said("hello")
    assert (await caller.signed(body))[0] == 500
    assert await caller.signed(said("later", ts="1700000000.000200")) == (200, "")
    assert await caller.signed(body, retry=1) == (200, "")
    assert caller.desk.gatehouse.texts == ["later", "hello"]


@pytest.mark.requirement("SLK-1")
async def test_while_slack_does_not_say_who_the_bot_is_nothing_is_acknowledged(
    caller: Caller,
) -> None:
    caller.desk.slack.break_http("auth.test", 502)
    assert (await caller.signed(said("hello")))[0] == 503
    assert (await caller.signed(said("hello"), retry=1))[0] == 200
    assert caller.desk.gatehouse.texts == ["hello"]


@pytest.mark.requirement("SLK-1", "SEC-3")
@pytest.mark.parametrize(
    "change",
    [
        {"X-Slack-Signature": "v0=" + "0" * 64},
        {"X-Slack-Signature": "v0=é"},
        {"X-Slack-Signature": ""},
        {"X-Slack-Request-Timestamp": str(NOW + 1)},
        {"X-Slack-Request-Timestamp": "soon"},
        {"X-Slack-Request-Timestamp": ""},
    ],
)
async def test_what_slack_did_not_sign_is_refused_unread(
    caller: Caller, change: dict[str, str]
) -> None:
    body = said("let me in")
    secret = caller.desk.slack.install.signing_secret
    headers = {**signed_headers(body, secret=secret, timestamp=NOW), **change}
    assert await caller.post(body, headers) == (401, "")
    assert caller.desk.gatehouse.offered == []


@pytest.mark.requirement("SLK-1")
async def test_another_secret_another_body_or_no_signature_at_all_is_refused(
    caller: Caller,
) -> None:
    body = said("let me in")
    wrong = signed_headers(body, secret="another-made-up-secret", timestamp=NOW)
    right = signed_headers(body, secret=caller.desk.slack.install.signing_secret, timestamp=NOW)
    assert (await caller.post(body, wrong))[0] == 401
    assert (await caller.post(said("something else"), right))[0] == 401
    assert (await caller.post(body, {"Content-Type": "application/json"}))[0] == 401
    assert caller.desk.gatehouse.offered == []


@pytest.mark.requirement("SLK-1")
@pytest.mark.parametrize(
    ("apart", "status"), [(-301, 401), (-300, 200), (0, 200), (300, 200), (301, 401)]
)
async def test_a_signature_holds_for_five_minutes(caller: Caller, apart: int, status: int) -> None:
    assert (await caller.signed(said("hello"), at=NOW + apart))[0] == status
    assert caller.desk.gatehouse.texts == (["hello"] if status == 200 else [])


@pytest.mark.requirement("SLK-1", "MSG-2")
async def test_a_replayed_request_changes_nothing(caller: Caller) -> None:
    body = said("once")
    headers = signed_headers(body, secret=caller.desk.slack.install.signing_secret, timestamp=NOW)
    for _ in range(3):
        assert (await caller.post(body, headers))[0] == 200
    assert caller.desk.gatehouse.texts == ["once"]


@pytest.mark.requirement("SLK-1", "MSG-12")
async def test_a_slash_command_comes_as_a_form(caller: Caller) -> None:
    desk = caller.desk
    delivery = await desk.slack.user_commands(GENERAL, ANNA, "approve a1b2c3")
    await desk.slack.wait_for_ack(delivery)
    assert desk.gatehouse.texts == ["/approve a1b2c3"]
    assert delivery.response is None, "the command's answer is a message of its own"


@pytest.mark.requirement("SLK-1")
@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"", "application/json", 400),
        (b"[]", "application/json", 400),
        (b"{", "application/json", 400),
        (b"\xff\xfe", "application/json", 400),
        (b"[" * 100_000, "application/json", 400),
        (b'{"type": "url_verification"}', "application/json", 400),
        (b'{"type": "app_rate_limited"}', "application/json", 200),
        (b'{"type": "event_callback", "event": "none"}', "application/json", 200),
        (b"payload=%7B", "application/x-www-form-urlencoded", 400),
        (b"payload=%ff", "application/x-www-form-urlencoded", 400),
        (b"ssl_check=1&token=x", "application/x-www-form-urlencoded", 200),
        (b"a=b&" * 500, "application/x-www-form-urlencoded", 400),
        (b"", "application/x-www-form-urlencoded", 200),
        (urlencode({"payload": "{}"}).encode(), "application/x-www-form-urlencoded", 200),
    ],
)
async def test_a_signed_request_of_a_strange_shape_breaks_nothing(
    caller: Caller, body: bytes, kind: str, status: int
) -> None:
    assert (await caller.signed(body, content_type=kind))[0] == status
    assert caller.desk.gatehouse.offered == []
    assert (await caller.signed(said("still there")))[0] == 200


@pytest.mark.requirement("SLK-1")
@pytest.mark.parametrize("pieces", [17, 160])
async def test_a_body_of_ten_megabytes_is_refused_before_it_is_whole(
    caller: Caller, pieces: int
) -> None:
    async def body() -> AsyncIterator[bytes]:
        for _ in range(pieces):
            yield b"x" * 65_536

    assert pieces * 65_536 > MAX_BODY
    statuses = []
    # The server may hang up on a sender that goes on and on.
    with suppress(aiohttp.ClientConnectionError):
        async with caller.client.post(caller.url, data=body()) as answer:
            statuses.append(answer.status)
    assert statuses in ([413], [])
    assert (await caller.signed(said("still there")))[0] == 200
    assert caller.desk.gatehouse.texts == ["still there"]


async def test_a_path_that_no_adapter_has_is_not_there(caller: Caller) -> None:
    async with caller.client.post(f"{caller.url}/other", data=b"") as answer:
        assert answer.status == 404


@pytest.mark.requirement("SLK-1")
async def test_listening_by_http_is_being_there(caller: Caller) -> None:
    await caller.desk.adapter.connect()
    async with caller.desk.listening_again():
        assert (await caller.signed(said("hello")))[0] == 200
    assert caller.desk.gatehouse.texts == ["hello"]


@pytest.mark.requirement("SLK-1")
async def test_many_requests_at_once_are_each_taken_once(caller: Caller) -> None:
    bodies = [said(str(n), ts=f"17000000{n:02}.000100", chat=f"D00{n:02}") for n in range(40)]
    answers = await asyncio.gather(*(caller.signed(body) for body in (*bodies, *bodies)))
    assert {status for status, _ in answers} == {200}
    assert sorted(caller.desk.gatehouse.texts, key=int) == [str(n) for n in range(40)]
