"""The settings as values: one frozen section for each table of `gatehouse.toml`.

It holds shapes, defaults and the rules of single values. It reads nothing: `gateway.config` does.
A key is here only once it does something.
"""

import re
from pathlib import Path
from typing import Annotated, Final, Literal, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, Field, SecretStr

from gateway.config_chats import Slack, Telegram
from gateway.config_children import Agents, ChildTools
from gateway.config_files import Attachments, Transcription
from gateway.config_section import Section
from runtime.domain.decisions import PermissionMode, SessionMode
from runtime.domain.errors import InvalidInput
from runtime.policy.rules import Rule


def _zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("must be a time zone such as Europe/Berlin") from None
    return name


def _rule(text: str) -> str:
    try:
        return Rule.parse(text).text
    except InvalidInput as error:
        raise ValueError(f"{error.rule}, not {text!r}") from None


def _account(text: str) -> str:
    if text.count(":") < 2 or not all(text.split(":", 2)):
        raise ValueError("must look like channel:account:user, as in slack:T0001:U0001")
    return text


def _variable(name: str) -> str:
    if not name.isidentifier() or not name.isascii():
        raise ValueError(f"must be names of environment variables, not {name!r}")
    return name


def _origin(url: str) -> str:
    found = re.fullmatch(r"(https?)://([^\s/?#@]+?)(?::([0-9]{1,5}))?/?", url.lower())
    if found is None:
        raise ValueError("must be an address without a path, as in https://gatehouse.example.org")
    scheme, host, port = found.groups()
    usual = {"http": "80", "https": "443"}[scheme]
    return f"{scheme}://{host}" if port in (None, usual) else f"{scheme}://{host}:{port}"


RoleName = Literal["adapters", "workers", "timers", "http"]
ROLES: Final[tuple[RoleName, ...]] = get_args(RoleName)


def _roles(names: tuple[RoleName, ...]) -> tuple[RoleName, ...]:
    if not names:
        raise ValueError(f"must name at least one of {', '.join(ROLES)}")
    return tuple(name for name in ROLES if name in names)


RuleText = Annotated[str, AfterValidator(_rule)]
AccountName = Annotated[str, AfterValidator(_account)]
PublicUrl = Annotated[str, AfterValidator(_origin)]
VariableName = Annotated[str, AfterValidator(_variable)]


class Log(Section):
    """`[log]`: what the gateway writes to its standard error."""

    level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="The least important kind of line that is written."
    )
    format: Literal["auto", "json", "human"] = Field(
        "auto", description="`auto` writes JSON unless a person is watching on a terminal."
    )


class Http(Section):
    """`[http]`: where the API and the web page are, and who may use them."""

    host: str = Field("127.0.0.1", min_length=1, description="The address to listen on.")
    port: int = Field(8080, ge=0, le=65535, description="The port; 0 takes any free one.")
    health_port: int | None = Field(
        None,
        ge=0,
        le=65535,
        description="Where a process without the role `http` answers probes and `/metrics`, and "
        "nothing else; unset: it listens to nobody.",
    )
    admin_token: SecretStr | None = Field(
        None, description="The bearer token that may do everything."
    )
    read_only_token: SecretStr | None = Field(None, description="A bearer token that only reads.")
    admin_token_file: Path | None = Field(
        None, description="A file with admin tokens, one a line; read again when it changes."
    )
    read_only_token_file: Path | None = Field(
        None, description="A file with read-only tokens, one a line; read again when it changes."
    )
    public_url: PublicUrl | None = Field(
        None,
        description="Where browsers find the gateway, as in `https://gatehouse.example.org`: it is "
        "in the links that log people in, and with `https` their cookies are for TLS only.",
    )
    public_hosts: tuple[str, ...] = Field(
        (), description="Further host names under which the gateway is called."
    )
    streams_per_credential: int = Field(
        128, ge=1, le=1024, description="How many event streams one token may have open at once."
    )


class Observability(Section):
    """`[observability]`: traces, by OTLP over HTTP. Metrics are always at `/metrics`."""

    otlp_endpoint: str | None = Field(
        None,
        pattern=r"^https?://",
        description="The collector's base address, such as `http://localhost:4318`; also "
        "`OTEL_EXPORTER_OTLP_ENDPOINT`, or, as the whole address, "
        "`OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`. Unset: no traces.",
    )
    traces_content: bool = Field(
        False, description="Whether spans hold what people, models and tools said."
    )


class Database(Section):
    """`[database]`: where everything is kept."""

    url: str | None = Field(
        None,
        description="`sqlite+aiosqlite:///FILE` or `postgresql+asyncpg://...`; "
        "unset: `gatehouse.db` in the home folder.",
    )


