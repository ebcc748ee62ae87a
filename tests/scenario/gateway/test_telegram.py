"""What people do in Telegram with the real program: buttons, an album, the webhook."""

import copy
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohttp
import pytest
from aiohttp import web

from tests.conftest import FailAfter
from tests.scenario.gateway.town import ALLOWED, Town
from tests.scenario.process.program import command
from tests.wire.openai import Answer, Prompt, calls, says, use
from tests.wire.telegram import Attachment, Message
from tests.wire.telegram.state import Press

SECRET = "made-up-secret_0123"
BUTTONS = ["Allow once", "Deny"]
"""The command writes a file, so it is offered once only."""


def script(prompt: Prompt) -> Answer:
    """Wants a command first, then says what came of it."""
    if not prompt.results:
        return calls(use("exec", command="echo done >> effects"))
    return says("It is done.")


async def answer(town: Town, press: Press) -> tuple[str, bool]:
    """What the presser is shown, and whether it stays until they close it."""
    await town.telegram.wait_until(lambda: press.answer is not None)
    assert press.answer is not None
    return str(press.answer["text"]), press.answer["show_alert"] is True


async def card(town: Town) -> Message:
    """The card that Ann sees, with its buttons."""
    return await town.telegram.wait_for_message(lambda message: bool(message.buttons))


@pytest.mark.requirement("TEL-3", "APR-1", "APR-2", "APR-4")
async def test_an_approval_by_button_through_strangers_a_kill_and_a_second_press(
    town: Town, fail_after: FailAfter
) -> None:
    town.model.plays = script
    mallory = town.telegram.world.user("Mallory")
    async with fail_after(90):
        async with town.serving() as here:
            town.on_telegram("please")
            shown = await card(town)
            assert [button["text"] for button in shown.buttons] == BUTTONS
            seen = copy.copy(shown)
            stranger = town.telegram.user_presses(shown, "Allow once", mallory)
            told, alert = await answer(town, stranger)
            assert "approver" in told
            assert alert
            assert town.lines("effects") == []
            await here.killed()
        async with town.serving():
            press = town.telegram.user_presses(shown, "Allow once", town.ann)
            told, alert = await answer(town, press)
            assert (told.startswith("Allowed by Ann"), alert) == (True, False)
            await town.telegram.wait_until(lambda: "It is done." in town.telegram_texts())
            await town.telegram.wait_until(lambda: not shown.buttons)
            again = town.telegram.user_presses(seen, "Deny", town.ann)
            told, alert = await answer(town, again)
            assert ("already" in told, alert) == (True, True)
            assert shown.text.count("Allowed by Ann") == 1
    assert town.lines("effects") == ["done"]


@pytest.mark.requirement("TEL-3", "APR-1")
async def test_a_reply_to_the_card_denies_with_its_reason(
    town: Town, fail_after: FailAfter
) -> None:
    town.model.plays = script
    async with fail_after(60), town.serving():
        town.on_telegram("please")
        shown = await card(town)
        town.telegram.user_says(town.chat, town.ann, "no, not on Fridays", reply_to=shown)
        await town.telegram.wait_until(lambda: not shown.buttons)
        await town.telegram.wait_until(lambda: "not on Fridays" in shown.text)
    assert town.lines("effects") == []


@pytest.mark.requirement("TEL-3", "APR-5")
async def test_a_press_on_a_card_that_was_withdrawn_is_told_so_and_does_nothing(
    town: Town, fail_after: FailAfter
) -> None:
    town.model.plays = script
    async with fail_after(60), town.serving():
        town.on_telegram("please")
        shown = await card(town)
        seen = copy.copy(shown)
        town.on_telegram("/stop")
        await town.telegram.wait_until(lambda: not shown.buttons)
        press = town.telegram.user_presses(seen, "Allow once")
        told, alert = await answer(town, press)
        assert ("already" in told, alert) == (True, True)
    assert town.lines("effects") == []


@pytest.mark.requirement("TEL-3", "APR-6")
async def test_a_question_is_answered_by_the_button_of_an_option(
    town: Town, fail_after: FailAfter
) -> None:
    def asks(prompt: Prompt) -> Answer:
        if not prompt.results:
            return calls(use("ask_user", question="Which?", options=["blue", "green"]))
        return says(f"I heard: {prompt.results[-1]}")

    town.model.plays = asks
    async with fail_after(60), town.serving():
        town.on_telegram("ask me")
        shown = await card(town)
        press = town.telegram.user_presses(shown, "2. green")
        _, alert = await answer(town, press)
        assert not alert
        reply = await town.telegram.wait_for_message(lambda m: m.text.startswith("I heard"))
        assert "green" in reply.text


