"""The drivers of the conformance suite: each plays a person, and its platform's faults.

A third platform's author writes one more `Platform`, and its description in `drivers.DRIVERS`.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

from runtime.domain.errors import DeliveryRejected, DeliveryRetry, StoreUnavailable
from runtime.domain.messages import ChatAddress, Deletion, InboundMessage
from runtime.domain.people import Sender
from runtime.ports.chat import ChatAdapter
from tests.contract.chat import slack_support, telegram_support
from tests.contract.chat.mailbox import LOOK_S, Mailbox, listening
from tests.contract.chat.platform import Elsewhere, Platform
from tests.fakes.chat import FAST, FakeChat, FakeStreams
from tests.fakes.clock import FakeClock
from tests.fakes.gatehouse import FakeGatehouse
from tests.wire.slack import ANNA, BEN, SlackServer, Upload
from tests.wire.telegram import TelegramServer
from tests.wire.telegram.state import Press


class FakePlatform(Elsewhere):
    """The fake of the engine's own tests: it must behave as the real ones do."""

    def __init__(self) -> None:
        self.adapter = FakeChat(capabilities=replace(FAST, lookup=True))
        self.adapter.streams = FakeStreams(self.adapter)
        self.adapter.shows_edits = True
        self.gatehouse = FakeGatehouse()
        self.target = ChatAddress(channel="test", account="A1", chat_id="D1")
        self._said: dict[str, InboundMessage] = {}

    async def says(self, text: str) -> str:
        said = InboundMessage(
            channel="test",
            account="A1",
            chat_id="D1",
            message_id=f"m{len(self._said)}",
            sender=Sender(id="U1"),
            text=text,
            received_at_ms=1,
        )
        self._said[said.message_id] = said
        with suppress(StoreUnavailable):
            await self.gatehouse.accept(said)
        return said.message_id

    async def redelivers(self) -> None:
        for said in self._said.values():
            await self.gatehouse.accept(said)

    async def repeats(self, message_id: str) -> None:
        await self.gatehouse.accept(self._said[message_id])

    async def edits(self, message_id: str, text: str) -> None:
        changes = {"text": text, "edited_at": "1"}
        await self.gatehouse.revise(self._said[message_id].model_copy(update=changes))

    async def deletes(self, message_id: str) -> None:
        said = self._said[message_id]
        await self.gatehouse.withdraw(
            Deletion(
                channel="test",
                account="A1",
                chat_id=said.chat_id,
                message_id=message_id,
                received_at_ms=1,
            )
        )

    def limit(self, seconds: int) -> None:
        self.adapter.failures.append(DeliveryRetry("429", after_s=float(seconds)))

    def refuse(self) -> None:
        self.adapter.failures.append(DeliveryRejected("gone"))

    def seen(self) -> list[str]:
        return self.adapter.texts()