class Bus(Section):
    """`[bus]`: how replicas wake each other. Several gateways share a database on PostgreSQL."""

    url: str | None = Field(
        None,
        description="`nats://host:4222`, several with commas; unset: PostgreSQL's own "
        "notifications, or none where the database is a file of one gateway.",
    )


class Workspace(Section):
    """`[workspace]`: the folder of the agent's files."""

    path: Path | None = Field(
        None,
        description="Unset: `workspace` in the home folder. The agent works in `files` below it.",
    )


class Models(Section):
    """`[models]`: which models answer. Without any, a provider with a key is chosen."""

    default: str | None = Field(None, description="`provider:name`; unset: the first one found.")
    fallback: tuple[str, ...] = Field((), description="Tried in turn when the default fails.")
    offered: tuple[str, ...] = Field((), description="What `/model` lists; unset: all with a key.")
    openai_api_key: SecretStr | None = Field(None, description="Also `OPENAI_API_KEY`.")
    openai_base_url: str | None = Field(
        None, description="An OpenAI-compatible server; also `OPENAI_BASE_URL`."
    )
    compatible_model: str | None = Field(None, description="That server's name of its model.")
    anthropic_api_key: SecretStr | None = Field(None, description="Also `ANTHROPIC_API_KEY`.")
    anthropic_base_url: str | None = Field(None, description="Another address of Anthropic's API.")
    gemini_api_key: SecretStr | None = Field(None, description="Also `GEMINI_API_KEY`.")
    gemini_base_url: str | None = Field(None, description="Another address of Gemini's API.")
    ollama_url: str | None = Field(None, description="Unset: looked for on this machine.")
    ollama_model: str | None = Field(None, description="Unset: the first one that Ollama has.")
    context_tokens: int | None = Field(
        None, ge=2048, description="Overrules the known size of the context window, in tokens."
    )
    timeout_s: float = Field(
        120.0, gt=0, description="The longest wait for the next bytes of a response."
    )


class Budgets(Section):
    """`[budgets]`: how much the model may be used. Tokens are those in and out together, money is
    US dollars; a day ends at midnight of `timezone`. The call that crosses a limit is the last."""

    run_tokens: int | None = Field(None, ge=1, description="One request; unset: no limit.")
    run_usd: float | None = Field(None, gt=0, description="One request; unset: no limit.")
    session_tokens: int | None = Field(None, ge=1, description="A session, over all its days.")
    session_usd: float | None = Field(None, gt=0, description="A session, over all its days.")
    person_day_tokens: int | None = Field(None, ge=1, description="Each person, each day.")
    person_day_usd: float | None = Field(None, gt=0, description="Each person, each day.")
    room_day_tokens: int | None = Field(
        None, ge=1, description="Each group or channel, each day; its threads share it."
    )
    room_day_usd: float | None = Field(
        None, gt=0, description="Each group or channel, each day; its threads share it."
    )
    day_tokens: int | None = Field(None, ge=1, description="Everybody together, each day.")
    day_usd: float | None = Field(None, gt=0, description="Everybody together, each day.")


class Limits(Section):
    """`[limits]`: how fast people and rooms may ask. 0 is no limit."""

    person_runs_per_minute: int = Field(
        20, ge=0, description="Runs that one person may begin in a minute."
    )
    person_runs_per_hour: int = Field(
        240, ge=0, description="Runs that one person may begin in an hour."
    )
    room_runs_per_minute: int = Field(
        60, ge=0, description="Runs that a group or channel may begin in a minute."
    )
    room_runs_per_hour: int = Field(
        1200, ge=0, description="Runs that a group or channel may begin in an hour."
    )
    replies_per_minute: int = Field(
        30,
        ge=0,
        description="Answers to commands, and lines that say that a message waits, to one person.",
    )
    owners: bool = Field(False, description="Whether these limits hold for owners too.")


class Exec(Section):
    """`[tools.exec]`: what shell commands are granted."""

    network: bool = Field(False, description="Whether commands may use the network.")
    env: dict[VariableName, str] = Field(
        default_factory=dict, description="Variables that commands see besides the minimum."
    )
    max_timeout_s: float = Field(600.0, gt=0, description="The longest a command may ask for.")
    memory_mb: int = Field(2048, ge=16, description="Memory of one command.")
    processes: int = Field(256, ge=1, description="Processes of one command.")
    file_mb: int = Field(512, ge=1, description="The largest file that a command may write.")
    disk_mb: int = Field(
        2048,
        ge=16,
        description="Disk that the commands of one session may add; more ends the command.",
    )


