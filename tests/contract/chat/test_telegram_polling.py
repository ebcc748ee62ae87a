"""Updates are stored before they are confirmed, and no trouble loses one or ends the polling."""

import asyncio

import pytest

from runtime.domain.errors import Forbidden, StoreUnavailable, Unavailable
from runtime.domain.messages import InboundMessage
from runtime.ports.gatehouse import Accepted
from tests.contract.chat.telegram_support import ACCOUNT, Desk, desk
from tests.fakes.gatehouse import FakeGatehouse
from tests.wire.telegram.client import real_bot

__all__ = ["desk"]

_CONFLICT = "Another program receives"


@pytest.mark.requirement("MSG-1")
async def test_a_message_is_stored_before_its_offset_is_confirmed(desk: Desk) -> None:
    desk.gatehouse.gate.clear()
    async with desk.listening():
        desk.server.user_says(desk.chat, desk.ann, "hello")
        await desk.gatehouse.until(lambda: len(desk.gatehouse.offered) == 1)
        (waiting,) = (update["update_id"] for update in desk.server.queue.pending)
        assert isinstance(waiting, int)
        asked = len(desk.server.calls_to("getUpdates"))
        assert desk.gatehouse.messages == []

        desk.gatehouse.gate.set()
        (message,) = await desk.hears(1)
    assert message.text == "hello"
    confirming = desk.server.calls_to("getUpdates")[asked]
    assert confirming.arguments.integer("offset") == waiting + 1


@pytest.mark.requirement("MSG-1", "MSG-2")
async def test_while_the_store_is_down_the_update_stays_and_comes_again_once(desk: Desk) -> None:
    desk.gatehouse.break_store(times=2)
    for text in ("first", "second"):
        desk.server.user_says(desk.chat, desk.ann, text)
    async with desk.listening():
        for attempt, seconds in enumerate((1.0, 2.0), start=1):
            assert await desk.clock.until_naps(attempt) == [1.0, 2.0][:attempt]
            assert len(desk.server.queue.pending) == 2
            await desk.clock.advance(seconds)
        await desk.hears(2)
    assert [message.text for message in desk.gatehouse.offered] == ["first"] * 3 + ["second"]
    assert desk.gatehouse.texts == ["first", "second"]


async def test_a_store_that_came_back_is_not_punished_for_its_past(desk: Desk) -> None:
    async with desk.listening():
        for number in (1, 2):
            desk.gatehouse.break_store()
            desk.server.user_says(desk.chat, desk.ann, "hello")
            assert await desk.clock.until_naps(number) == [1.0] * number
            await desk.clock.advance(1)
            await desk.hears(number)


