"""Telegram calls the gateway: every call is checked and stored before it is answered."""

import io
import json

import aiohttp
import pytest
from pydantic import SecretStr, ValidationError

from adapters.telegram.settings import TelegramSettings
from runtime.ports.gatehouse import Pressed
from tests.contract.chat.telegram_support import SECRET, Desk, desk, to
from tests.contract.chat.test_telegram_buttons import approval
from tests.wire.telegram.client import real_bot

__all__ = ["desk"]

HEADER = "X-Telegram-Bot-Api-Secret-Token"


async def post(url: str, body: bytes, **headers: str) -> int:
    """Somebody calls the address."""
    async with (
        aiohttp.ClientSession() as session,
        session.post(url, data=body, headers=headers) as response,
    ):
        return response.status


def update(text: str = "let me in") -> bytes:
    person = {"id": 5001, "first_name": "Ann"}
    chat = {"id": 5001, "type": "private"}
    message = {"message_id": 1, "date": 1, "chat": chat, "from": person, "text": text}
    return json.dumps({"update_id": 1, "message": message}).encode()


@pytest.mark.requirement("TEL-1", "MSG-1")
async def test_the_webhook_is_set_and_what_people_say_is_stored_before_it_is_confirmed(
    desk: Desk,
) -> None:
    desk.server.user_says(desk.chat, desk.ann, "before the change")
    async with desk.called(webhook_connections=5) as url:
        webhook = desk.server.queue.webhook
        assert (webhook.url, webhook.secret_token, webhook.max_connections) == (url, SECRET, 5)
        (call,) = desk.server.calls_to("setWebhook")
        assert call.arguments.strings("allowed_updates") == [
            *("message", "edited_message", "callback_query", "my_chat_member")
        ]
        assert desk.adapter.status().connected
        desk.server.user_says(desk.chat, desk.ann, "hello")
        desk.gatehouse.break_store(times=2)
        assert await desk.server.queue.deliver() == [503]
        assert await desk.server.queue.deliver() == [503]
        assert (desk.gatehouse.texts, len(desk.server.queue.pending)) == ([], 2)
        assert await desk.server.queue.deliver() == [200, 200]
    assert desk.gatehouse.texts == ["before the change", "hello"]
    assert desk.server.queue.webhook.url == url, "another replica is called in the meantime"


@pytest.mark.requirement("TEL-1", "SEC-3")
@pytest.mark.parametrize("secret", ["", "wrong", SECRET[:-1], f"{SECRET}x", "\N{SNOWMAN}"])
async def test_who_does_not_know_the_secret_is_refused_and_nothing_is_stored(
    desk: Desk, secret: str
) -> None:
    async with desk.called() as url:
        headers = {HEADER: secret} if secret else {}
        assert await post(url, update(), **headers) == 401
        assert await post(url, b"{}", **headers) == 401
        assert desk.gatehouse.offered == []
        assert await post(url, update(), **{HEADER: SECRET}) == 200
    assert desk.gatehouse.texts == ["let me in"]


@pytest.mark.requirement("TEL-1")
@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"[]", 400),
        (b"{", 400),
        (b"[" * 100_000, 400),
        (b"{}", 400),
        (b'{"update_id": "x"}', 200),
        (b'{"update_id": 1, "quantum_message": {"text": 5}}', 200),
        (b'{"update_id": 1, "message": {"text": "who?"}}', 200),
        (b'{"update_id": 1, "callback_query": {"data": []}}', 200),
        (b'{"update_id": 1, "my_chat_member": 7}', 200),
    ],
)
async def test_a_body_of_an_unknown_shape_breaks_nothing(
    desk: Desk, body: bytes, status: int
) -> None:
    async with desk.called() as url:
        assert await post(url, body, **{HEADER: SECRET}) == status
        assert desk.gatehouse.offered == []
        assert await post(url, update("after it"), **{HEADER: SECRET}) == 200
    assert desk.gatehouse.texts == ["after it"]