class Tools(Section):
    """`[tools]`: where tools may reach and how commands are confined."""

    sandbox: Literal["auto", "bubblewrap", "landlock", "none"] = Field(
        "auto", description="`none` runs commands unconfined; each of them is asked about then."
    )
    roots: tuple[Path, ...] = Field((), description="Folders besides the workspace.")
    exec: Exec = Field(default_factory=Exec, description="What shell commands are granted.")
    subagents: ChildTools = Field(
        default_factory=ChildTools, description="What subagents may have, and what they share."
    )


class Policy(Section):
    """`[policy]`: what the agent may do without asking."""

    mode: PermissionMode = Field(
        PermissionMode.DEFAULT, description="How much is allowed where no rule says anything."
    )
    allow: tuple[RuleText, ...] = Field((), description="Calls that need no approval.")
    ask: tuple[RuleText, ...] = Field((), description="Calls that always need an approval.")
    deny: tuple[RuleText, ...] = Field((), description="Calls that are always refused.")


class Approvals(Section):
    """`[approvals]`: who decides, and for how long a question stands."""

    approvers: tuple[AccountName, ...] = Field(
        (), description="`channel:account:user` of those who may approve besides the owner."
    )
    expiry_s: float = Field(
        7 * 24 * 3600.0, ge=10, description="What nobody answered for so long is denied."
    )


class Queue(Section):
    """`[queue]`: what becomes of messages that arrive while a run is active."""

    mode: Literal["collect", "followup", "steer", "interrupt"] = Field(
        "collect",
        description="`collect` joins them into one run, `followup` gives each its own, `steer` "
        "tells them to the run at work, `interrupt` ends it for them.",
    )
    debounce_ms: int = Field(
        700, ge=0, le=60_000, description="How long it must be quiet before they are joined."
    )
    stale_after_s: float = Field(
        900.0,
        ge=1,
        description="What a platform delivers later than this after it was sent is answered "
        "together, once.",
    )
    max_waiting: int = Field(
        500,
        ge=1,
        le=10_000,
        description="Messages of one session that may wait. Who sends more is told so, once a "
        "minute, and the message is not taken.",
    )


class Sessions(Section):
    """`[sessions]`: how new sessions begin."""

    mode: SessionMode = Field(SessionMode.EDIT, description="The mode of a new session.")


class Workers(Section):
    """`[workers]`: how much this process does at once."""

    turns: int = Field(50, ge=1, le=10_000, description="Runs at once in this process.")
    lease_ttl_s: float = Field(
        15.0, ge=1, le=600, description="How soon others take over after a crash, doubled."
    )


class Delivery(Section):
    """`[delivery]`: how replies are sent."""

    ambiguous_sends: Literal["mark", "resend"] = Field(
        "mark", description="What to do with a message that may or may not have been posted."
    )
    give_up_after_s: float = Field(
        24 * 3600.0, gt=0, description="How long a message is tried before it is given up."
    )
    file_mb: float = Field(
        50.0, gt=0, le=1_000, description="The largest file that the agent may send, in MB."
    )
    files_per_run: int = Field(
        10, ge=0, le=1_000, description="Files that one run may send; 0 lets none out."
    )
    keep_files_s: float = Field(
        7 * 24 * 3600.0,
        ge=3600,
        description="How long copies of sent files are kept, and the page's links to them work.",
    )


class Settings(Section):
    """Everything that an operator may set."""

    timezone: Annotated[str, AfterValidator(_zone)] = Field(
        "UTC", description="The zone in which the agent tells the time."
    )
    roles: Annotated[tuple[RoleName, ...], AfterValidator(_roles)] = Field(
        ROLES, description="The parts of the gateway that this process runs; all, unless split."
    )
    shutdown_grace_s: float = Field(
        20.0, ge=0, le=3600, description="How long running turns may finish after SIGTERM."
    )
    log: Log = Field(default_factory=Log)
    http: Http = Field(default_factory=Http)
    observability: Observability = Field(default_factory=Observability)
    database: Database = Field(default_factory=Database)
    bus: Bus = Field(default_factory=Bus)
    workspace: Workspace = Field(default_factory=Workspace)
    models: Models = Field(default_factory=Models)
    agents: Agents = Field(default_factory=Agents)
    budgets: Budgets = Field(default_factory=Budgets)
    limits: Limits = Field(default_factory=Limits)
    attachments: Attachments = Field(default_factory=Attachments)
    transcription: Transcription = Field(default_factory=Transcription)
    tools: Tools = Field(default_factory=Tools)
    policy: Policy = Field(default_factory=Policy)
    approvals: Approvals = Field(default_factory=Approvals)
    queue: Queue = Field(default_factory=Queue)
    sessions: Sessions = Field(default_factory=Sessions)
    workers: Workers = Field(default_factory=Workers)
    delivery: Delivery = Field(default_factory=Delivery)
    slack: Slack = Field(default_factory=Slack)
    telegram: Telegram = Field(default_factory=Telegram)
