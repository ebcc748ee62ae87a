"""An engine on a real database with an in-memory chat and a scripted model."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import wraps
from itertools import count
from pathlib import Path
from typing import Any, TypedDict, Unpack

from adapters.system.clock import SystemClock
from gateway.features import features_of
from runtime.agent.sending import sending_by_rows
from runtime.bus.memory import MemoryBus
from runtime.domain.messages import Authorship, ButtonPress, ChatKind, InboundMessage
from runtime.domain.people import Sender
from runtime.engine.engine import Engine, EngineParts, EngineSettings
from runtime.engine.feature import (
    Feature,
    ToolServices,
    background_of,
    kinds_of,
    mail_of,
    nothing_begun,
    tools_of,
)
from runtime.features.schedules.retry import RetryPolicy
from runtime.features.subagents.settings import ChildSettings
from runtime.intake.access import ChannelAccess
from runtime.intake.assets import Assets
from runtime.ports.clock import Clock
from runtime.ports.gatehouse import Accepted, Pressed
from runtime.ports.model import Models
from runtime.ports.sandbox import Sandbox
from runtime.ports.tracing import NO_TRACER, Tracer
from runtime.ports.transcription import Transcriber
from runtime.sessions.unit import Units
from runtime.store import Database, Point, no_point, open_database
from runtime.tools.base import AnyTool
from runtime.tools.builtin import builtin_tools
from runtime.tools.builtin.shell import ExecSettings
from runtime.tools.outgoing_files import SendLimits
from runtime.tools.registry import Registry
from runtime.workspace.snapshot import Workspace
from tests.fakes.chat import FakeChat
from tests.fakes.clock import FakeClock, settle
from tests.fakes.fetch import FakeFetch
from tests.fakes.sandbox import FakeSandbox
from tests.support.templates import make_workspace

OWNER = "U-owner"
OPEN = ChannelAccess(dm_policy="pairing", group_policy="open", owners=frozenset({OWNER}))


class Details(TypedDict, total=False):
    """What few messages need: the card or message replied to, its thread, a mention or none, a
    bot's hand, the platform's own time, the sender's zone."""

    reply_to: str | None
    thread: str | None
    mentions: bool
    is_bot: bool
    sent_ms: int
    timezone: str
    authorship: Authorship


@dataclass
class World:
    """A running engine, the people who talk to it, and what they see."""

    engine: Engine
    chat: FakeChat
    database: Database
    workspace: Path
    ids: "count[int]"

    async def says(
        self,
        text: str,
        *,
        user: str = OWNER,
        chat_id: str | None = None,
        kind: ChatKind = "direct",
        message_id: str | None = None,
        **more: Unpack[Details],
    ) -> Accepted:
        """One message of a person, accepted."""
        message = InboundMessage(
            channel=self.chat.channel,
            account=self.chat.account,
            chat_id=chat_id or f"D-{user}",
            chat_kind=kind,
            thread_id=more.get("thread"),
            message_id=message_id or f"m{next(self.ids)}",
            sender=Sender(
                id=user,
                name=user.removeprefix("U-"),
                is_bot=more.get("is_bot", False),
                timezone=more.get("timezone", ""),
            ),
            text=text,
            mentions_bot=more.get("mentions", True) and kind != "direct",
            reply_to=more.get("reply_to"),
            received_at_ms=self.engine.parts.clock.now_ms(),
            sent_at_ms=more.get("sent_ms"),
            authorship=more.get("authorship", "own"),
            command_prefix=self.chat.capabilities.command_prefix,
        )
        return await self.engine.intake.accept(message)

    async def presses(self, open_call_id: str, choice: str, *, user: str = OWNER) -> Pressed:
        """A person presses a button of a card."""
        press = ButtonPress(
            channel=self.chat.channel,
            account=self.chat.account,
            chat_id=f"D-{user}",
            sender=Sender(id=user, name=user.removeprefix("U-")),
            open_call_id=open_call_id,
            choice=choice,
            press_id=f"p{next(self.ids)}",
            received_at_ms=self.engine.parts.clock.now_ms(),
        )
        return await self.engine.intake.press(press)

    async def sees(self, amount: int, chat_id: str | None = None) -> list[str]:
        """The texts of a chat once there are `amount` of them."""
        await self.chat.until(lambda: len(self.chat.texts(chat_id)) >= amount)
        return self.chat.texts(chat_id)


