"""A Slack workspace, an adapter that is installed in it, and a clock that moves on command."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import pytest
import pytest_asyncio
import yaml
from aiohttp import web
from pydantic import SecretStr

from adapters.slack.adapter import SlackAdapter
from adapters.slack.manifest import Experience, manifest
from adapters.slack.settings import SlackSettings
from gateway.http.hooks import HookRoutes
from gateway.http.problems import problems
from runtime.domain.messages import ChatAddress, ChatKind, OutboundMessage, Receipt, TextPart
from runtime.ports.clock import Timer
from tests.fakes.gatehouse import FakeGatehouse
from tests.wire.slack import GENERAL, Install, Message, SlackServer
from tests.wire.slack.manifests import install_of

START_MS = 1_700_000_000_000


@dataclass(eq=False)
class Nap:
    """A pending wait; it is over when the clock has passed `until`."""

    until: float
    wake: Callable[[], None]
    seconds: float

    def cancel(self) -> None:
        self.until = float("inf")


class StoppedClock:
    """A `Clock` that stands still until `advance`. `naps` says who waits, and for how long."""

    def __init__(self) -> None:
        self._now = 0.0
        self._naps: list[Nap] = []
        self._news = asyncio.Condition()

    def now_ms(self) -> int:
        return START_MS + int(self._now * 1000)

    def monotonic(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            return
        awake = asyncio.Event()
        nap = Nap(self._now + seconds, awake.set, seconds)
        self._naps.append(nap)
        async with self._news:
            self._news.notify_all()
        try:
            await awake.wait()
        finally:
            self._naps = [each for each in self._naps if each is not nap]

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        nap = Nap(self._now + seconds, callback, seconds)
        self._naps.append(nap)
        return nap

    async def until_someone_waits(self, seconds: float, count: int = 1) -> None:
        """Until so many (one, unless told) sleep for exactly `seconds`."""
        async with asyncio.timeout(60), self._news:
            await self._news.wait_for(
                lambda: sum(nap.seconds == seconds for nap in self._naps) >= count
            )

    def advance(self, seconds: float) -> None:
        self._now += seconds
        due = [nap for nap in self._naps if nap.until <= self._now]
        self._naps = [nap for nap in self._naps if nap not in due]
        for nap in due:
            nap.wake()


@dataclass
class Progress:
    """`on_posted` of a send: what the engine wrote down so far."""

    ids: list[str] = field(default_factory=list)

    async def __call__(self, message_id: str) -> None:
        self.ids.append(message_id)


class Desk:
    """What a test holds: the workspace, the adapter and the engine's side of it."""

    def __init__(self, slack: SlackServer, settings: SlackSettings) -> None:
        self.slack = slack
        self.clock = StoppedClock()
        self.gatehouse = FakeGatehouse()
        self.settings = settings
        self.adapter = SlackAdapter(settings, self.clock)
        self.progress = Progress()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """The adapter connects and receives inside the block."""
        await self.adapter.connect()
        async with self.listening_again():
            await self.slack.wait_for_sockets(self.settings.connections)
            yield

    @asynccontextmanager
    async def called(self) -> AsyncIterator[str]:
        """Slack calls the adapter inside the block, through the gateway's own route."""
        hook = self.adapter.webhook
        assert hook is not None
        app = web.Application(middlewares=[problems])
        app.add_routes(HookRoutes([hook], self.gatehouse).routes())
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            url = f"http://127.0.0.1:{runner.addresses[0][1]}/hooks/{hook.path}"
            push = self.slack.use_http(url, now=lambda: self.clock.now_ms() / 1000)
            yield url
            self.slack.push = None
            await push.close()
        finally:
            await runner.cleanup()

    @asynccontextmanager
    async def listening_again(self) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self.adapter.listen(self.gatehouse), name="listen")
            try:
                yield
            finally:
                task.cancel()

    async def send(self, message: OutboundMessage) -> Receipt:
        """An attempt that goes on after what earlier attempts of this test have posted."""
        posted = tuple(self.progress.ids)
        receipt = await self.adapter.send(message, posted=posted, on_posted=self.progress)
        # The engine keeps the receipt as it keeps progress.
        self.progress.ids = list(receipt.message_ids)
        return receipt

    async def outage(self) -> None:
        """Slack is down, also for HTTP connections that were kept alive."""
        await self.slack.down()
        runner = self.slack._runner
        assert runner is not None
        assert runner.server is not None
        for connection in runner.server.connections:
            connection.force_close()

    def direct(self, user: str) -> str:
        return self.slack.workspace.im(user)


