"""A Telegram server, an adapter that talks to it, and a clock that moves on command."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest_asyncio
from aiohttp import web
from pydantic import SecretStr

from adapters.telegram.adapter import TelegramAdapter
from adapters.telegram.settings import TelegramSettings
from gateway.http.hooks import HookRoutes
from gateway.http.problems import problems
from runtime.domain.messages import (
    ChatAddress,
    ChatKind,
    InboundMessage,
    OutboundMessage,
    OutboundPart,
    Receipt,
    TextPart,
)
from runtime.ports.chat import Webhook
from tests.fakes.clock import FakeClock
from tests.fakes.gatehouse import FakeGatehouse
from tests.wire.telegram import Chat, Message, TelegramServer, User

ACCOUNT = "123456"
SECRET = "made-up-secret_0123"


class WatchedClock(FakeClock):
    """A fake clock of which a test can await that somebody sleeps on it."""

    def __init__(self) -> None:
        super().__init__()
        self.naps: list[float] = []
        self._news = asyncio.Condition()

    async def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        async with self._news:
            self._news.notify_all()
        await super().sleep(seconds)

    async def until_naps(self, count: int) -> list[float]:
        """The seconds of every sleep so far, once there were `count`."""
        async with asyncio.timeout(60), self._news:
            await self._news.wait_for(lambda: len(self.naps) >= count)
        return self.naps


@dataclass
class Progress:
    """`on_posted` of a send: what the engine wrote down so far."""

    ids: list[str] = field(default_factory=list)

    async def __call__(self, message_id: str) -> None:
        self.ids.append(message_id)


class _Mounted:
    """The gateway's route for webhooks on a port of its own."""

    def __init__(self, gatehouse: FakeGatehouse) -> None:
        self.hooks: list[Webhook] = []
        self._gatehouse = gatehouse

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        app = web.Application(middlewares=[problems])
        app.router.add_post("/hooks/{path:.+}", self._receive)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            yield f"http://127.0.0.1:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()

    async def _receive(self, request: web.Request) -> web.Response:
        return await HookRoutes(self.hooks, self._gatehouse).receive(request)


class Desk:
    """What a test holds: the server, Ann and her chat, the adapter and the engine's side of it."""

    def __init__(self, server: TelegramServer) -> None:
        self.server = server
        self.ann: User = server.world.user("Ann")
        self.chat: Chat = server.world.private(self.ann)
        self.gatehouse = FakeGatehouse()
        self.clock = WatchedClock()
        self.adapter = self.another_adapter()
        self.progress = Progress()

    def another_adapter(self, *, token: str = "", **changes: object) -> TelegramAdapter:
        """Made, not connected; who makes one closes it."""
        given: dict[str, object] = {
            "token": SecretStr(token or self.server.token),
            "api_url": self.server.url,
            "poll_timeout_s": 30,
            "request_timeout_s": 10,
            **changes,
        }
        return TelegramAdapter(TelegramSettings.model_validate(given), self.clock)

    @asynccontextmanager
    async def hooked(self, **changes: object) -> AsyncIterator[str]:
        """Telegram may call the adapter, through the gateway's own route, at the yielded address;
        nobody has told it so yet."""
        await self.adapter.close()
        mounted = _Mounted(self.gatehouse)
        async with mounted.serving() as base:
            given: dict[str, object] = {
                "webhook_url": f"{base}/hooks/telegram",
                "webhook_secret": SecretStr(SECRET),
                **changes,
            }
            self.adapter = self.another_adapter(**given)
            hook = self.adapter.webhook
            assert hook is not None
            mounted.hooks.append(hook)
            yield f"{base}/hooks/{hook.path}"

    @asynccontextmanager
    async def called(self, **changes: object) -> AsyncIterator[str]:
        """As `hooked`, and the adapter listens: Telegram knows the address."""
        before = len(self.clock.naps)
        async with self.hooked(**changes) as url, self.listening():
            # Once the webhook is set, the adapter sleeps until it looks after it again.
            await self.clock.until_naps(before + 1)
            yield url

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """The adapter connects and receives inside the block."""
        await self.adapter.connect()
        task = asyncio.create_task(self.adapter.listen(self.gatehouse), name="listen")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])
            if not task.cancelled():
                task.result()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Until `condition()`, which is looked at after everything that the server sees."""
        await self.server.wait_until(condition)

    async def hears(self, count: int) -> list[InboundMessage]:
        """The first `count` messages that were stored, once Telegram was told so."""
        heard = await self.gatehouse.wait_for(count)
        await self.until(lambda: not self.server.queue.pending)
        return heard

    async def send(self, message: OutboundMessage) -> Receipt:
        """An attempt that goes on after what earlier attempts of this test have posted."""
        posted = tuple(self.progress.ids)
        return await self.adapter.send(message, posted=posted, on_posted=self.progress)

    def shown(self, chat: Chat | None = None) -> list[str]:
        """What people read from the bot, post by post."""
        return [post.text for post in self.server.from_bot(chat or self.chat)]

    def topic(self) -> tuple[Chat, int]:
        """A forum that the bot is in, and a topic in it."""
        forum = self.server.world.supergroup("Team", self.ann, forum=True)
        return forum, self.server.user_opens_topic(forum, self.ann, "Deploys")


def to(
    chat: Chat,
    *parts: OutboundPart | str,
    topic: int | None = None,
    reply_to: Message | None = None,
) -> OutboundMessage:
    """A message of the outbox for `chat`; a string is a text part."""
    kind: ChatKind = "direct" if chat.type == "private" else "group"
    return OutboundMessage(
        outbox_id="out_1",
        target=ChatAddress(
            channel="telegram",
            account=ACCOUNT,
            chat_id=str(chat.id),
            chat_kind=kind if topic is None else "topic",
            thread_id=None if topic is None else str(topic),
        ),
        reply_to=None if reply_to is None else str(reply_to.message_id),
        parts=tuple(TextPart(markdown=part) if isinstance(part, str) else part for part in parts),
        final=True,
    )


def numbers(posts: list[Message]) -> tuple[str, ...]:
    """The ids of posts, as a receipt of the same chat names them."""
    return tuple(str(post.message_id) for post in posts)


@pytest_asyncio.fixture
async def desk() -> AsyncIterator[Desk]:
    """A desk; the test fails at its end if the adapter broke a rule of the Bot API."""
    async with TelegramServer() as server:
        made = Desk(server)
        try:
            yield made
        finally:
            await made.adapter.close()
        assert server.violations == []
