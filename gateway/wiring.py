"""The composition root: the only module that names concrete classes and joins them.

It decides nothing and starts nothing but what must be asked before the parts fit: which sandbox
holds, and which model is there.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from adapters.models.local_servers import discover, find_again
from adapters.models.model_lists import ProviderLists
from adapters.models.model_registry import Catalog
from adapters.models.price_list import price_of
from adapters.models.settings import ModelSettings
from adapters.platforms.proxies import proxy_names as proxy_names
from adapters.platforms.proxies import proxy_problems as proxy_problems
from adapters.platforms.proxies import unread_exceptions as unread_exceptions
from adapters.rendering import render_blocks, render_growing
from adapters.sandbox.power_drop import hide_from_others as hide_from_others
from adapters.sandbox.probe import choose
from adapters.system.clock import SystemClock
from adapters.system.fetch import GuardedFetch
from adapters.system.timers import SchedulerTimers
from adapters.web.adapter import CHANNELS
from gateway.addresses import Addresses
from gateway.config import Config, gateway_version, tokens_of
from gateway.config_engine import (
    Found,
    asset_limits,
    check_child_models,
    child_settings,
    engine_settings,
    exec_settings,
    mailbox_settings,
    retry_policy,
    send_limits,
)
from gateway.explain import Explainer
from gateway.features import features_of
from gateway.http.engine_metrics import EngineMetrics
from gateway.http.services import HttpServices, HttpSettings
from gateway.owner import Owner
from gateway.runtime_view import runtime_view
from gateway.tracing import open_tracer
from gateway.wiring_chats import (
    adapter_view,
    chat_adapters,
    fetching_adapters,
    local_adapters,
    transcriber_of,
)
from gateway.workspaces import canary_grants, open_workspace
from runtime.agent.sending import sending_by_rows
from runtime.bus.memory import MemoryBus
from runtime.delivery.platform_accounts import Account
from runtime.domain.errors import InvalidInput
from runtime.domain.schemas import Schema
from runtime.engine.engine import ALL_ROLES, Engine, EngineParts, Role
from runtime.engine.feature import (
    ToolServices,
    background_of,
    kinds_of,
    mail_of,
    nothing_begun,
    tools_of,
)
from runtime.features.subagents.files.worktrees import Worktrees
from runtime.intake import pairing
from runtime.intake.control import Control, ControlServices, ControlSettings
from runtime.intake.logins import Logins
from runtime.intake.route_policies import RouteRules
from runtime.ports.bus import Bus
from runtime.ports.chat import ChatAdapter
from runtime.ports.clock import Clock
from runtime.ports.metrics import Observer
from runtime.ports.sandbox import Sandbox
from runtime.process.supervisor import Supervisor
from runtime.sessions.unit import Units
from runtime.store import open_database
from runtime.store.checkpoints import make_room
from runtime.store.dialect import sqlite_path
from runtime.store.filelock import gateway_lock
from runtime.store.integrity import AT_START, examine
from runtime.store.migrate import MigrationReport, migrate, schema
from runtime.store.observed_database import ObservedDatabase, count_commits
from runtime.tools.builtin import builtin_tools
from runtime.tools.registry import Registry
from runtime.views.reader import Views

if TYPE_CHECKING:
    from runtime.store.backup.backup import DatabaseBackup as DatabaseBackup


class Current:
    """The settings that hold now; what may change without a restart is asked here each time."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self._tokens = tokens_of(config)
        self.draining = False
        self.addresses = Addresses()

    def change(self, config: Config) -> None:
        """Other settings from now on; reads the token files again."""
        self.config = config
        self._tokens = tokens_of(config)

    def admin_tokens(self) -> tuple[str, ...]:
        """The tokens that may do everything."""
        return self._tokens.admin

    def read_tokens(self) -> tuple[str, ...]:
        """The tokens that only read."""
        return self._tokens.read_only

    def control(self) -> ControlSettings:
        """What the API and the page are bound by."""
        settings = self.config.settings
        return ControlSettings(
            workspace=self.config.workspace,
            permission_mode=settings.policy.mode,
            mode=settings.sessions.mode,
            queue_mode=settings.queue.mode,
            assets=asset_limits(settings),
        )