def settings_for(slack: SlackServer, **changes: object) -> SlackSettings:
    given: dict[str, object] = {
        "bot_token": SecretStr(slack.install.bot_token),
        "app_token": SecretStr(slack.install.app_token),
        "api_url": slack.api_url,
        "request_timeout_s": 5.0,
        **changes,
    }
    return SlackSettings.model_validate(given)


def settings_by_http(slack: SlackServer, **changes: object) -> SlackSettings:
    """The same application with Slack calling."""
    secret = SecretStr(slack.install.signing_secret)
    return settings_for(slack, app_token=None, signing_secret=secret, **changes)


@asynccontextmanager
async def desk_at(slack: SlackServer, **changes: object) -> AsyncIterator[Desk]:
    desk = Desk(slack, settings_for(slack, **changes))
    try:
        yield desk
    finally:
        await desk.adapter.close()


def installed(experience: Experience = "assistant") -> Install:
    """The application as our own manifest installs it: no scope and no event more."""
    application = yaml.safe_load(manifest(view=experience))
    return install_of(application, is_new=experience == "agent")


in_every_view = pytest.mark.parametrize(
    "slack", ["agent", "assistant", "none"], indirect=True, ids=lambda view: f"view={view}"
)
"""Runs a test over an application of either view and of neither: where direct chats matter."""


def installed_as(view: str) -> Install:
    """As `installed`; with "none", an application from before either view."""
    if view != "none":
        return installed("agent" if view == "agent" else "assistant")
    old = installed("assistant")
    events = frozenset(name for name in old.events if not name.startswith("assistant_"))
    return replace(old, events=events, experience=None)


@pytest_asyncio.fixture
async def slack(request: pytest.FixtureRequest) -> AsyncIterator[SlackServer]:
    view = getattr(request, "param", "assistant")
    async with SlackServer(installed_as(view)).running() as server:
        yield server


@pytest_asyncio.fixture
async def desk(slack: SlackServer) -> AsyncIterator[Desk]:
    async with desk_at(slack) as made:
        yield made


def reply(
    *texts: str,
    chat: str = GENERAL,
    thread: str | None = None,
    kind: ChatKind = "channel",
    outbox_id: str = "out_1",
) -> OutboundMessage:
    return OutboundMessage(
        outbox_id=outbox_id,
        target=ChatAddress(
            channel="slack", account="T0TEAM", chat_id=chat, chat_kind=kind, thread_id=thread
        ),
        parts=tuple(TextPart(markdown=text) for text in texts),
        final=True,
    )


def shown(posts: list[Message]) -> list[str]:
    """What people read, post by post."""
    return [post.visible_text for post in posts]


@dataclass(frozen=True, slots=True)
class Door:
    """A desk that hears Slack; `by` is the way in."""

    desk: Desk
    by: str


@asynccontextmanager
async def doors(slack: SlackServer, by: str, **changes: object) -> AsyncIterator[Door]:
    """A desk that hears Slack over a socket or by HTTP, while the block runs."""
    settings = settings_for if by == "socket" else settings_by_http
    desk = Desk(slack, settings(slack, **changes))
    try:
        async with desk.listening() if by == "socket" else desk.called():
            yield Door(desk, by)
    finally:
        await desk.adapter.close()
