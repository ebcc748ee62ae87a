"""An engine that is counted, with a chat in memory, and what a scrape of it says."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

from aiohttp import web
from prometheus_client.parser import text_string_to_metric_families

from adapters.system.clock import SystemClock
from gateway.http.engine_metrics import EngineMetrics
from gateway.http.metrics import Metrics
from gateway.http.services import AdapterView, HttpServices, HttpSettings
from runtime.bus.memory import MemoryBus
from runtime.domain.messages import InboundMessage
from runtime.domain.people import Sender
from runtime.engine.engine import Engine, EngineParts, EngineSettings
from runtime.intake.access import ChannelAccess
from runtime.intake.control import Control, ControlServices, ControlSettings
from runtime.intake.logins import Logins
from runtime.ports.gatehouse import Accepted
from runtime.ports.model import Model
from runtime.sessions.unit import Units
from runtime.store import open_database
from runtime.store.observed_database import ObservedDatabase, count_commits
from runtime.tools.builtin import builtin_tools
from runtime.tools.builtin.shell import ExecSettings
from runtime.tools.registry import Registry
from runtime.views.reader import Views
from runtime.workspace.scaffold import find_template, scaffold
from runtime.workspace.snapshot import Workspace
from tests.fakes.chat import FakeChat
from tests.fakes.fetch import FakeFetch
from tests.fakes.model import ScriptedModels
from tests.fakes.sandbox import FakeSandbox
from tests.support.kinds import KINDS
from tests.support.templates import make_database

OPEN = ChannelAccess(owners=frozenset({"U-owner"}))
TOKEN = "admin-test-token"
Numbers = dict[tuple[str, tuple[tuple[str, str], ...]], float]


@dataclass
class Counted:
    """A running engine, the chat of its owner, and its metrics."""

    engine: Engine
    chat: FakeChat
    database: ObservedDatabase
    services: HttpServices
    metrics: Metrics
    ids: "count[int]" = field(default_factory=lambda: count(1))

    async def says(self, text: str, *, message_id: str | None = None) -> Accepted:
        """One message of the owner."""
        return await self.engine.intake.accept(
            InboundMessage(
                channel="test",
                account="A1",
                chat_id="D1",
                message_id=message_id or f"m{next(self.ids)}",
                sender=Sender(id="U-owner", name="Ada"),
                text=text,
                received_at_ms=1,
            )
        )

    async def sees(self, amount: int) -> None:
        """Return once the chat has `amount` posts and nothing is on its way any more."""
        await self.chat.until(lambda: len(self.chat.sent) >= amount)
        while (await self.services.views.status()).outbox or self.database.waiting:
            await self.database.read(lambda conn: None)

    async def scrape(self) -> "Scrape":
        """What Prometheus would be told now."""
        response = await self.metrics.scrape(None)
        assert isinstance(response, web.Response)
        assert isinstance(response.body, bytes)
        return Scrape(response.body.decode())


class Scrape:
    """Samples by name and labels, read by Prometheus' own parser."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.types: dict[str, str] = {}
        self.values: Numbers = {}
        for family in text_string_to_metric_families(text):
            self.types[family.name] = family.type
            for sample in family.samples:
                self.values[sample.name, tuple(sorted(sample.labels.items()))] = sample.value

    def of(self, name: str, /, **labels: str) -> float | None:
        """The value of one sample; None where there is no such sample."""
        return self.values.get((f"gatehouse_{name}", tuple(sorted(labels.items()))))

    @property
    def names(self) -> set[str]:
        """The names of all samples."""
        return {name for name, _ in self.values}


@asynccontextmanager
async def counted(path: Path, model: Model) -> AsyncIterator[Counted]:
    """A counted engine on a SQLite file under `path`; everything is cancelled at the end."""
    url, clock, metrics = f"sqlite:///{path}/gatehouse.db", SystemClock(), EngineMetrics()
    await make_database(url)
    points = count_commits(metrics, grouped=True)
    database = ObservedDatabase(open_database(url, clock=clock, points=points), metrics, clock)
    await database.start()
    scaffold(path / "workspace", find_template())
    workspace, chat, bus = Workspace(path / "workspace"), FakeChat(), MemoryBus()
    tools = builtin_tools(
        sandbox=FakeSandbox(clock),
        fetch=FakeFetch(),
        skills=workspace.skills,
        clock=clock,
        commands=ExecSettings(),
    )
    settings = EngineSettings()
    engine = Engine(
        EngineParts(
            database=database,
            bus=bus,
            clock=clock,
            models=ScriptedModels(model),
            registry=Registry(tools),
            workspace=workspace,
            adapters=[chat],
            observer=metrics,
        ),
        replace(settings, intake=replace(settings.intake, access={"test": OPEN}, debounce_ms=0)),
    )
    control = ControlServices(
        Units(database, bus, KINDS), clock, engine.intake, lambda: ControlSettings(workspace=path)
    )
    services = HttpServices(
        settings=HttpSettings(admin_tokens=lambda: (TOKEN,), port=0),
        views=Views(database),
        control=Control(control),
        logins=Logins(database, clock),
        bus=bus,
        clock=clock,
        render=lambda text: [text],
        render_growing=lambda text: [text],
        adapters=lambda: [AdapterView(channel="test", account="A1", connected=True)],
        tasks=lambda: engine.supervisor.health,
        turns_running=lambda: engine.turns.running,
        checks={"engine": lambda: engine.ready},
        version="1.2.3",
        metrics=metrics,
        worker=engine.worker,
        turns_limit=settings.turns,
        writes_waiting=lambda: database.waiting,
        sandbox="landlock",
    )
    task = asyncio.create_task(engine.run(), name="engine")
    try:
        await chat.listening.wait()
        yield Counted(engine, chat, database, services, Metrics(services))
    finally:
        task.cancel()
        await asyncio.wait([task])
        await database.close()