@dataclass
class Proxy:
    """Stands before the gateway, as an operator's web server does; `to` is where it leads."""

    url: str = ""
    to: str = ""

    async def forward(self, request: web.Request) -> web.Response:
        if not self.to:
            return web.Response(status=502)
        headers = {k: v for k, v in request.headers.items() if k.lower() != "host"}
        body = await request.read()
        try:
            async with (
                aiohttp.ClientSession() as session,
                session.post(f"{self.to}{request.path}", data=body, headers=headers) as answer,
            ):
                return web.Response(status=answer.status, body=await answer.read())
        except aiohttp.ClientError:
            return web.Response(status=502)


@asynccontextmanager
async def proxy() -> AsyncIterator[Proxy]:
    made = Proxy()
    app = web.Application()
    app.router.add_post("/{path:.*}", made.forward)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        made.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield made
    finally:
        await runner.cleanup()


def by_webhook(town: Town, front: Proxy) -> None:
    town.place.variables |= {
        "GATEHOUSE_TELEGRAM__WEBHOOK_URL": f"{front.url}/hooks/telegram",
        "GATEHOUSE_TELEGRAM__WEBHOOK_SECRET": SECRET,
    }


def said_in(prompt: Prompt) -> str:
    """The word that the newest message is about."""
    return next(word for word in ("one", "two", "three") if word in prompt.asked.split())


@pytest.mark.requirement("TEL-1", "MSG-1", "MSG-2")
async def test_by_webhook_what_is_said_while_the_gateway_is_down_is_answered_once(
    town: Town, fail_after: FailAfter
) -> None:
    town.model.plays = lambda prompt: says(f"re {said_in(prompt)}")
    async with fail_after(90), proxy() as front:
        by_webhook(town, front)
        async with town.serving() as here:
            front.to = await here.program.url()
            await town.telegram.wait_until(lambda: bool(town.telegram.queue.webhook.url))
            town.on_telegram("one")
            assert await town.telegram.queue.deliver() == [200]
            await town.telegram.wait_until(lambda: town.telegram_texts() == ["re one"])
            refused = await post(f"{front.to}/hooks/telegram")
            assert refused == 401, "the guard lets it through, the secret does not"
            await here.killed()
        said = town.on_telegram("two")
        assert await town.telegram.queue.deliver() == [502]
        async with town.serving() as here:
            front.to = await here.program.url()
            assert await town.telegram.queue.deliver() == [200]
            town.telegram.redeliver(said)
            assert await town.telegram.queue.deliver() == [200]
            await town.telegram.wait_until(lambda: town.telegram_texts() == ["re one", "re two"])
            town.on_telegram("three")
            assert await town.telegram.queue.deliver() == [200]
            wanted = ["re one", "re two", "re three"]
            await town.telegram.wait_until(lambda: town.telegram_texts() == wanted)


async def post(url: str) -> int:
    async with aiohttp.ClientSession() as session, session.post(url, json={}) as response:
        return response.status


@pytest.mark.requirement("TEL-2", "TEL-4")
async def test_an_album_by_webhook_is_answered_once(town: Town, fail_after: FailAfter) -> None:
    town.model.plays = lambda prompt: says("lovely")
    town.configure(ALLOWED)
    async with fail_after(60), proxy() as front:
        by_webhook(town, front)
        async with town.serving() as here:
            front.to = await here.program.url()
            await town.telegram.wait_until(lambda: bool(town.telegram.queue.webhook.url))
            pictures = [Attachment(b"\xff\xd8\xff", f"{n}.jpg", "photo") for n in range(3)]
            town.telegram.user_sends(town.chat, town.ann, pictures, caption="our garden")
            assert await town.telegram.queue.deliver() == [200] * 3
            await town.telegram.wait_until(lambda: town.telegram_texts() == ["lovely"])
            assert len(here.feed.runs()) == 1


@pytest.mark.requirement("TEL-3")
async def test_the_menu_of_commands_is_there_and_is_written_once(
    town: Town, fail_after: FailAfter
) -> None:
    async with fail_after(60):
        async with town.serving():
            await town.telegram.wait_until(lambda: len(town.telegram.state.commands) == 3)
        async with town.serving():
            asked = lambda: len(town.telegram.calls_to("getMyCommands"))  # noqa: E731
            await town.telegram.wait_until(lambda: asked() == 6)
    assert len(town.telegram.calls_to("setMyCommands")) == 3
    menus = {
        key: [line["command"] for line in lines]
        for key, lines in town.telegram.state.commands.items()
    }
    (groups,) = (menu for key, menu in menus.items() if "all_group_chats" in key)
    (private,) = (menu for key, menu in menus.items() if '"default"' in key)
    assert groups == ["help", "status", "new", "stop"]
    assert {"approve", "deny", "queue", *groups} <= set(private)