@dataclass(frozen=True, slots=True)
class Assembly:
    """A gateway whose parts are joined and not started yet."""

    current: Current
    engine: Engine
    database: ObservedDatabase
    bus: Bus
    clock: Clock
    catalog: Catalog
    sandbox: Sandbox
    views: Views
    logins: Logins
    metrics: EngineMetrics
    end_traces: Callable[[], None]
    called: tuple[ChatAdapter, ...] = ()
    """Adapters that only answer what their platform sends here: other processes send for them."""

    def change(self, config: Config) -> None:
        """Take over what may change while the gateway runs (ACC-2, API-1)."""
        self.current.change(config)
        self.engine.change(engine_settings(config, Found(self.catalog, self.sandbox)))

    @property
    def platforms(self) -> list[Account]:
        """The accounts on chat platforms; the gateway's own pages are none."""
        return [one for one in self.engine.accounts if one.adapter.channel not in CHANNELS]

    @property
    def owner(self) -> Owner:
        """Whoever this home belongs to."""
        return Owner(self.current.config.home, self.logins)

    async def reload_tokens(self) -> None:
        """Hold to what the files of tokens say now."""
        self.current.change(self.current.config)
        await self.owner.accept()

    async def owner_code(self) -> str | None:
        """The one-time code at first start; None once it was made."""
        return await self.database.write(pairing.new_owner_code, name="owner-code")

    def http_services(self) -> HttpServices:
        """What the HTTP server is given."""
        engine, current, redact = self.engine, self.current, self.engine.parts.redact
        control = ControlServices(
            *(engine.units, self.clock, engine.intake, self._control_settings),
            model_lists=engine.parts.model_lists,
        )
        return HttpServices(
            settings=http_settings(current),
            views=self.views,
            control=Control(control),
            logins=self.logins,
            bus=self.bus,
            clock=self.clock,
            render=render_blocks,
            render_growing=render_growing,
            adapters=lambda: [adapter_view(one, redact) for one in engine.accounts],
            turns_running=lambda: engine.turns.running,
            checks={
                "bus": lambda: self.bus.connected,
                "engine": lambda: engine.ready,
                "adapters": lambda: _reached(self.platforms),
                "taking": lambda: not current.draining,
                "writes": lambda: not self.database.writable.trouble,
                "tasks": lambda: not engine.supervisor.trouble,
            },
            reasons={
                "database": lambda: redact(self.database.unreadable),
                "writes": lambda: redact(self.database.writable.trouble),
                "tasks": lambda: redact(engine.supervisor.trouble),
            },
            tasks=lambda: [
                replace(one, reason=redact(one.reason)) for one in engine.supervisor.health
            ],
            mailboxes=mailbox_settings(current.config.settings),
            children=child_settings(current.config.settings, self.catalog),
            worktrees=Worktrees(self.sandbox, engine.parts.workspace.root, self.clock),
            route_rules=RouteRules(self.catalog, engine.settings.agent.max_output_tokens),
            runtime=lambda: runtime_view(current.config, Found(self.catalog, self.sandbox)),
            explainer=self._explainer(),
            version=gateway_version(),
            metrics=self.metrics,
            worker=engine.worker,
            turns_limit=engine.settings.turns,
            writes_waiting=lambda: self.database.waiting,
            sandbox=self.sandbox.name,
            hooks=[one.webhook for one in self._adapters() if one.webhook is not None],
            gatehouse=engine.intake,
            workspace=engine.parts.workspace.root,
            addresses=lambda: current.addresses,
            reload_tokens=self.reload_tokens,
        )

    def _control_settings(self) -> ControlSettings:
        known = (self.catalog.default, *self.catalog.names())
        return replace(self.current.control(), models=tuple(dict.fromkeys(known)))

    def _adapters(self) -> list[ChatAdapter]:
        return [*(account.adapter for account in self.engine.accounts), *self.called]

    def _explainer(self) -> Explainer:
        parts, settings = self.engine.parts, self.engine.settings
        return Explainer(
            views=self.views,
            workspace=parts.workspace,
            registry=parts.registry,
            clock=self.clock,
            policy=settings.policy,
            agent=settings.agent,
            blocks=self.engine.blocks,
            roots=settings.roots,
        )

    async def close(self) -> None:
        """Give everything back; in order, because the last writes need the database."""
        for adapter in (*self.called, *self.engine.parts.fetchers):
            await adapter.close()
        if (transcriber := self.engine.parts.transcriber) is not None:
            await transcriber.close()
        await self.catalog.close()
        await self.bus.close()
        await self.database.close()
        await asyncio.to_thread(self.end_traces)