class FailsOnce(FakeGatehouse):
    """The store goes down when it meets `text` for the first time."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    async def accept(self, message: InboundMessage, *, session_id: str | None = None) -> Accepted:
        if message.text == self._text:
            self._text = ""
            raise StoreUnavailable("the test broke the store")
        return await super().accept(message, session_id=session_id)


@pytest.mark.requirement("MSG-1")
async def test_what_was_stored_before_the_store_failed_is_confirmed(desk: Desk) -> None:
    desk.gatehouse = FailsOnce("second")
    desk.server.user_says(desk.chat, desk.ann, "first")
    second = desk.server.user_says(desk.chat, desk.ann, "second")
    async with desk.listening():
        await desk.clock.until_naps(1)
        hold = desk.server.hold("getUpdates")
        await desk.clock.advance(1)
        await hold.arrived.wait()
        asking = desk.server.calls_to("getUpdates")[-1]
        assert asking.arguments.integer("offset") == second.update_id
        hold.release()
        await desk.hears(2)
    assert desk.gatehouse.texts == ["first", "second"]


@pytest.mark.requirement("MSG-2")
async def test_an_update_that_comes_again_after_a_restart_is_the_same_message(desk: Desk) -> None:
    async with desk.listening():
        said = desk.server.user_says(desk.chat, desk.ann, "hello")
        await desk.hears(1)
    desk.server.redeliver(said)
    async with desk.listening():
        await desk.gatehouse.until(lambda: len(desk.gatehouse.offered) == 2)
        await desk.until(lambda: not desk.server.queue.pending)
    assert [message.identity for message in desk.gatehouse.offered] == [
        f"telegram:{ACCOUNT}:{desk.chat.id}:{said.message_id}"
    ] * 2
    assert desk.gatehouse.texts == ["hello"]


async def test_what_was_said_while_nobody_listened_is_heard_in_order(desk: Desk) -> None:
    for text in ("one", "two", "three"):
        desk.server.user_says(desk.chat, desk.ann, text)
    async with desk.listening():
        heard = await desk.hears(3)
    assert [message.text for message in heard] == ["one", "two", "three"]


async def test_an_update_of_an_unknown_shape_is_passed_by(desk: Desk) -> None:
    for poison in ({"message_id": "seven"}, "no object", {"chat": {"id": 5, "type": "moon"}}):
        desk.server.queue.add("message", poison)  # type: ignore[arg-type]  # that is the test
    desk.server.user_says(desk.chat, desk.ann, "after the poison")
    async with desk.listening():
        (message,) = await desk.hears(1)
        assert desk.adapter.status().connected
    assert message.text == "after the poison"


async def test_a_second_program_with_the_same_token_is_named_until_it_stops(desk: Desk) -> None:
    async with desk.listening(), real_bot(desk.server) as rival:
        await desk.until(lambda: desk.server.queue.polling)
        assert desk.adapter.status().connected
        stay = asyncio.create_task(rival.get_updates(timeout=30), name="rival")
        await desk.clock.until_naps(1)
        status = desk.adapter.status()
        assert not status.connected
        assert _CONFLICT in status.detail

        desk.server.user_says(desk.chat, desk.ann, "to the rival")
        assert len(await stay) == 1
        await desk.clock.advance(1)
        (message,) = await desk.hears(1)
        # A question that is answered at once would have hidden a rival that is still there.
        asked = desk.server.calls_to("getUpdates")
        assert [call.arguments.integer("timeout") for call in asked] == [0, 30, 30, 30, 30]
        await desk.until(lambda: desk.server.queue.polling)
        assert desk.adapter.status().connected
    assert message.text == "to the rival"


async def test_a_webhook_of_an_earlier_setup_is_removed_and_its_backlog_is_kept(
    desk: Desk,
) -> None:
    desk.server.user_says(desk.chat, desk.ann, "before the change")
    desk.server.queue.webhook.url = "https://gatehouse.example/hook"
    async with desk.listening():
        await desk.hears(1)
        assert desk.server.queue.webhook.url == ""
        assert desk.adapter.status().connected


async def test_a_webhook_that_is_set_later_is_named_and_removed(desk: Desk) -> None:
    async with desk.listening():
        await desk.until(lambda: desk.server.queue.polling)
        desk.server.queue.webhook.url = "https://elsewhere.example/hook"
        desk.server.user_says(desk.chat, desk.ann, "hello")
        await desk.clock.until_naps(1)
        assert "webhook is set" in desk.adapter.status().detail
        await desk.clock.advance(1)
        await desk.hears(1)
    assert desk.server.queue.webhook.url == ""


async def test_an_outage_is_waited_out_and_nothing_is_lost(desk: Desk) -> None:
    async with desk.listening():
        await desk.until(lambda: desk.server.queue.polling)
        await desk.server.down()
        naps = await desk.clock.until_naps(1)
        status = desk.adapter.status()
        assert not status.connected
        assert status.detail.startswith("Telegram cannot be reached.")
        for attempt in range(1, 9):
            await desk.clock.advance(naps[-1])
            await desk.clock.until_naps(attempt + 1)
        assert naps == [1, 2, 4, 8, 16, 32, 60, 60, 60]

        desk.server.user_says(desk.chat, desk.ann, "are you back?")
        await desk.server.up()
        await desk.clock.advance(60)
        await desk.hears(1)
        await desk.until(lambda: desk.server.queue.polling)
        assert desk.adapter.status().connected

        await desk.server.down()
        assert (await desk.clock.until_naps(10))[-1] == 1


async def test_numbers_that_begin_anew_after_a_quiet_time_are_heard(desk: Desk) -> None:
    async with desk.listening():
        old = desk.server.user_says(desk.chat, desk.ann, "a low number")
        desk.server.user_says(desk.chat, desk.ann, "a high number")
        await desk.hears(2)
        await desk.until(lambda: desk.server.queue.polling)
        await desk.server.down()
        await desk.clock.until_naps(1)
        await desk.server.up()
        await desk.clock.advance(1)
        await desk.until(lambda: desk.server.queue.polling)
        desk.server.redeliver(old)
        await desk.gatehouse.until(lambda: len(desk.gatehouse.offered) == 3)
    assert desk.gatehouse.offered[-1].text == "a low number"


async def test_flood_control_of_the_polling_itself_is_obeyed(desk: Desk) -> None:
    desk.server.rate_limit("getUpdates", retry_after=7)
    async with desk.listening():
        assert await desk.clock.until_naps(1) == [7]
        desk.server.user_says(desk.chat, desk.ann, "hello")
        await desk.clock.advance(7)
        await desk.hears(1)


@pytest.mark.parametrize(
    ("token", "problem"),
    [
        ("123456:OTHER-TOKEN", "Unauthorized"),
        ("no token at all", "it does not look like"),
        ("../getMe?x=1:A", "it does not look like"),
    ],
)
async def test_a_wrong_token_is_told_to_the_operator(desk: Desk, token: str, problem: str) -> None:
    adapter = desk.another_adapter(token=token)
    try:
        with pytest.raises(Forbidden) as refused:
            await adapter.connect()
        assert problem in str(refused.value)
        assert "@BotFather" in str(refused.value)
        assert token not in str(refused.value)
        assert adapter.status().detail == str(refused.value)
    finally:
        await adapter.close()


async def test_a_start_without_telegram_can_be_tried_again(desk: Desk) -> None:
    await desk.server.down()
    with pytest.raises(Unavailable) as away:
        await desk.adapter.connect()
    assert desk.server.token not in str(away.value)
    assert not desk.adapter.status().connected
    await desk.server.up()
    await desk.adapter.connect()
    assert desk.adapter.account == ACCOUNT


async def test_nobody_listens_before_connecting(desk: Desk) -> None:
    with pytest.raises(Unavailable, match="connect first"):
        await desk.adapter.listen(desk.gatehouse)
    assert desk.server.calls == []


@pytest.mark.requirement("TEL-1")
async def test_where_questions_are_answered_early_they_are_not_asked_again_at_once(
    desk: Desk,
) -> None:
    desk.server.queue.held = False
    async with desk.listening():
        # The first question after a start is to be answered at once; the others are not.
        assert await desk.clock.until_naps(1) == [1.0]
        asked = len(desk.server.calls_to("getUpdates"))
        for number in (2, 3):
            await desk.clock.advance(1)
            await desk.clock.until_naps(number)
        assert len(desk.server.calls_to("getUpdates")) == asked + 2
        desk.server.user_says(desk.chat, desk.ann, "hello")
        await desk.clock.advance(1)
        (message,) = await desk.hears(1)
    assert message.text == "hello"


@pytest.mark.requirement("TEL-1", "TEL-2")
async def test_fields_that_are_null_are_not_there(desk: Desk) -> None:
    desk.server.queue.nulls = ("callback_query", "my_chat_member", "edited_message")
    async with desk.listening():
        desk.server.user_says(desk.chat, desk.ann, "hello")
        (message,) = await desk.hears(1)
    assert message.text == "hello"