@dataclass(frozen=True)
class Setup:
    """What a world is made of; a test replaces what it is about."""

    url: str
    workspace: Path
    models: Models
    settings: EngineSettings
    clock: Clock
    tools: Sequence[AnyTool] = ()
    point: Point = no_point
    alone: bool = True
    redact: Callable[[str], str] = str
    begun: Callable[[str], int] = nothing_begun
    tracer: Tracer = NO_TRACER
    sends: SendLimits = field(default_factory=SendLimits)
    transcriber: Transcriber | None = None
    sandbox: Sandbox | None = None
    fetch: FakeFetch = field(default_factory=FakeFetch)
    children: ChildSettings = field(default_factory=ChildSettings)
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    bare: bool = False
    """Whether there is the message path alone, without a feature."""
    more: tuple[Feature, ...] = ()
    """Features of the test, behind the others."""

    @property
    def features(self) -> tuple[Feature, ...]:
        return (*(() if self.bare else features_of(self.children, self.retry)), *self.more)


def setup_at(path: Path, url: str, models: Models, **changes: object) -> Setup:
    """A setup with the defaults of the tests: the owner is known, groups are open."""
    settings = EngineSettings()
    intake = replace(settings.intake, access={"test": OPEN}, queue_mode="followup")
    base = Setup(url, path / "workspace", models, replace(settings, intake=intake), SystemClock())
    return replace(base, **changes)


class Drain:
    """What a `FakeClock` asks: waits until everything that waits to be written or read has been,
    and what came of it, and says whether there was anything."""

    def __init__(self, database: Database) -> None:
        self._open = 0
        self._none_open = asyncio.Event()
        setattr(database, "write", self._counted(database.write))  # noqa: B010 - of one object
        setattr(database, "read", self._counted(database.read))  # noqa: B010 - of one object

    async def __call__(self) -> bool:
        waited = False
        while self._open:
            waited = True
            self._none_open.clear()
            await self._none_open.wait()
            await settle()
        return waited

    def _counted(self, unit: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        @wraps(unit)
        async def counted(*arguments: Any, **named: Any) -> Any:
            self._open += 1
            try:
                return await unit(*arguments, **named)
            finally:
                self._open -= 1
                if not self._open:
                    self._none_open.set()

        return counted


@asynccontextmanager
async def writes(database: Database) -> AsyncIterator[asyncio.Event]:
    """Set whenever something was written through `database`: whoever waits for rows looks then."""
    write, news = database.write, asyncio.Event()

    @wraps(write)
    async def told(*arguments: Any, **named: Any) -> Any:
        try:
            return await write(*arguments, **named)
        finally:
            news.set()

    setattr(database, "write", told)  # noqa: B010 - of one object
    try:
        yield news
    finally:
        setattr(database, "write", write)  # noqa: B010 - of one object


def engine_on(setup: Setup, database: Database, workspace: Workspace, chat: FakeChat) -> Engine:
    """An engine that is not started yet, on a bus of its own."""
    bus, features = MemoryBus(), setup.features
    making = ToolServices(
        Units(database, bus, kinds_of(features)),
        setup.clock,
        setup.settings.agent,
        workspace.agents,
    )
    tools = setup.tools or builtin_tools(
        sandbox=setup.sandbox or FakeSandbox(setup.clock),
        fetch=setup.fetch,
        skills=workspace.skills,
        clock=setup.clock,
        commands=ExecSettings(background=background_of(features)),
        sending=replace(
            sending_by_rows(
                database,
                replace(setup.sends, channels={chat.channel: chat.capabilities}),
                redact=setup.redact,
            ),
            mail=mail_of(features),
        ),
        of_features=tools_of(features, making),
    )
    making.made.extend(tools)
    parts = EngineParts(
        database=database,
        bus=bus,
        clock=setup.clock,
        models=setup.models,
        registry=Registry(tools),
        workspace=workspace,
        adapters=[chat],
        alone=setup.alone,
        redact=setup.redact,
        begun=setup.begun,
        tracer=setup.tracer,
        point=setup.point,
        transcriber=setup.transcriber,
        sandbox=setup.sandbox,
        features=features,
    )
    return Engine(parts, setup.settings)


@asynccontextmanager
async def world(setup: Setup, chat: FakeChat | None = None) -> AsyncIterator[World]:
    """A running engine; leaving it is a crash without a goodbye: everything is cancelled."""
    chat = chat or FakeChat()
    make_workspace(setup.workspace)
    workspace = Workspace(setup.workspace)
    clock = setup.clock
    database = open_database(setup.url, clock=clock, points=setup.point)
    await database.start()
    if isinstance(clock, FakeClock):
        clock.drain = Drain(database)
    engine = engine_on(setup, database, workspace, chat)
    task = asyncio.create_task(engine.run(), name="engine")
    try:
        await asyncio.wait(
            [task, asyncio.create_task(chat.listening.wait(), name="listening")],
            return_when=asyncio.FIRST_COMPLETED,
            timeout=20,
        )
        yield World(engine, chat, database, setup.workspace, count(1))
    finally:
        task.cancel()
        await asyncio.wait([task])
        await database.close()


def assets_of(at: World) -> Assets:
    """The uploads of a gateway."""
    parts = at.engine.parts
    return Assets(at.engine.units, parts.clock, lambda: parts.workspace.root)
