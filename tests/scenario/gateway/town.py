"""The whole gateway as people meet it: the real program between the wire servers and a model.

Slack, Telegram and the model are servers in the test's own process on real sockets; the gateway is
`gatehouse serve` in a process of its own that a test may kill and start again on the same home.
"""

import asyncio
import itertools
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import yaml

from adapters.slack.manifest import Experience, manifest
from adapters.system.clock import SystemClock
from gateway.cli.client import GatewayClient
from tests.scenario.gateway.gates import CommandGate
from tests.scenario.gateway.page import Feed
from tests.scenario.process.program import ADMIN, Place, Program, gateway
from tests.wire.openai import ModelServer
from tests.wire.slack import ANNA, Install, Said, SlackServer
from tests.wire.slack.manifests import install_of
from tests.wire.telegram import Chat, Message, TelegramServer, User

SETTINGS = """
[queue]
mode = "followup"
[tools]
sandbox = "none"
"""
ALLOWED = '[policy]\nallow = ["exec", "write_file", "edit_file"]\n'
"""Commands and files without a question, for tests that are not about questions."""


@dataclass
class Serving:
    """A gateway that runs: its process, the feed of its events and a client for the page."""

    program: Program
    client: GatewayClient
    feed: Feed

    async def killed(self) -> None:
        """SIGKILL, and gone."""
        self.program.signal(signal.SIGKILL)
        assert await self.program.ended() == -signal.SIGKILL

    async def stops(self) -> int:
        """SIGTERM, once it was heard; the exit code is still to come."""
        self.program.signal(signal.SIGTERM)
        await self.program.says('"stopping"')
        return self.program.process.pid


@dataclass
class Town:
    """The servers, the people, and the machine that the gateway runs on."""

    place: Place
    slack: SlackServer
    telegram: TelegramServer
    model: ModelServer
    commands: CommandGate
    ann: User = field(init=False)
    chat: Chat = field(init=False)

    def __post_init__(self) -> None:
        self.ann = self.telegram.world.user("Ann")
        self.chat = self.telegram.world.private(self.ann)
        self.place.variables |= {
            "SLACK_BOT_TOKEN": self.slack.install.bot_token,
            "SLACK_APP_TOKEN": self.slack.install.app_token,
            "SLACK_API_URL": self.slack.api_url,
            "TELEGRAM_BOT_TOKEN": self.telegram.token,
            "TELEGRAM_API_URL": self.telegram.url,
            "OPENAI_API_KEY": "sk-test-key",
            "OPENAI_BASE_URL": self.model.url,
            "GATEHOUSE_MODELS__DEFAULT": "openai:scripted",
        }
        self.configure()

    def configure(self, more: str = "") -> Path:
        """The configuration file: the owners, and whatever a test adds."""
        owners = f'[slack]\nowners = ["{ANNA}"]\n[telegram]\nowners = ["{self.ann.id}"]\n'
        return self.place.configure(owners + SETTINGS + more)

    @property
    def direct(self) -> str:
        """Anna's direct conversation with the bot in Slack."""
        return self.slack.workspace.im(ANNA)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[Serving]:
        """The gateway, once it says that it is ready; killed when the block ends before it does."""
        async with AsyncExitStack() as stack:
            program = await stack.enter_async_context(gateway(self.place))
            client = await stack.enter_async_context(GatewayClient(await program.url(), ADMIN))
            feed = Feed()
            reading = asyncio.create_task(feed.follow(client), name="feed")
            try:
                yield Serving(program, client, feed)
            finally:
                reading.cancel()
                await asyncio.wait([reading])
                # Captured, and so shown where a test fails.
                sys.stdout.write(f"{program.transcript}\n{feed.kinds()}\n")

    async def on_slack(self, text: str) -> Said:
        """Anna writes to the bot in Slack."""
        return await self.slack.user_says(self.direct, ANNA, text)

    def on_telegram(self, text: str) -> Message:
        """Ann writes to the bot in Telegram."""
        return self.telegram.user_says(self.chat, self.ann, text)

    def slack_texts(self) -> list[str]:
        """What Anna reads from the bot."""
        return [post.visible_text for post in self.slack.posts(self.direct)]

    def telegram_texts(self) -> list[str]:
        """What Ann reads from the bot."""
        return [post.text for post in self.telegram.from_bot(self.chat)]

    def rows(self, query: str) -> list[tuple[object, ...]]:
        """A look into the gateway's database from outside, at what is committed."""
        path = f"file:{self.place.home / 'gatehouse.db'}?mode=ro"
        with closing(sqlite3.connect(path, uri=True)) as database:
            return database.execute(query).fetchall()

    def lines(self, name: str) -> list[str]:
        """The lines of a file in the working folder; none where it does not exist."""
        path = self.place.workspace / "files" / name
        return path.read_text().splitlines() if path.exists() else []


@cache
def installed(experience: Experience = "assistant") -> Install:
    """The application as our own manifest installs it: no scope and no event more."""
    application = yaml.safe_load(manifest(view=experience))
    return install_of(application, is_new=experience == "agent")


@asynccontextmanager
async def town_at(path: Path) -> AsyncIterator[Town]:
    """A town with its servers running; fails at its end if the gateway broke a platform's rule."""
    clock = SystemClock()
    async with (
        # Slack's clock is the gateway's, as far as a lookup by time is concerned.
        SlackServer(installed(), now=lambda: clock.now_ms() / 1000).running() as slack,
        # Of today, so that nothing seems late, and never twice the same second.
        TelegramServer(now=itertools.count(clock.now_ms() / 1000).__next__) as telegram,
        ModelServer().running() as model,
        CommandGate().running() as commands,
    ):
        yield Town(Place(path), slack, telegram, model, commands)
        assert telegram.violations == []
