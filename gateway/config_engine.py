"""The operator's settings in the engine's own shapes. Pure: it reads and builds nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from pydantic import TypeAdapter

from gateway.config import Config, gateway_version
from gateway.config_chats import ChannelAccess as AccessSection
from gateway.config_model import Settings
from gateway.config_section import Section
from runtime.agent.settings import MEGABYTE, AgentSettings, AttachmentSettings
from runtime.commands.table import CommandSettings
from runtime.delivery.sender import DeliverySettings
from runtime.domain.budgets import BudgetSettings, Limit, micro_usd
from runtime.domain.errors import InvalidInput
from runtime.domain.people import Approvers
from runtime.domain.rates import Rate, RateSettings
from runtime.engine.engine import EngineSettings
from runtime.features.mailboxes.settings import MailboxSettings
from runtime.features.schedules.retry import RetryPolicy
from runtime.features.subagents.settings import ChildModels, ChildSettings
from runtime.features.subagents.settings import Limits as SpawnLimits
from runtime.intake.access import ChannelAccess
from runtime.intake.assets import AssetLimits
from runtime.intake.gatehouse import IntakeSettings
from runtime.ports.chat import ChatAdapter
from runtime.ports.model import Models
from runtime.ports.sandbox import Sandbox, SandboxLimits
from runtime.process.lease_keeper import LeaseSettings
from runtime.sessions.bounds import PolicySettings, rule_lists
from runtime.tools.builtin.shell import ExecSettings
from runtime.tools.outgoing_files import SendLimits

T = TypeVar("T")

UNCONFINED = frozenset({"none", "refused"})
"""Sandboxes in which no command is confined."""


@dataclass(frozen=True, slots=True)
class Found:
    """What was found at start: the models that can be used, and the sandbox that passed."""

    models: Models
    sandbox: Sandbox


def engine_settings(config: Config, found: Found) -> EngineSettings:
    """Everything that the engine is told."""
    settings = config.settings
    return EngineSettings(
        agent=AgentSettings(
            max_steps=settings.agents.max_steps,
            window_tokens=settings.agents.window_tokens,
            max_output_tokens=settings.agents.max_output_tokens,
            approval_expiry_ms=int(settings.approvals.expiry_s * 1000),
            timezone=settings.timezone,
            attachments=attachment_settings(settings),
        ),
        intake=intake_settings(config, found),
        policy=PolicySettings(
            mode=settings.policy.mode,
            rules=rule_lists(
                allow=settings.policy.allow, ask=settings.policy.ask, deny=settings.policy.deny
            ),
            sandboxed=found.sandbox.name not in UNCONFINED,
        ),
        lease=LeaseSettings(ttl_s=settings.workers.lease_ttl_s),
        delivery=DeliverySettings(
            give_up_after_s=settings.delivery.give_up_after_s,
            resend_unknown=settings.delivery.ambiguous_sends == "resend",
            keep_files_s=settings.delivery.keep_files_s,
            quiet=frozenset(
                name
                for name, section in (("slack", settings.slack), ("telegram", settings.telegram))
                if not section.stream
            ),
        ),
        budgets=budget_settings(settings),
        turns=settings.workers.turns,
        roots=settings.tools.roots,
    )


def intake_settings(config: Config, found: Found) -> IntakeSettings:
    """The part that may change while the gateway runs (ACC-2)."""
    settings = config.settings
    return IntakeSettings(
        access={"slack": access(settings.slack), "telegram": access(settings.telegram)},
        queue_mode=settings.queue.mode,
        debounce_ms=settings.queue.debounce_ms,
        stale_after_ms=int(settings.queue.stale_after_s * 1000),
        max_waiting=settings.queue.max_waiting,
        mode=settings.sessions.mode.value,
        commands=CommandSettings(
            approvers=Approvers(frozenset(settings.approvals.approvers)),
            models=found.models.names(),
            default_model=found.models.default,
            version=gateway_version(),
            sandbox=found.sandbox.name,
            budgets=budget_settings(settings),
            rates=rate_settings(settings),
        ),
    )


def rate_settings(settings: Settings) -> RateSettings:
    """How fast people and rooms may ask, and the zone in which they are told until when."""
    given = settings.limits
    return RateSettings(
        person=Rate(given.person_runs_per_minute, given.person_runs_per_hour),
        room=Rate(given.room_runs_per_minute, given.room_runs_per_hour),
        words=Rate(given.replies_per_minute),
        owners=given.owners,
        timezone=settings.timezone,
    )


def child_settings(settings: Settings, models: Models) -> ChildSettings:
    """How many subagents there may be, how long one is awaited, and which models they use."""
    given = settings.agents
    return ChildSettings(
        concurrency=given.concurrency,
        limits=_shaped(SpawnLimits, given),
        await_ms=int(given.auto_background_after * 1000),
        share=settings.tools.subagents.memory_share_mode,
        models=child_models(settings, models),
        clarify_ms=int(given.clarification_timeout * 1000),
        allow=settings.tools.subagents.allow,
        deny=settings.tools.subagents.deny,
        max_retries=given.max_retries,
        idle_s=given.idle_timeout,
    )


def retry_policy(settings: Settings) -> RetryPolicy:
    """How a dispatch of a schedule is tried again."""
    given = settings.scheduler
    return RetryPolicy(
        base_delay_ms=given.retry_base_delay_ms,
        max_delay_ms=given.retry_max_delay_ms,
        jitter_ms=given.retry_jitter_ms,
        max_attempts=given.retry_max_attempts or None,
    )


def mailbox_settings(settings: Settings) -> MailboxSettings:
    """What agents may write to each other."""
    given = settings.mailboxes
    pairs = (one.partition(":") for one in given.allow)
    return MailboxSettings(
        most_waiting=given.max_queued,
        most_hops=given.max_hops,
        allowed=frozenset((begin, end) for begin, _, end in pairs),
    )


def child_models(settings: Settings, models: Models) -> ChildModels:
    """The models of subagents by depth, and the names that spawns and definitions may choose: what
    `/model` offers, and what the operator named for some use."""
    given = settings.agents
    by_depth = {depth: one.model for depth, one in given.depth.items()}
    named = {models.default, *models.fallback, *by_depth.values(), given.subagent_model}
    offered = frozenset(name for name in (*models.names(), *named) if name is not None)
    return ChildModels(given.subagent_model, by_depth, offered)


def check_child_models(settings: Settings, models: Models) -> None:
    """Raises `InvalidInput`, naming the setting, for a model that cannot be used."""
    given = settings.agents
    named = {f"agents.depth.{depth}.model": one.model for depth, one in given.depth.items()}
    if given.subagent_model is not None:
        named["agents.subagent_model"] = given.subagent_model
    for field, name in named.items():
        try:
            models.get(name)
        except InvalidInput as error:
            raise InvalidInput(field, error.rule) from None


def attachment_settings(settings: Settings) -> AttachmentSettings:
    """How much of what people send is taken."""
    given = settings.attachments
    return AttachmentSettings(
        file_bytes=int(given.file_mb * MEGABYTE),
        files=given.message_files,
        message_bytes=int(given.message_mb * MEGABYTE),
        session_bytes=int(given.session_mb * MEGABYTE),
        shown=given.shown,
        timeout_s=given.timeout_s,
    )


def asset_limits(settings: Settings) -> AssetLimits:
    """How much may be uploaded for messages."""
    given = settings.attachments
    return AssetLimits(
        file_bytes=int(given.file_mb * MEGABYTE),
        owner_bytes=int(given.assets_mb * MEGABYTE),
        session_bytes=int(given.session_mb * MEGABYTE),
    )


def budget_settings(settings: Settings) -> BudgetSettings:
    """The limits of spending, and the zone in which a day ends."""
    given = settings.budgets

    def limit(tokens: int | None, usd: float | None) -> Limit:
        return Limit(tokens, None if usd is None else micro_usd(usd))

    return BudgetSettings(
        run=limit(given.run_tokens, given.run_usd),
        session=limit(given.session_tokens, given.session_usd),
        person_day=limit(given.person_day_tokens, given.person_day_usd),
        room_day=limit(given.room_day_tokens, given.room_day_usd),
        day=limit(given.day_tokens, given.day_usd),
        timezone=settings.timezone,
    )


def access(section: AccessSection) -> ChannelAccess:
    """One platform's rules."""
    return _shaped(ChannelAccess, section)


