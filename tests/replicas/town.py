"""A deployment: several `gatehouse serve` on one PostgreSQL, between the wire servers and a model.

Each replica has a home of its own and shares the workspace, as on machines with a shared volume.
"""

import asyncio
import itertools
import re
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import asyncpg

from adapters.system.clock import SystemClock
from gateway.cli.client import GatewayClient
from tests.contract.store_support import PostgresServer
from tests.scenario.gateway.page import Feed
from tests.scenario.gateway.town import SETTINGS, installed
from tests.scenario.process.program import ADMIN, Place, Program, gateway
from tests.wire.openai import ModelServer, Prompt
from tests.wire.slack import ANNA, SlackServer
from tests.wire.telegram import Chat, TelegramServer, User

SHORT_LEASE_S = 6.0
"""Where a replica is lost: those that live must renew theirs also on a machine that is full to the
brim. Other tests keep the program's own lease, which outlasts any load."""
SLACK_PATIENCE_S = 3.0
"""After which Slack repeats an event that no socket acknowledged."""
LIMIT_S = 240.0
"""Against hanging alone. How fast others take over is proven in virtual time, by the scenarios."""
CLOCK = SystemClock()


@dataclass
class Replica:
    """One gateway of the deployment, a client for it, and the feed of events that it serves."""

    name: str
    worker: object
    program: Program
    client: GatewayClient
    feed: Feed

    async def killed(self) -> None:
        """SIGKILL, and gone."""
        self.program.signal(signal.SIGKILL)
        assert await self.program.ended() == -signal.SIGKILL

    def freeze(self) -> None:
        """SIGSTOP: it does nothing more, and none of its connections is closed."""
        self.program.signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """SIGCONT: it goes on as if no time had passed."""
        self.program.signal(signal.SIGCONT)


