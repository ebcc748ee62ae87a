"""A gateway behind its real HTTP server: real sockets, a real database, a scripted model."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

import aiohttp
from aiohttp import web

from adapters.rendering import render_blocks, render_growing
from adapters.system.clock import SystemClock
from adapters.web.adapter import CHANNELS, WebAdapter
from gateway.config_model import Policy
from gateway.explain import Explainer
from gateway.features import features_of
from gateway.http.app import build_app
from gateway.http.server import serve
from gateway.http.services import AdapterView, HttpServices, HttpSettings
from gateway.runtime_view import RuntimeView
from runtime.agent.sending import sending_by_rows
from runtime.bus.memory import MemoryBus
from runtime.domain.errors import Unavailable
from runtime.engine.engine import Engine, EngineParts, EngineSettings
from runtime.engine.feature import ToolServices, background_of, mail_of, tools_of
from runtime.intake.control import Control, ControlServices, ControlSettings
from runtime.intake.logins import Logins
from runtime.intake.route_policies import RouteRules
from runtime.ports.bus import Bus
from runtime.ports.clock import Clock
from runtime.ports.model import Models
from runtime.ports.sandbox import Sandbox
from runtime.sessions.bounds import PolicySettings
from runtime.sessions.unit import Units
from runtime.store import Connection, Database, open_database
from runtime.tools.base import AnyTool
from runtime.tools.builtin import builtin_tools
from runtime.tools.builtin.shell import ExecSettings
from runtime.tools.outgoing_files import SendLimits
from runtime.tools.registry import Registry
from runtime.views.reader import Views
from runtime.workspace.snapshot import Workspace
from tests.documents.event_table import documented
from tests.fakes.fetch import FakeFetch
from tests.fakes.sandbox import FakeSandbox, FakeStdio, Program
from tests.scenario.contract_check import contract_check
from tests.support.kinds import KINDS
from tests.support.postgres import postgres_server
from tests.support.templates import make_database, make_workspace, postgres_database

T = TypeVar("T")
Work = Callable[[Connection], T]
ADMIN = "admin-test-token"
READER = "read-test-token"


async def prints_files(stdio: FakeStdio) -> int:
    """The program behind ``ls``."""
    await stdio.write(b"AGENTS.md\nmemory\nskills\n")
    return 0


async def fails(stdio: FakeStdio) -> int:
    """The program behind ``nope``."""
    await stdio.write(b"nope: there is no such thing\n")
    return 2


@dataclass
class Plan:
    """What a site is made of; a test replaces what it is about. Without a `database` of its own it
    is a file in `path`."""

    path: Path
    models: Models
    control: dict[str, object] = field(default_factory=dict)
    http: dict[str, object] = field(default_factory=dict)
    services: dict[str, object] = field(default_factory=dict)
    clock: Clock = field(default_factory=SystemClock)
    http_clock: Clock | None = None
    bus: Bus = field(default_factory=MemoryBus)
    tools: Sequence[AnyTool] = ()
    sandbox: Sandbox | None = None
    database: str = ""
    policy: PolicySettings = field(default_factory=PolicySettings)
    prepare: Callable[[web.Application], None] = lambda app: None
    programs: dict[str, Program] = field(
        default_factory=lambda: {"ls": prints_files, "nope": fails}
    )

    @property
    def workspace(self) -> Path:
        return self.path / "workspace"


@dataclass
class Site:
    """A running gateway and a client that carries no token."""

    url: str
    port: int
    engine: Engine
    database: Database
    bus: Bus
    services: HttpServices
    workspace: Path
    client: aiohttp.ClientSession
    admin_tokens: list[str]

    async def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        token: str | None = ADMIN,
        headers: dict[str, str] | None = None,
        data: bytes | None = None,
    ) -> tuple[int, dict[str, object]]:
        """(status, JSON) of one request, whose body is JSON, or `data` as it is."""
        sent = dict(headers or {})
        if token is not None:
            sent["Authorization"] = f"Bearer {token}"
        async with self.client.request(
            method, f"{self.url}{path}", json=body, data=data, headers=sent
        ) as response:
            text = await response.text()
            return response.status, json.loads(text) if text.startswith("{") else {"text": text}

    async def session(self, **asked: object) -> str:
        """A fresh session's id."""
        status, made = await self.ask("POST", "/v1/sessions", {"channel": "web", **asked})
        assert status in (200, 201), made
        return str(made["id"])

    async def says(self, session_id: str, text: str, *, key: str | None = None) -> str:
        """The run of one message."""
        headers = {} if key is None else {"Idempotency-Key": key}
        status, done = await self.ask(
            "POST", f"/v1/sessions/{session_id}/runs", {"content": text}, headers=headers
        )
        assert status == 202, done
        return str(done["run_id"])

    async def state(self, run_id: str, *wanted: str) -> dict[str, object]:
        """The run, once it is in one of the wanted states."""
        async with self.feed(f"run_id={run_id}&last_event_id=0") as feed:
            while True:
                _, run = await self.ask("GET", f"/v1/runs/{run_id}")
                if run["state"] in wanted:
                    return run
                await feed.next()

    async def messages(self, session_id: str, **query: str) -> list[dict[str, object]]:
        """The newest page of a conversation."""
        text = "&".join(f"{name}={value}" for name, value in {"limit": "200", **query}.items())
        status, page = await self.ask("GET", f"/v1/sessions/{session_id}/messages?{text}")
        assert status == 200, page
        return list(page["items"])

    @asynccontextmanager
    async def feed(
        self, query: str = "", *, token: str | None = ADMIN, last: str | None = None
    ) -> "AsyncIterator[Feed]":
        """The event stream, read by a program."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        if last is not None:
            headers["Last-Event-ID"] = last
        async with self.client.get(f"{self.url}/v1/events?{query}", headers=headers) as response:
            assert response.status == 200, await response.text()
            yield Feed(response)


@dataclass
class Sent:
    """One event of the stream as it stood on the wire; a comment has the kind ``:``."""

    kind: str
    id: str
    text: str

    @property
    def data(self) -> dict[str, object]:
        return json.loads(self.text)


class Feed:
    """Parses server-sent events (WHATWG HTML, section 9.2)."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._lines = response.content
        self.seen: list[Sent] = []

    async def next(self) -> Sent:
        """The next event or comment."""
        kind, id_, data = "message", "", list[str]()
        while True:
            raw = await self._lines.readline()
            if not raw:
                raise EOFError("the stream ended")
            line = raw.decode().rstrip("\n")
            name, _, value = line.partition(": ")
            if line == "" and (data or kind == ":"):
                sent = Sent(kind, id_, "\n".join(data))
                self.seen.append(sent)
                return sent
            if line.startswith(":"):
                kind = ":"
            elif name == "event":
                kind = value
            elif name == "id":
                id_ = value
            elif name == "data":
                data.append(value)

    async def until(self, *kinds: str) -> Sent:
        """The first event of one of these kinds; what came before is in `seen`."""
        while True:
            sent = await self.next()
            if sent.kind in kinds:
                return sent

    async def text(self, end: str) -> str:
        """The streamed text, with what was seen before, once it ends in `end`."""
        while not (shown := self.shown()).endswith(end):
            await self.until("delta")
        return shown

    def shown(self) -> str:
        """The text that a page would show now. Fails the test where it has a hole."""
        text = ""
        for sent in self.seen:
            if sent.kind == "delta":
                offset = int(sent.data["offset"])
                assert offset in (0, len(text)), "a hole in the text"
                text = text[:offset] + str(sent.data["text"])
        return text