@pytest.mark.requirement("TEL-1")
async def test_ten_megabytes_are_not_read(desk: Desk) -> None:
    async with desk.called() as url:
        async with aiohttp.ClientSession() as session:
            body = io.BytesIO(b"x" * 10_000_000)
            try:
                async with session.post(url, data=body, headers={HEADER: SECRET}) as response:
                    assert response.status == 413
            except aiohttp.ClientError:
                pass  # The connection was closed in the middle of the body, which is as good.
        assert await post(url, update("after it"), **{HEADER: SECRET}) == 200
    assert desk.gatehouse.texts == ["after it"]


@pytest.mark.requirement("TEL-1", "MSG-2")
async def test_a_call_that_is_repeated_is_the_same_message(desk: Desk) -> None:
    async with desk.called() as url:
        for _ in range(3):
            assert await post(url, update(), **{HEADER: SECRET}) == 200
    assert desk.gatehouse.texts == ["let me in"]


@pytest.mark.requirement("TEL-1")
async def test_a_replica_that_never_connected_takes_calls_too(desk: Desk) -> None:
    desk.server.fail("getMe", 502, "Bad Gateway")
    async with desk.hooked() as url:
        assert await post(url, update(), **{HEADER: SECRET}) == 503
        assert await post(url, update(), **{HEADER: SECRET}) == 200
    assert [message.account for message in desk.gatehouse.messages] == ["123456"]


@pytest.mark.requirement("TEL-3")
async def test_a_button_works_by_webhook_as_well(desk: Desk) -> None:
    desk.gatehouse.pressed = Pressed(accepted=True, text="Allowed by Ann.")
    async with desk.called():
        await desk.send(to(desk.chat, approval()))
        (shown,) = desk.server.from_bot(desk.chat)
        press = desk.server.user_presses(shown, "Allow once")
        assert await desk.server.queue.deliver() == [200]
    assert press.answer == {"text": "Allowed by Ann.", "show_alert": False}


@pytest.mark.requirement("TEL-1")
async def test_back_to_polling_the_webhook_goes_and_its_backlog_stays(desk: Desk) -> None:
    async with desk.called():
        pass
    desk.server.user_says(desk.chat, desk.ann, "nobody called you")
    await desk.adapter.close()
    desk.adapter = desk.another_adapter()
    async with desk.listening():
        await desk.hears(1)
    assert desk.server.queue.webhook.url == ""
    assert desk.gatehouse.texts == ["nobody called you"]


@pytest.mark.requirement("TEL-1")
async def test_a_webhook_that_another_program_takes_is_named_and_set_again(desk: Desk) -> None:
    async with desk.called() as url:
        async with real_bot(desk.server) as rival:
            await rival.set_webhook("https://elsewhere.example/hook")
        await desk.clock.until_naps(1)
        await desk.clock.advance(60)
        await desk.until(lambda: desk.server.queue.webhook.url == url)
        await desk.clock.until_naps(2)
        assert "Another program" in desk.adapter.status().detail


@pytest.mark.requirement("TEL-1")
async def test_where_telegram_does_not_get_through_the_status_says_why(desk: Desk) -> None:
    async with desk.called():
        desk.gatehouse.break_store(times=1)
        desk.server.user_says(desk.chat, desk.ann, "hello")
        assert await desk.server.queue.deliver() == [503]
        await desk.clock.until_naps(1)
        await desk.clock.advance(60)
        await desk.clock.until_naps(2)
        status = desk.adapter.status()
        assert not status.connected
        assert "Wrong response from the webhook: 503" in status.detail
        assert await desk.server.queue.deliver() == [200]
        await desk.clock.advance(60)
        await desk.clock.until_naps(3)
        assert desk.adapter.status().connected


async def test_while_telegram_is_away_the_webhook_is_set_later(desk: Desk) -> None:
    desk.server.fail("setWebhook", 502, "Bad Gateway")
    async with desk.hooked() as url, desk.listening():
        assert await desk.clock.until_naps(1) == [1.0]
        assert not desk.adapter.status().connected
        await desk.clock.advance(1)
        await desk.until(lambda: desk.server.queue.webhook.url == url)


def test_a_webhook_without_a_good_secret_is_no_configuration() -> None:
    for secret in (None, SecretStr("short"), SecretStr("with spaces in the middle")):
        with pytest.raises(ValidationError, match="16 to 256 letters"):
            TelegramSettings(
                token=SecretStr("1:a"), webhook_url="https://a.example", webhook_secret=secret
            )