@dataclass
class Deployment:
    """The servers, the people and the database that the replicas share."""

    path: Path
    server: PostgresServer
    database: str
    eye: asyncpg.Connection
    slack: SlackServer
    telegram: TelegramServer
    model: ModelServer
    ann: User = field(init=False)
    chat: Chat = field(init=False)
    lease_s: float | None = None
    loaded: bool = True

    def __post_init__(self) -> None:
        self.ann = self.telegram.world.user("Ann")
        self.chat = self.telegram.world.private(self.ann)

    @property
    def direct(self) -> str:
        """Anna's direct conversation with the bot in Slack."""
        return self.slack.workspace.im(ANNA)

    def place(self, name: str, *, url: str | None = None, more: str = "") -> Place:
        """The machine of a replica; `url` is another way to the database."""
        path = self.path / name
        path.mkdir(exist_ok=True)
        place = Place(path, loaded=self.loaded)
        place.variables |= {
            "GATEHOUSE_DATABASE__URL": asyncpg_url(url or self.server.url(self.database)),
            "GATEHOUSE_WORKSPACE__PATH": str(self.path / "workspace"),
            "SLACK_BOT_TOKEN": self.slack.install.bot_token,
            "SLACK_APP_TOKEN": self.slack.install.app_token,
            "SLACK_API_URL": self.slack.api_url,
            "TELEGRAM_BOT_TOKEN": self.telegram.token,
            "TELEGRAM_API_URL": self.telegram.url,
            "OPENAI_API_KEY": "sk-test-key",
            "OPENAI_BASE_URL": self.model.url,
            "GATEHOUSE_MODELS__DEFAULT": "openai:scripted",
        }
        if self.lease_s is not None:
            place.variables["GATEHOUSE_WORKERS__LEASE_TTL_S"] = str(self.lease_s)
        owners = f'[slack]\nowners = ["{ANNA}"]\n[telegram]\nowners = ["{self.ann.id}"]\n'
        place.configure(owners + SETTINGS + more)
        return place

    @asynccontextmanager
    async def replica(
        self, name: str, *, url: str | None = None, more: str = ""
    ) -> AsyncIterator[Replica]:
        """One more gateway, once it says that it is ready; killed at the end of the block."""
        async with AsyncExitStack() as stack:
            place = self.place(name, url=url, more=more)
            others = await self.workers()
            program = await stack.enter_async_context(gateway(place))
            client = await stack.enter_async_context(GatewayClient(await program.url(), ADMIN))
            feed = Feed()
            reading = asyncio.create_task(feed.follow(client), name=f"feed {name}")
            try:
                (worker,) = await self.workers() - others
                yield Replica(name, worker, program, client, feed)
            finally:
                reading.cancel()
                await asyncio.wait([reading])
                # Captured, and so shown where a test fails.
                told = Counter(feed.kinds())
                sys.stdout.write(f"--- {name}\n{program.transcript}\n{told}\n")

    @asynccontextmanager
    async def replicas(self, *names: str, more: str = "") -> AsyncIterator[list[Replica]]:
        """Several, started beside each other on the empty database."""
        async with AsyncExitStack() as stack:
            # One after the other: a machine of two cores starts two no faster at once.
            yield [await stack.enter_async_context(self.replica(name, more=more)) for name in names]

    async def workers(self) -> set[object]:
        """Whoever holds, or once held, a process's lease."""
        query = "SELECT DISTINCT holder FROM leases WHERE name LIKE 'process:%'"
        if not await self.is_made():
            return set()
        return {row[0] for row in await self.rows(query)}

    async def is_made(self) -> bool:
        """Whether a replica has made the tables."""
        return bool((await self.rows("SELECT to_regclass('leases') IS NOT NULL"))[0][0])

    async def rows(self, query: str) -> list[tuple[object, ...]]:
        """A look into the shared database from outside."""
        return [tuple(row) for row in await self.eye.fetch(query)]

    async def tell(self) -> None:
        """What is left open and who holds what: captured, and so shown where a test fails."""
        if not await self.is_made():
            return
        for query in (
            "SELECT id, state, worker, fence, session_id FROM runs WHERE ended_ms IS NULL",
            "SELECT id, kind, state, channel, worker, fence, error FROM outbox "
            "WHERE state <> 'sent'",
            "SELECT name, holder, fence, expires_ms "
            "- (extract(epoch FROM clock_timestamp()) * 1000)::bigint FROM leases",
            "SELECT kind, count(*) FROM events GROUP BY kind",
        ):
            for row in await self.rows(query):
                sys.stdout.write(f"{row}\n")

    async def until(self, query: str, wanted: object) -> None:
        """Until a query gives one value; asked again after a moment of the real clock."""
        while (await self.rows(query))[0][0] != wanted:
            await CLOCK.sleep(0.05)

    async def settled(self, runs: int) -> None:
        """Until there were `runs` runs, each is over, and what each said is delivered."""
        open_ones = (
            "SELECT (SELECT count(*) FROM runs WHERE ended_ms IS NOT NULL) - (SELECT count(*) "
            "FROM outbox WHERE state IN ('pending', 'sending', 'streaming'))"
        )
        await self.until(open_ones, runs)

    async def held_by_another(self, lease: str, lost: object) -> None:
        """Until a lease is in the hands of a replica other than the lost one."""
        query = (
            f"SELECT count(*) > 0 FROM leases WHERE name LIKE '{lease}%' AND holder <> '{lost}' "
            "AND expires_ms > extract(epoch FROM clock_timestamp()) * 1000"
        )
        await self.until(query, True)

    def slack_texts(self) -> list[str]:
        """What Anna reads from the bot."""
        return [post.visible_text for post in self.slack.posts(self.direct)]

    def telegram_texts(self) -> list[str]:
        """What Ann reads from the bot."""
        return [post.text for post in self.telegram.from_bot(self.chat)]


_SAYING = re.compile(r"\b(?:hold|first|before|after|meanwhile|later|message|part)(?: \w+)?")


def words_of(prompt: Prompt) -> str:
    """What the person said, without the context that the gateway puts around it."""
    found = _SAYING.search(prompt.asked)
    return found.group() if found else prompt.asked


def asyncpg_url(url: str) -> str:
    """A database's URL as the configuration has it."""
    return url.replace("postgresql://", "postgresql+asyncpg://", 1)


@asynccontextmanager
async def looking(url: str) -> AsyncIterator[asyncpg.Connection]:
    """One connection for everything that a test asks the database."""
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


@asynccontextmanager
async def deployment_at(path: Path, server: PostgresServer) -> AsyncIterator[Deployment]:
    """The servers and a fresh database; fails at its end if a platform's rule was broken."""
    name = await server.create()
    try:
        async with (
            looking(server.url(name)) as eye,
            SlackServer(installed(), now=lambda: CLOCK.now_ms() / 1000).running() as slack,
            # Of today, so that nothing seems late, and never twice the same second.
            TelegramServer(now=itertools.count(CLOCK.now_ms() / 1000).__next__) as telegram,
            ModelServer().running() as model,
        ):
            slack.repeat_events(SLACK_PATIENCE_S)
            made = Deployment(path, server, name, eye, slack, telegram, model)
            try:
                yield made
            finally:
                await made.tell()
            assert telegram.violations == []
    finally:
        await server.drop(name)