@asynccontextmanager
async def database_of(dialect: str) -> AsyncIterator[str]:
    """What a plan names as its database: one with the schema, or "" for its own file."""
    if dialect == "sqlite":
        yield ""
        return
    server = postgres_server()
    async with postgres_database(server) as name:
        yield server.url(name)


@asynccontextmanager
async def site(plan: Plan) -> AsyncIterator[Site]:
    """A running gateway; leaving it ends everything at once, like a crash."""
    url = plan.database or f"sqlite:///{plan.path}/gatehouse.db"
    if not plan.database:
        await make_database(url)
    make_workspace(plan.workspace)
    database = open_database(url, clock=plan.clock)
    await database.start()
    engine = _engine(plan, database)
    task = asyncio.create_task(engine.run(), name="engine")
    tokens = list(plan.http.pop("tokens", [ADMIN]))
    services = _services(plan, engine, database, tokens)
    app = build_app(services)
    plan.prepare(app)
    try:
        async with (
            serve(app, services.settings) as port,
            aiohttp.ClientSession(middlewares=[contract_check(app)]) as client,
        ):
            await _up(engine, database)
            yield Site(
                url=f"http://127.0.0.1:{port}",
                port=port,
                engine=engine,
                database=database,
                bus=plan.bus,
                services=services,
                workspace=plan.workspace,
                client=client,
                admin_tokens=tokens,
            )
            # A test may have taken the database away.
            with suppress(Unavailable):
                await _events_are_documented(database)
    finally:
        task.cancel()
        await asyncio.wait([task])
        await database.close()


