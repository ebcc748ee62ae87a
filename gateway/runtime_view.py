"""What is in force, for `/v1/runtime` and `gatehouse status`: nothing in it is secret (API-5).

It names what it shows. A section that is added to the settings is hidden until it is named here.
"""

from pydantic import Field

from gateway.config import Config, gateway_version
from gateway.config_children import Agents
from gateway.config_engine import Found
from gateway.config_files import Attachments
from gateway.config_model import (
    Budgets,
    Delivery,
    Limits,
    Mailboxes,
    Policy,
    RoleName,
    Scheduler,
    Workers,
)
from gateway.config_model import Queue as QueueSection
from runtime.domain.value import Value


class SandboxView(Value):
    """What confines the agent's commands."""

    name: str
    describes: str


class RuntimeView(Value):
    """The effective settings. The sections are those of the configuration, with its defaults."""

    version: str = ""
    url: str = Field(default="", description="Where a browser finds the page.")
    database: str = Field(default="", description="The kind of database: sqlite or postgresql.")
    workspace: str = ""
    timezone: str = "UTC"
    roles: tuple[RoleName, ...] = ()
    model: str = Field(default="", description="The default model.")
    fallback: tuple[str, ...] = Field(default=(), description="Models that stand in for it.")
    sandbox: SandboxView = SandboxView(name="", describes="")
    policy: Policy = Field(default_factory=Policy)
    agents: Agents = Field(default_factory=Agents)
    budgets: Budgets = Field(default_factory=Budgets)
    attachments: Attachments = Field(default_factory=Attachments)
    limits: Limits = Field(default_factory=Limits)
    queue: QueueSection = Field(default_factory=QueueSection)
    workers: Workers = Field(default_factory=Workers)
    scheduler: Scheduler = Field(default_factory=Scheduler)
    mailboxes: Mailboxes = Field(default_factory=Mailboxes)
    delivery: Delivery = Field(default_factory=Delivery)


def runtime_view(config: Config, found: Found) -> RuntimeView:
    """What is in force in this process."""
    settings = config.settings
    return RuntimeView(
        version=gateway_version(),
        database=config.database_url.partition(":")[0].partition("+")[0],
        workspace=str(config.workspace),
        model=found.models.default,
        fallback=tuple(found.models.fallback),
        sandbox=SandboxView(name=found.sandbox.name, describes=found.sandbox.describe()),
        timezone=settings.timezone,
        roles=settings.roles,
        policy=settings.policy,
        agents=settings.agents,
        budgets=settings.budgets,
        attachments=settings.attachments,
        limits=settings.limits,
        queue=settings.queue,
        workers=settings.workers,
        scheduler=settings.scheduler,
        mailboxes=settings.mailboxes,
        delivery=settings.delivery,
    )
