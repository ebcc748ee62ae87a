"""The engine of one process: intake, turns, deliverers and timers around one database.

It is built from parts and knows no concrete adapter; `gateway.wiring` chooses them, and tests put
fakes in their places.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Final

from runtime.agent.attachment_download import Fetcher
from runtime.agent.attachments import FileServices
from runtime.agent.file_cleanup import Leftovers
from runtime.agent.guest import Guests
from runtime.agent.model_call import ModelCaller
from runtime.agent.prompt_blocks import PromptBlocks
from runtime.agent.prompt_identity import Identity
from runtime.agent.settings import AgentSettings
from runtime.agent.tool_step import StepRunner, Watch
from runtime.agent.turn import TurnServices
from runtime.agent.turn_budget import Budgets, Price, no_price
from runtime.agent.turn_worker import TurnWorker
from runtime.agent.wait_requests import Parking
from runtime.agent.working_folders import Places, Site
from runtime.commands.table import Lookups
from runtime.delivery.file_sources import FileSources
from runtime.delivery.platform_accounts import Account, LocalDeliverers
from runtime.delivery.sender import DeliveryServices, DeliverySettings
from runtime.domain.budgets import BudgetSettings
from runtime.domain.ids import IdPrefix, new_id
from runtime.domain.messages import ChatAddress
from runtime.domain.people import Speaker
from runtime.engine.feature import (
    Feature,
    FeatureServices,
    blocks_of,
    commands_of,
    kinds_of,
    nothing_begun,
)
from runtime.intake.assets import Assets
from runtime.intake.gatehouse import Intake, IntakeSettings
from runtime.intake.reception import Reception
from runtime.ports.bus import Bus
from runtime.ports.chat import ChatAdapter
from runtime.ports.clock import Clock
from runtime.ports.metrics import NO_OBSERVER, Observer
from runtime.ports.model import ModelLists, Models
from runtime.ports.sandbox import Sandbox
from runtime.ports.tracing import NO_TRACER, Tracer
from runtime.ports.transcription import Transcriber
from runtime.process.due_poll import Looks
from runtime.process.lease_keeper import LeaseKeeper, LeaseSettings
from runtime.process.supervisor import Supervisor
from runtime.process.timers import Takeovers, Timers
from runtime.process.wakeup import TICK_S
from runtime.sessions import idempotency
from runtime.sessions.bounds import PolicySettings
from runtime.sessions.unit import Units
from runtime.sessions.window import WindowCache
from runtime.store import Connection, Database, Point, leases, no_point
from runtime.tools.executor import Executor
from runtime.tools.registry import Registry
from runtime.workspace.layout import Layout
from runtime.workspace.snapshot import Workspace


class Role(StrEnum):
    """A part of a gateway that can run in a process of its own beside a shared database."""

    ADAPTERS = "adapters"
    WORKERS = "workers"
    TIMERS = "timers"
    HTTP = "http"


ALL_ROLES: Final = frozenset(Role)


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """Everything that the operator may set about the engine. `turns` bounds runs at once."""

    agent: AgentSettings = field(default_factory=AgentSettings)
    intake: IntakeSettings = field(default_factory=IntakeSettings)
    policy: PolicySettings = field(default_factory=PolicySettings)
    lease: LeaseSettings = field(default_factory=LeaseSettings)
    delivery: DeliverySettings = field(default_factory=DeliverySettings)
    budgets: BudgetSettings = field(default_factory=BudgetSettings)
    turns: int = 200
    roots: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class EngineParts:
    """What an engine is made of. `alone`: no other process can share the database. `redact`
    takes the gateway's secrets out of a text, `begun` says how much at its end may be the beginning
    of one. `observer` hears of the work as it happens, `tracer`
    opens spans around it.
    `price` knows what a call costs before it is made; money is not reserved without it.
    `roles` are those of this process; `adapters` are the channels that these serve, `fetchers`
    those that it only fetches files from, for its turns. `sandbox` is where features run programs
    of the gateway's own, as git. `supervisor` runs the long-lived tasks of the
    whole process, if it has others than the engine's. `features` are those that there are beside
    the message path."""

    database: Database
    bus: Bus
    clock: Clock
    models: Models
    registry: Registry
    workspace: Workspace
    adapters: Sequence[ChatAdapter]
    alone: bool = True
    point: Point = no_point
    redact: Callable[[str], str] = str
    begun: Callable[[str], int] = nothing_begun
    price: Price = no_price
    observer: Observer = NO_OBSERVER
    tracer: Tracer = NO_TRACER
    roles: frozenset[Role] = ALL_ROLES
    fetchers: Sequence[ChatAdapter] = ()
    transcriber: Transcriber | None = None
    sandbox: Sandbox | None = None
    supervisor: Supervisor | None = None
    model_lists: ModelLists | None = None
    features: tuple[Feature, ...] = ()


class Engine:
    """Runs its roles until cancelled; `drain` ends it within a grace time."""

    def __init__(self, parts: EngineParts, settings: EngineSettings) -> None:
        self.parts = parts
        self.units = Units(parts.database, parts.bus, kinds_of(parts.features, parts.redact))
        self.settings = settings
        self.worker = new_id(IdPrefix.WORKER, parts.clock.now_ms())
        self.intake = Intake(
            self.units,
            settings.intake,
            observer=parts.observer,
            commands=commands_of(parts.features),
            lookups=Lookups(parts.workspace, parts.model_lists, parts.database),
        )
        self._budgets = Budgets(self.units, parts.clock, settings.budgets, parts.price)
        self.supervisor = parts.supervisor or Supervisor(parts.clock)
        self._keeper = LeaseKeeper(
            parts.database, parts.clock, self.worker, settings.lease, supervisor=self.supervisor
        )
        # Within two lease periods somebody must see that a lease ran out, however short it is.
        every_s = min(TICK_S, settings.lease.ttl_s / 3)
        self._looks = Looks(parts.database, parts.clock, every_s=every_s)
        self.accounts = [
            Account(one, self.intake, self._keeper, self.supervisor, name=name)
            for one, name in zip(parts.adapters, _names(parts.adapters), strict=True)
        ]
        root = Layout.of(parts.workspace.root)
        self._places = Places(self.units, Site(root, settings.roots))
        self.blocks = PromptBlocks(parts.database, blocks_of(parts.features))
        self._features = [one.parts(self._feature_services()) for one in parts.features]
        self.turns = TurnWorker(
            services=self._turn_services(),
            policy=settings.policy,
            holder=lambda: self._keeper.holder,
            delivery=LocalDeliverers(self.accounts),
            looks=self._looks,
            limit=settings.turns,
            supervisor=self.supervisor,
        )
        self._takeovers = Takeovers(self.units, parts.clock, self._looks)
        self._timers = Timers(self.units, parts.clock, self._looks)
        uploads = Assets(self.units, parts.clock, lambda: parts.workspace.root)
        self._leftovers = Leftovers(
            parts.database,
            parts.clock,
            Site(root, settings.roots),
            keep_s=settings.delivery.keep_files_s,
            others=(uploads.sweep, self._forget_keys),
        )

    async def _forget_keys(self) -> None:
        """Forget the keys of old requests. Raises `StoreUnavailable`."""
        while await self.parts.database.write(idempotency.expire, name="keys-expire"):
            pass

    @property
    def ready(self) -> bool:
        """Whether this process holds its lease, so that it may work."""
        return self._keeper.holder is not None

    def change(self, settings: EngineSettings) -> None:
        """Take over what may change while it runs: who gets in, what tools may do, and what
        may be spent."""
        self.intake.change(settings.intake)
        self.turns.change(settings.policy)
        self._budgets.change(settings.budgets)

    async def run(self) -> None:
        """Take the leases and work until cancelled."""
        parts = self.parts
        if parts.alone:
            await parts.database.write(leases.void_all, name="void-leases")
        services = DeliveryServices(
            self.units,
            parts.clock,
            self.worker,
            self.settings.delivery,
            point=parts.point,
            observer=parts.observer,
            tracer=parts.tracer,
            workspace=parts.workspace.root,
            commands=commands_of(parts.features).names,
        )
        async with asyncio.TaskGroup() as group:
            start, hold = self.supervisor.start, self._keeper.hold
            self._keeper.start(group)
            start(group, "looks", self._looks.run)
            start(group, "takeovers", self._takeovers.run)
            if not parts.alone:
                start(group, "lease roles", partial(hold, self._presence, _stay))
            if Role.TIMERS in parts.roles:
                start(group, "timers", partial(hold, "timers", self._timers.run))
                start(group, "leftovers", self._leftovers.run, needed=False)
            if Role.WORKERS in parts.roles:
                start(group, "turns", self.turns.run)
                for feature in self._features:
                    for worker in feature.workers:
                        start(group, worker.name, worker.run, needed=worker.needed)
            for account in self.accounts:
                group.create_task(
                    account.run(services, self._looks), name=f"account {account.adapter.channel}"
                )

    async def drain(self, grace_s: float) -> None:
        """Take nothing new, let what runs finish for `grace_s`, and put the rest back (OPS-10)."""
        self.turns.stop_taking()
        async with asyncio.TaskGroup() as group:
            for account in self.accounts:
                channel = account.adapter.channel
                group.create_task(account.stop_listening(), name=f"stop listening {channel}")
        await self.turns.drain(grace_s)

    @property
    def _presence(self) -> str:
        """The lease that tells everybody what this process does: /v1/status lists the leases."""
        roles = "+".join(role for role in Role if role in self.parts.roles)
        return f"{leases.PROCESS}{self.worker}:{roles}"

    def _feature_services(self) -> FeatureServices:
        parts = self.parts
        return FeatureServices(
            units=self.units,
            clock=parts.clock,
            looks=self._looks,
            registry=parts.registry,
            workspace=parts.workspace,
            places=self._places,
            settings=self.settings.agent,
            admitted=self._admitted,
            policy=self.settings.policy,
            approvers=lambda: self.intake.approvers,
            sandbox=parts.sandbox,
            worker=self.worker,
            redact=parts.redact,
            begun=parts.begun,
        )

    def _admitted(
        self, conn: Connection, asked: Sequence[tuple[ChatAddress, str]]
    ) -> Sequence[Speaker | None]:
        """By the rules of the moment, which may change while this runs."""
        reception = Reception(self.intake.settings, self.intake.commands)
        return reception.all_admitted(conn, asked)

    def _turn_services(self) -> TurnServices:
        parts, settings = self.parts, self.settings
        return TurnServices(
            units=self.units,
            clock=parts.clock,
            caller=ModelCaller(
                parts.models, parts.clock, observer=parts.observer, tracer=parts.tracer
            ),
            steps=StepRunner(
                self.units,
                parts.registry,
                Executor(parts.registry, parts.redact),
                places=self._places,
                watch=Watch(parts.observer, parts.clock, parts.registry, parts.tracer),
            ),
            identity=Identity(parts.workspace, parts.database),
            blocks=self.blocks,
            cache=WindowCache(),
            settings=settings.agent,
            budgets=self._budgets,
            files=self._file_services(),
            parking=Parking(
                self.units,
                settings.agent,
                approvers=lambda: self.intake.approvers,
                openings={kind: of for one in self._features for kind, of in one.openings.items()},
            ),
            guests=Guests({kind: of for one in self._features for kind, of in one.guests.items()}),
            observer=parts.observer,
            tracer=parts.tracer,
        )

    def _file_services(self) -> FileServices:
        parts = self.parts
        return FileServices(
            units=self.units,
            clock=parts.clock,
            workspace=parts.workspace.root,
            fetcher=Fetcher(FileSources(self.accounts, parts.fetchers).find, parts.clock),
            settings=self.settings.agent,
            transcriber=parts.transcriber,
            kept_for=tuple(make for one in self._features for make in one.kept_for),
        )


def _names(adapters: Sequence[ChatAdapter]) -> Sequence[str]:
    """A name for each account by its channel; numbered where a channel has several."""
    channels = [one.channel for one in adapters]
    return [
        channel
        if channels.count(channel) == 1
        else f"{channel} {channels[: place + 1].count(channel)}"
        for place, channel in enumerate(channels)
    ]


async def _stay(_fence: int) -> None:
    await asyncio.Event().wait()