class SlackPlatform(Elsewhere):
    """Slack over its wire server; `by` is the way in: socket or HTTP."""

    def __init__(self, desk: slack_support.Desk, *, by: str) -> None:
        self.desk, self._by = desk, by
        self.adapter: ChatAdapter = desk.adapter
        self.gatehouse = desk.gatehouse
        self._chat = desk.direct(ANNA)
        self.target = ChatAddress(channel="slack", account="T0TEAM", chat_id=self._chat)
        self._said: dict[str, object] = {}

    async def says(self, text: str) -> str:
        before = len(self.gatehouse.offered)
        said = await self.desk.slack.user_says(self._chat, ANNA, text)
        self._said[said.ts] = said.deliveries[0]
        await self.gatehouse.until(lambda: len(self.gatehouse.offered) > before)
        return said.ts

    async def redelivers(self) -> None:
        slack = self.desk.slack
        if self._by == "socket":
            await slack.redeliver_unacked()
        else:
            for delivery in slack.unacked:
                await slack.duplicate(delivery)
        await self.gatehouse.until(lambda: bool(self.gatehouse.messages))

    async def repeats(self, message_id: str) -> None:
        again = await self.desk.slack.duplicate(self._said[message_id])
        await self.desk.slack.wait_for_ack(again)

    async def edits(self, message_id: str, text: str) -> None:
        await self.desk.slack.user_edits(self._chat, message_id, text)
        await self.gatehouse.until(lambda: bool(self.gatehouse.revisions))

    async def deletes(self, message_id: str) -> None:
        await self.desk.slack.user_deletes(self._chat, message_id)
        await self.gatehouse.until(lambda: bool(self.gatehouse.deletions))

    async def presses_deny(self, post: str) -> None:
        press = await self.desk.slack.user_presses(self._chat, post, ANNA, "gatehouse_press:deny")
        await self.desk.slack.wait_for_ack(press)

    async def stranger_presses(self, post: str) -> str:
        self.desk.slack.workspace.channels[self._chat].members.add(BEN)
        press = await self.desk.slack.user_presses(self._chat, post, BEN, "gatehouse_press:deny")
        await self.desk.slack.wait_for_ack(press)
        return BEN

    async def answered(self) -> str:
        (said,) = self.desk.slack.ephemerals()
        assert said.ephemeral_to == BEN
        return said.text

    async def shares(self, name: str, content: bytes) -> None:
        upload = Upload(name, content, "text/plain")
        await self.desk.slack.user_says(self._chat, ANNA, "read this", files=[upload])
        await self.gatehouse.until(lambda: bool(self.gatehouse.messages))

    async def files(self) -> list[tuple[str, bytes]]:
        posts = self.desk.slack.posts(self._chat)
        return [(one.title, one.content or b"") for post in posts for one in post.files]

    def limit(self, seconds: int) -> None:
        self.desk.slack.rate_limit("chat.postMessage", retry_after=seconds)

    def refuse(self) -> None:
        self.desk.slack.fail("chat.postMessage", "channel_not_found")

    def lose(self) -> None:
        self.desk.slack.hang("chat.postMessage", cut=True)

    def seen(self) -> list[str]:
        return [post.visible_text for post in self.desk.slack.posts(self._chat)]


class TelegramPlatform(Elsewhere):
    """Telegram over its wire server; `by` is polling or a webhook."""

    def __init__(self, desk: telegram_support.Desk, *, by: str) -> None:
        self.desk, self._by = desk, by
        self.adapter: ChatAdapter = desk.adapter
        self.gatehouse = desk.gatehouse
        self.target = telegram_support.to(desk.chat, "").target
        self._said: dict[str, object] = {}
        self._press: Press | None = None

    async def says(self, text: str) -> str:
        before = len(self.gatehouse.offered)
        said = self.desk.server.user_says(self.desk.chat, self.desk.ann, text)
        self._said[str(said.message_id)] = said
        await self._delivered()
        await self.gatehouse.until(lambda: len(self.gatehouse.offered) > before)
        return str(said.message_id)

    async def _delivered(self) -> None:
        if self._by == "webhook":
            await self.desk.server.queue.deliver()

    async def redelivers(self) -> None:
        if self._by == "polling":
            await self.desk.clock.until_naps(1)
            await self.desk.clock.advance(1)
        await self._delivered()
        await self.gatehouse.until(lambda: bool(self.gatehouse.messages))

    async def repeats(self, message_id: str) -> None:
        self.desk.server.redeliver(self._said[message_id])
        await self._delivered()
        await self.desk.until(lambda: not self.desk.server.queue.pending)

    async def edits(self, message_id: str, text: str) -> None:
        self.desk.server.user_edits(self._said[message_id], text)
        await self._delivered()
        await self.gatehouse.until(lambda: bool(self.gatehouse.revisions))

    async def presses_deny(self, post: str) -> None:
        (card,) = (
            m for m in self.desk.server.from_bot(self.desk.chat) if str(m.message_id) == post
        )
        self.desk.server.user_presses(card, "Deny")
        await self._delivered()
        await self.gatehouse.until(lambda: bool(self.gatehouse.presses))

    async def stranger_presses(self, post: str) -> str:
        posts = self.desk.server.from_bot(self.desk.chat)
        (card,) = (one for one in posts if str(one.message_id) == post)
        stranger = self.desk.server.world.user("Mallory")
        self._press = self.desk.server.user_presses(card, "Deny", stranger)
        await self._delivered()
        await self.gatehouse.until(lambda: bool(self.gatehouse.presses))
        return str(stranger.id)

    async def answered(self) -> str:
        assert self._press is not None
        await self.desk.until(lambda: self._press is not None and self._press.answer is not None)
        assert self._press.answer is not None
        return str(self._press.answer["text"])

    async def shares(self, name: str, content: bytes) -> None:
        server = self.desk.server
        server.user_sends_document(self.desk.chat, self.desk.ann, content, filename=name)
        await self._delivered()
        await self.gatehouse.until(lambda: bool(self.gatehouse.messages))

    async def files(self) -> list[tuple[str, bytes]]:
        posts = self.desk.server.from_bot(self.desk.chat)
        sent = [post.media["document"] for post in posts if "document" in post.media]
        find = self.desk.server.state.files.find
        return [
            (str(one["file_name"]), find(str(one["file_id"])).attachment.content) for one in sent
        ]

    def limit(self, seconds: int) -> None:
        self.desk.server.rate_limit("sendMessage", retry_after=seconds)

    def refuse(self) -> None:
        self.desk.server.fail("sendMessage", 403, "Forbidden: bot was blocked by the user")

    def lose(self) -> None:
        self.desk.server.hang("sendMessage")

    def seen(self) -> list[str]:
        return self.desk.shown()


