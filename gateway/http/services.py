"""What the HTTP server is given: the engine's two sides, the bus for live events, and settings."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gateway.addresses import Addresses
from gateway.explain import Explainer
from gateway.http.engine_metrics import EngineMetrics
from gateway.runtime_view import RuntimeView
from runtime.domain.value import Value
from runtime.features.mailboxes.settings import USUAL, MailboxSettings
from runtime.features.subagents.feature import USUAL as ANY_CHILDREN
from runtime.features.subagents.files.worktrees import Worktrees
from runtime.features.subagents.settings import ChildSettings
from runtime.intake.control import Control
from runtime.intake.logins import Logins
from runtime.intake.route_policies import RouteRules
from runtime.ports.bus import Bus
from runtime.ports.chat import Webhook
from runtime.ports.clock import Clock
from runtime.ports.gatehouse import Gatehouse
from runtime.process.supervisor import TaskHealth
from runtime.views.reader import Views

Tokens = Callable[[], Sequence[str]]
"""The tokens that hold at this moment; asked at each request, so that changes hold at once."""


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """Where to listen and whom to let in.

    `public_url` is where browsers find the gateway, as an origin without a slash at its end: it is
    what their Origin header must say, and with https cookies are for TLS only. `public_hosts` are
    further names that a Host header may carry. `max_body` is in bytes.
    """

    admin_tokens: Tokens
    read_tokens: Tokens = tuple
    host: str = "127.0.0.1"
    port: int = 8080
    public_url: str = ""
    public_hosts: tuple[str, ...] = ()
    streams: int = 1024
    streams_per_credential: int = 128
    max_body: int = 16 * 1024 * 1024


async def _no_files() -> None:
    """Tokens that are in no file stay as they are."""


class AdapterView(Value):
    """One platform account, as /v1/status and the metrics show it; `kind` as in `AdapterStatus`."""

    channel: str
    account: str
    connected: bool
    detail: str = ""
    kind: str = ""


@dataclass(frozen=True, slots=True)
class HttpServices:
    """Everything behind the handlers.

    `render` makes sanitised HTML of Markdown, one element a block; `render_growing` does so of a
    text of which more will come. `checks` are the parts that must be up besides the
    database for the gateway to be ready, by name, and `reasons` says why one of them is not, where
    that is known. `tasks` are the long-lived ones of this process. `runtime` is what is in force,
    no secrets.
    `metrics` are what the engine has counted so far; `worker` is its name among the lease holders,
    `writes_waiting` the units that wait for the store, `sandbox` what confines commands. `hooks`
    are where platforms call us; what they bring goes to `gatehouse`. `addresses` are where this
    server is found; `reload_tokens` reads the files of tokens again.
    """

    settings: HttpSettings
    views: Views
    control: Control
    logins: Logins
    bus: Bus
    clock: Clock
    render: Callable[[str], Sequence[str]]
    render_growing: Callable[[str], Sequence[str]]
    adapters: Callable[[], Sequence[AdapterView]] = tuple
    tasks: Callable[[], Sequence[TaskHealth]] = tuple
    turns_running: Callable[[], int] = int
    checks: Mapping[str, Callable[[], bool]] = field(default_factory=dict)
    reasons: Mapping[str, Callable[[], str]] = field(default_factory=dict)
    runtime: Callable[[], RuntimeView] = RuntimeView
    explainer: Explainer | None = None
    version: str = ""
    metrics: EngineMetrics = field(default_factory=EngineMetrics)
    worker: str = ""
    turns_limit: int = 0
    writes_waiting: Callable[[], int] = int
    sandbox: str = ""
    hooks: Sequence[Webhook] = ()
    gatehouse: Gatehouse | None = None
    workspace: Path = Path()
    addresses: Callable[[], Addresses] = Addresses
    reload_tokens: Callable[[], Awaitable[None]] = _no_files
    mailboxes: MailboxSettings = USUAL
    children: ChildSettings = ANY_CHILDREN
    route_rules: RouteRules = field(default_factory=RouteRules)
    worktrees: Worktrees | None = None

    @property
    def url(self) -> str:
        """Where a browser finds the page."""
        return self.settings.public_url or self.addresses().here