def _shaped(shape: type[T], section: Section) -> T:
    """What of a section the engine has in a dataclass under the same names."""
    return TypeAdapter(shape).validate_python(section.model_dump())


def exec_settings(config: Config) -> ExecSettings:
    """What commands are granted; the gateway's own files stay hidden, whatever the roots are."""
    granted = config.settings.tools.exec
    return ExecSettings(
        env=granted.env,
        network=granted.network,
        max_timeout_s=granted.max_timeout_s,
        limits=SandboxLimits(
            memory_bytes=granted.memory_mb * 1024**2,
            processes=granted.processes,
            file_bytes=granted.file_mb * 1024**2,
            disk_bytes=granted.disk_mb * 1024**2,
        ),
        hidden=own_files(config),
    )


def send_limits(config: Config, adapters: Sequence[ChatAdapter]) -> SendLimits:
    """What the agent may send, and what the platforms of this process take."""
    given = config.settings.delivery
    return SendLimits(
        file_bytes=int(given.file_mb * MEGABYTE),
        per_run=given.files_per_run,
        channels={one.channel: one.capabilities for one in adapters},
    )


def own_files(config: Config) -> tuple[str, ...]:
    """Files of the gateway that no command may see: secrets, the configuration, the database."""
    database = [config.home / f"gatehouse.db{end}" for end in ("", "-wal", "-shm", ".lock")]
    files = (config.home / "secrets.toml", *config.sources, *database)
    return tuple(dict.fromkeys(str(file) for file in files if file.is_file()))


RELOADED = ("approvals", "budgets", "limits", "policy", "queue", "sessions")
"""Sections that are taken over while the gateway runs, as are the rules of access of the platforms;
the rest wait for a restart."""


def needs_restart(old: Settings, new: Settings) -> tuple[str, ...]:
    """The sections that changed and are only read at start, if only in a part."""
    names = Settings.model_fields
    return tuple(name for name in names if _at_start(old, name) != _at_start(new, name))


def _at_start(settings: Settings, name: str) -> object:
    """What of a section is only read at start; of a platform, all but who may talk."""
    section = getattr(settings, name)
    if isinstance(section, AccessSection):
        return section.model_dump(exclude=set(AccessSection.model_fields))
    return None if name in RELOADED else section