class MailboxPlatform(Elsewhere):
    """The worked example of the guide."""

    def __init__(self, folder: Path) -> None:
        self.clock = FakeClock()
        self.adapter = Mailbox(folder, self.clock)
        self.gatehouse = FakeGatehouse()
        self.target = ChatAddress(channel="mailbox", account=folder.name, chat_id="ann")
        self._folder = folder
        self._files = 0

    async def _put(self, **said: object) -> None:
        self._files += 1
        path = self._folder / "in" / f"{self._files:04}.json"
        path.write_text(json.dumps({"from": "ann", **said}))
        await self.clock.advance(LOOK_S)

    async def says(self, text: str) -> str:
        await self._put(id=f"m{self._files}", text=text)
        return f"m{self._files - 1}"

    async def redelivers(self) -> None:
        await self.clock.advance(LOOK_S)

    async def repeats(self, message_id: str) -> None:
        await self._put(id=message_id, text="again")

    async def edits(self, message_id: str, text: str) -> None:
        await self._put(id=message_id, text=text, edited="1")

    async def deletes(self, message_id: str) -> None:
        await self._put(id=message_id, deleted=True)

    def refuse(self) -> None:
        (self._folder / "out").rmdir()

    async def files(self) -> list[tuple[str, bytes]]:
        found = sorted((self._folder / "out").glob("*.file-*"))
        return [(one.name.partition(".file-")[2], one.read_bytes()) for one in found]

    def seen(self) -> list[str]:
        return [path.read_text() for path in sorted((self._folder / "out").glob("*.txt"))]


@asynccontextmanager
async def fake() -> AsyncIterator[Platform]:
    made = FakePlatform()
    await made.adapter.connect()
    yield made


@asynccontextmanager
async def slack(by: str, view: str) -> AsyncIterator[Platform]:
    async with (
        SlackServer(slack_support.installed_as(view)).running() as server,
        slack_support.doors(server, by, request_timeout_s=2.0) as door,
    ):
        if by == "http":
            await door.desk.adapter.connect()
        yield SlackPlatform(door.desk, by=by)


@asynccontextmanager
async def telegram(by: str) -> AsyncIterator[Platform]:
    async with TelegramServer() as server:
        desk = telegram_support.Desk(server)
        try:
            async with desk.listening() if by == "polling" else desk.called():
                yield TelegramPlatform(desk, by=by)
        finally:
            await desk.adapter.close()


@asynccontextmanager
async def mailbox(path: Path) -> AsyncIterator[Platform]:
    made = MailboxPlatform(path / "ann-and-bot")
    task = await listening(made.adapter, made.gatehouse)
    await made.clock.advance(0.0)
    try:
        yield made
    finally:
        task.cancel()
        await asyncio.wait([task])