def http_settings(current: Current) -> HttpSettings:
    """Where the HTTP server listens and whom it lets in."""
    http = current.config.settings.http
    return HttpSettings(
        admin_tokens=current.admin_tokens,
        read_tokens=current.read_tokens,
        host=http.host,
        port=http.port,
        public_url=http.public_url or "",
        public_hosts=http.public_hosts,
        streams=http.streams,
        streams_per_credential=http.streams_per_credential,
    )


def system_clock() -> Clock:
    """The real clock."""
    return SystemClock()


async def prepare_database(config: Config) -> MigrationReport:
    """Bring the database to this version's schema. Raises `StoreUnavailable`, before anything is
    changed where a file of a usual size is damaged."""
    await asyncio.to_thread(examine, config.database_url, most_bytes=AT_START)
    return await migrate(config.database_url)


def examine_database(config: Config) -> None:
    """Look for damage in a SQLite file of any size; blocks. Raises `StoreCorrupt`."""
    examine(config.database_url)


@contextmanager
def alone(config: Config) -> Iterator[None]:
    """Hold a SQLite database for this process, and give back what its log has too much of a full
    disk. Raises `StoreUnavailable`, naming the other."""
    with gateway_lock(config.database_url):
        make_room(config.database_url)
        yield


def database_backup(config: Config, clock: Clock) -> "DatabaseBackup":
    """Copies of the database (OPS-6). Raises `InvalidInput` for a URL that names none."""
    # Lazy: no gateway makes a copy; the command does, and it needs both databases.
    from runtime.sessions.restored_rows import settle_restored
    from runtime.store.backup.backup import DatabaseBackup

    return DatabaseBackup(config.database_url, clock=clock, settle=settle_restored)


def database_file(config: Config) -> Path | None:
    """The file of a SQLite database; None for a server. Raises `InvalidInput`."""
    return sqlite_path(config.database_url)


async def schema_of(config: Config) -> Schema:
    """The database's schema, and what it means to this version. Creates nothing."""
    return await schema(config.database_url)


async def choose_sandbox(config: Config, clock: Clock) -> Sandbox:
    """What confines commands here, found by a canary with the grants of a real command."""
    grants = await asyncio.to_thread(canary_grants, config)
    return await choose(config.settings.tools.sandbox, clock=clock, grants=grants)


def check_proxies() -> None:
    """Raises `InvalidInput` for a proxy of the environment that no client could ask."""
    for problem in proxy_problems():
        raise InvalidInput(*problem.split(" ", 1))


async def find_models(config: Config) -> Catalog:
    """The models that can be used. Raises `InvalidInput`, naming the setting that is wrong."""
    settings = ModelSettings.model_validate(config.settings.models.model_dump())
    catalog = Catalog(await discover(settings), find=find_again)
    check_child_models(config.settings, catalog)
    return catalog