@pytest.mark.requirement("TEL-1")
async def test_an_operator_looks_after_the_webhook_by_hand(
    town: Town, fail_after: FailAfter
) -> None:
    async with fail_after(60):
        bare = await command(town.place, "telegram", "webhook", "set")
        assert (bare.code, "telegram.webhook_url" in bare.err) == (1, True)
        town.place.variables |= {
            "GATEHOUSE_TELEGRAM__WEBHOOK_URL": "https://gatehouse.example/hooks/telegram",
            "GATEHOUSE_TELEGRAM__WEBHOOK_SECRET": SECRET,
        }
        done = await command(town.place, "telegram", "webhook", "set")
        assert done.code == 0, done.err
        assert town.telegram.queue.webhook.secret_token == SECRET
        town.on_telegram("waits")
        shown = await command(town.place, "telegram", "webhook", "info")
        assert "https://gatehouse.example/hooks/telegram" in shown.out
        assert "waiting      1" in shown.out
        assert SECRET not in shown.out
        gone = await command(town.place, "telegram", "webhook", "delete")
        assert gone.code == 0, gone.err
        assert town.telegram.queue.webhook.url == ""
        assert len(town.telegram.queue.pending) == 1
        nobody = await command(town.place, "telegram", "webhook", "info", "--bot", "other")
        assert nobody.code == 1
        assert "telegram.bots.other.bot_token" in nobody.err


@pytest.mark.requirement("REN-4", "MSG-7")
async def test_a_reply_grows_as_a_draft_and_a_kill_in_mid_stream_ends_in_one_message(
    town: Town, fail_after: FailAfter
) -> None:
    gate = town.model.gate("middle")
    town.model.plays = lambda _: says(
        "This is the beginning of a longer answer", hold="middle", ending=" and its end."
    )
    showing = town.telegram.state.showing
    async with fail_after(90):
        async with town.serving() as here:
            town.on_telegram("tell me")
            await town.telegram.wait_until(
                lambda: "the beginning" in showing.get(town.chat.id, ""), timeout=30
            )
            assert town.telegram_texts() == []
            await here.killed()
        gate.opened.set()
        async with town.serving():
            await town.telegram.wait_until(lambda: bool(town.telegram_texts()), timeout=30)
            await town.telegram.wait_until(lambda: not showing)
        assert town.telegram_texts() == ["This is the beginning of a longer answer and its end."]


@pytest.mark.requirement("REN-4")
async def test_in_a_group_a_reply_grows_in_the_message_that_it_becomes(
    town: Town, fail_after: FailAfter
) -> None:
    gate = town.model.gate("middle")
    town.model.plays = lambda _: says(
        "This is the beginning of a longer answer", hold="middle", ending=" and its end."
    )
    group = town.telegram.world.supergroup("Team", town.ann)
    town.place.variables["GATEHOUSE_TELEGRAM__GROUP_POLICY"] = "open"
    async with fail_after(90), town.serving():
        question = town.telegram.user_says(group, town.ann, "@gatehouse_bot tell me")
        growing = await town.telegram.wait_for_message(lambda m: m.chat is group, timeout=30)
        # It begins with a part: nobody could find this post again if the gateway died now.
        assert growing.text.startswith("This is the beg")
        said = "This is the beginning of a longer answer"
        assert growing.text == said or growing.text.endswith("\N{HORIZONTAL ELLIPSIS}")
        await town.telegram.wait_until(lambda: growing.text == said, timeout=30)
        gate.opened.set()
        wanted = "This is the beginning of a longer answer and its end."
        await town.telegram.wait_until(lambda: growing.text == wanted, timeout=30)
        assert growing.reply_to is question
    assert town.telegram.from_bot(group) == [growing]


@pytest.mark.requirement("TEL-6")
async def test_a_conversation_goes_on_when_its_group_becomes_a_supergroup(
    town: Town, fail_after: FailAfter
) -> None:
    town.model.plays = lambda prompt: says(f"re {said_in(prompt)}")
    group = town.telegram.world.group("Team", town.ann)
    town.place.variables["GATEHOUSE_TELEGRAM__GROUP_POLICY"] = "open"
    async with fail_after(60), town.serving() as here:
        town.telegram.user_says(group, town.ann, "@gatehouse_bot one")
        await town.telegram.wait_for_message(lambda m: m.text == "re one")
        supergroup = town.telegram.migrate(group)
        town.telegram.user_says(supergroup, town.ann, "@gatehouse_bot two")
        answer = await town.telegram.wait_for_message(lambda m: m.text == "re two")
        assert answer.chat is supergroup
        assert here.feed.kinds().count("session.created") == 1