async def _events_are_documented(database: Database) -> None:
    """Hold what was recorded to the table of `docs/api.md`, by which programs read it (API-4)."""
    query = "SELECT DISTINCT kind, data FROM events"
    rows = await database.read(lambda conn: conn.exec_driver_sql(query).all())
    outside = {(kind, key) for kind, data in rows for key in json.loads(data)} - {
        (kind, key) for kind, keys in documented().items() for key in keys
    }
    assert not outside, f"docs/api.md has no such keys: {sorted(outside)}"


async def _up(engine: Engine, database: Database) -> None:
    """Return once the engine may work and every channel is connected."""
    while not engine.ready or not all(one.status().connected for one in engine.accounts):
        # A read without a statement asks a PostgreSQL nothing, and lets nobody else go on.
        await database.read(lambda conn: conn.exec_driver_sql("SELECT 1"))


def _engine(plan: Plan, database: Database) -> Engine:
    workspace, settings = Workspace(plan.workspace), EngineSettings(policy=plan.policy)
    units = Units(database, plan.bus, KINDS)
    making = ToolServices(units, plan.clock, settings.agent, workspace.agents)
    features = features_of()
    sandbox = plan.sandbox or FakeSandbox(plan.clock, plan.programs)
    tools = plan.tools or builtin_tools(
        sandbox=sandbox,
        fetch=FakeFetch(),
        skills=workspace.skills,
        clock=plan.clock,
        commands=ExecSettings(background=background_of(features)),
        sending=replace(
            sending_by_rows(database, SendLimits()),
            mail=mail_of(features),
        ),
        of_features=tools_of(features, making),
    )
    making.made.extend(tools)
    return Engine(
        EngineParts(
            database=database,
            bus=plan.bus,
            clock=plan.clock,
            models=plan.models,
            registry=Registry(tools),
            workspace=workspace,
            adapters=[WebAdapter(plan.bus, channel=channel) for channel in CHANNELS],
            sandbox=sandbox,
            features=features,
        ),
        replace(settings, intake=replace(settings.intake, queue_mode="followup")),
    )


def _services(plan: Plan, engine: Engine, database: Database, tokens: list[str]) -> HttpServices:
    settings = {"port": 0, "read_tokens": lambda: [READER], **plan.http}
    known = tuple(dict.fromkeys((plan.models.default, *plan.models.names())))
    control = ControlSettings(workspace=plan.workspace, queue_mode="followup", models=known)
    clock = plan.http_clock or plan.clock
    views = Views(database, KINDS)
    services = HttpServices(
        settings=HttpSettings(admin_tokens=lambda: tuple(tokens), **settings),
        views=views,
        control=Control(
            ControlServices(
                units=Units(database, plan.bus, KINDS),
                clock=plan.clock,
                gatehouse=engine.intake,
                settings=lambda: replace(control, **plan.control),
            )
        ),
        logins=Logins(database, clock),
        bus=plan.bus,
        clock=clock,
        render=render_blocks,
        render_growing=render_growing,
        adapters=lambda: [_adapter_view(account) for account in engine.accounts],
        turns_running=lambda: engine.turns.running,
        checks={"engine": lambda: engine.ready},
        runtime=lambda: RuntimeView(policy=Policy(mode=control.permission_mode)),
        workspace=plan.workspace,
        route_rules=RouteRules(plan.models, engine.settings.agent.max_output_tokens),
        explainer=Explainer(
            views,
            Workspace(plan.workspace),
            engine.parts.registry,
            plan.clock,
            engine.settings.policy,
            engine.settings.agent,
            engine.blocks,
        ),
        version="test",
    )
    return replace(services, **plan.services)


def _adapter_view(account: object) -> AdapterView:
    status = account.status()
    adapter = account.adapter
    return AdapterView(
        channel=adapter.channel,
        account=adapter.account,
        connected=status.connected,
        detail=status.detail,
        kind=status.kind,
    )