async def assemble(
    config: Config,
    *,
    clock: Clock,
    catalog: Catalog,
    sandbox: Sandbox,
    redact: Callable[[str], str] = str,
    begun: Callable[[str], int] = nothing_begun,
) -> Assembly:
    """Join the parts; the database is open and has this version's schema on return."""
    workspace = open_workspace(config)
    metrics = EngineMetrics()
    tracer, end_traces = open_tracer(config, metrics.traced)
    database = open_observed(config, clock, metrics)
    supervisor = Supervisor(clock)
    bus = open_bus(config, clock, supervisor)
    adapters = served(config, bus, clock)
    settings = engine_settings(config, Found(catalog, sandbox))
    features = features_of(
        child_settings(config.settings, catalog),
        retry_policy(config.settings),
        SchedulerTimers(clock),
        mailbox_settings(config.settings),
    )
    units = Units(database, bus, kinds_of(features, redact))
    making = ToolServices(units, clock, settings.agent, workspace.agents)
    tools = builtin_tools(
        sandbox=sandbox,
        fetch=GuardedFetch(),
        skills=workspace.skills,
        clock=clock,
        commands=replace(exec_settings(config), background=background_of(features)),
        sending=replace(
            sending_by_rows(database, send_limits(config, adapters), redact=redact),
            mail=mail_of(features),
        ),
        of_features=tools_of(features, making),
    )
    making.made.extend(tools)
    parts = EngineParts(
        database=database,
        bus=bus,
        clock=clock,
        models=catalog,
        registry=Registry(tools),
        workspace=workspace,
        adapters=adapters,
        fetchers=fetching_adapters(config, clock),
        transcriber=transcriber_of(config),
        roles=roles_of(config),
        alone=database.dialect == "sqlite",
        redact=redact,
        begun=begun,
        observer=metrics,
        tracer=tracer,
        price=price_of,
        sandbox=sandbox,
        supervisor=supervisor,
        model_lists=ProviderLists(catalog.settings, clock),
        features=features,
    )
    engine = Engine(parts, settings)
    await database.start()
    await bus.start()
    return Assembly(
        current=Current(config),
        engine=engine,
        database=database,
        bus=bus,
        clock=clock,
        catalog=catalog,
        sandbox=sandbox,
        views=Views(database, engine.units.kinds),
        logins=Logins(database, clock),
        metrics=metrics,
        end_traces=end_traces,
        called=tuple(called(config, clock)),
    )


def open_observed(config: Config, clock: Clock, observer: Observer) -> ObservedDatabase:
    """The configured database, not started yet; `observer` hears of its units."""
    grouped = config.database_url.startswith("sqlite")
    points = count_commits(observer, grouped=grouped)
    opened = open_database(config.database_url, clock=clock, points=points)
    return ObservedDatabase(opened, observer, clock, file=sqlite_path(config.database_url))


def _reached(platforms: Sequence[Account]) -> bool:
    """Whether a chat platform can be reached, where one is configured: here, or by the replica
    that listens in this one's place."""
    return not platforms or any(one.status().connected or one.standing_by for one in platforms)


def open_bus(config: Config, clock: Clock, supervisor: Supervisor) -> Bus:
    """What carries signals between replicas: NATS where it is set, else the shared database."""
    if config.settings.bus.url is not None:
        # Lazy: a gateway without it has no need of its client.
        from runtime.bus.nats import NatsBus

        return NatsBus(config.settings.bus.url, clock, supervisor=supervisor)
    if config.database_url.startswith("postgres"):
        # Lazy: an embedded gateway has no need of PostgreSQL's driver.
        from runtime.bus.postgres import PostgresBus

        return PostgresBus(config.database_url, clock, supervisor=supervisor)
    return MemoryBus()


def roles_of(config: Config) -> frozenset[Role]:
    """What this process does. Raises `InvalidInput` where its database cannot be shared."""
    roles = frozenset(Role(name) for name in config.settings.roles)
    if roles != ALL_ROLES and config.database_url.startswith("sqlite"):
        raise InvalidInput(
            "roles",
            "a gateway whose data is in a SQLite file is one process and cannot be split. Leave "
            "--roles and the key roles out, or let the processes share a PostgreSQL database: "
            "database.url = postgresql+asyncpg://...",
        )
    return roles


def served(config: Config, bus: Bus, clock: Clock) -> list[ChatAdapter]:
    """The channels of this process: its own pages with `http`, the platforms with `adapters`."""
    roles = roles_of(config)
    local = local_adapters(bus) if Role.HTTP in roles else []
    return [*local, *(chat_adapters(config, clock) if Role.ADAPTERS in roles else [])]


def called(config: Config, clock: Clock) -> list[ChatAdapter]:
    """Without the role `adapters`: what answers the platforms that call this process's server."""
    roles = roles_of(config)
    if Role.HTTP not in roles or Role.ADAPTERS in roles:
        return []
    return [one for one in chat_adapters(config, clock) if one.webhook is not None]
