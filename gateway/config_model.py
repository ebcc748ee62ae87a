"""The settings as values: one frozen section for each table of `gatehouse.toml`.

It holds shapes, defaults and the rules of single values. It reads nothing: `gateway.config` does.
A key is here only once it does something.
"""

import re
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Final, Literal, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from pydantic import AfterValidator, Field

from gateway.config_chats import Slack, Telegram
from gateway.config_children import Agents, ChildTools
from gateway.config_files import Attachments, Transcription
from gateway.config_section import Section
from gateway.config_text import TRIMMED, Address, Credential, address_problem
from runtime.domain.decisions import PermissionMode, SessionMode
from runtime.domain.errors import InvalidInput
from runtime.policy.rules import Rule


def _zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        near = _near_zone(name)
        meant = f"; did you mean {near}?" if near else ""
        raise ValueError(f"must be a time zone such as Europe/Berlin{meant}") from None
    return name


def _near_zone(name: str) -> str:
    """The time zone whose name, or the name of whose place, is nearest; empty where none is."""
    known = {one.lower(): one for one in sorted(available_timezones())}
    places = {one.rpartition("/")[2]: one for one in known if "/" in one}
    wanted = name.lower().replace(" ", "_")
    near = get_close_matches(wanted, [*known, *places], n=1, cutoff=0.75)
    return known[places.get(near[0], near[0])] if near else ""


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
    if found is None or address_problem(url):
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
PublicUrl = Annotated[str, TRIMMED, AfterValidator(_origin)]
VariableName = Annotated[str, AfterValidator(_variable)]


class Log(Section):
    """`[log]`: what the gateway writes to its standard error."""

    level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="The least important kind of line that is written."
    )
    format: Literal["auto", "json", "human"] = Field(
        "auto", description="`auto` writes JSON, or lines for people if the output is a terminal."
    )


class Http(Section):
    """`[http]`: where the API and the web page are, and who may use them."""

    host: str = Field(
        "127.0.0.1",
        min_length=1,
        description="The address to listen on. `0.0.0.0` lets other machines connect by IPv4, and "
        "`::` by IPv6 alone.",
    )
    port: int = Field(8080, ge=0, le=65535, description="The port. 0 takes any free port.")
    health_port: int | None = Field(
        None,
        ge=0,
        le=65535,
        description="The port on which a process without the role `http` answers health checks "
        "and `/metrics`, and nothing else. Unset: such a process listens on no "
        "port.",
    )
    admin_token: Credential | None = Field(
        None, description="A bearer token that may do everything."
    )
    read_only_token: Credential | None = Field(
        None, description="A bearer token that may only read."
    )
    admin_token_file: Path | None = Field(
        None,
        description="A file with admin tokens, one on each line. It is read again when it changes.",
    )
    read_only_token_file: Path | None = Field(
        None,
        description="A file with read-only tokens, one on each line. It is read again when it "
        "changes.",
    )
    public_url: PublicUrl | None = Field(
        None,
        description="The address that people open in their browsers, such as "
        "`https://gatehouse.example.org`. Login links use it. With `https`, the "
        "login cookie is sent only over TLS.",
    )
    public_hosts: tuple[str, ...] = Field(
        (), description="More host names that people may use to reach the gateway."
    )
    streams: int = Field(
        1024,
        ge=1,
        le=1024,
        description="How many event streams may be open at once, of all tokens. At most half of "
        "the connections that the system grants the process.",
    )
    streams_per_credential: int = Field(
        128, ge=1, le=1024, description="How many event streams one token may have open at once."
    )


class Observability(Section):
    """`[observability]`: traces, by OTLP over HTTP. Metrics are always at `/metrics`."""

    otlp_endpoint: Address | None = Field(
        None,
        description="The base address of the collector, such as `http://localhost:4318`. Also "
        "read from `OTEL_EXPORTER_OTLP_ENDPOINT`, or as the whole address from "
        "`OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`. Unset: no traces.",
    )
    traces_content: bool = Field(
        False, description="Whether traces hold what people, models and tools said."
    )


class Database(Section):
    """`[database]`: where everything is kept."""

    url: Annotated[str, TRIMMED] | None = Field(
        None,
        description="`sqlite+aiosqlite:///FILE` or `postgresql+asyncpg://...`. Unset: the "
        "SQLite file `gatehouse.db` in the home folder.",
    )
    wait_s: float = Field(
        60.0,
        ge=0,
        le=3600,
        description="Seconds that a start waits for a PostgreSQL server that does not answer or is "
        "starting. Then it fails. 0: it fails at once.",
    )


class Bus(Section):
    """`[bus]`: how gateways that share a database notify each other."""

    url: Annotated[str, TRIMMED] | None = Field(
        None,
        description="The address of NATS, `nats://host:4222`; several with commas. Unset: "
        "PostgreSQL's own notifications. A single gateway on SQLite needs none.",
    )


class Workspace(Section):
    """`[workspace]`: the folder of the agent's files."""

    path: Path | None = Field(
        None,
        description="The folder. Unset: `workspace` in the home folder. The agent works in "
        "`files` below it.",
    )


class Models(Section):
    """`[models]`: which models answer. If none is set, Gatehouse chooses a provider with a key."""

    default: str | None = Field(
        None,
        description="The model that answers, as `provider:name`. Unset: the first one that is "
        "found.",
    )
    fallback: tuple[str, ...] = Field(
        (), description="The models to try, in this order, when the default fails."
    )
    offered: tuple[str, ...] = Field(
        (),
        description="The models that `/model` offers. Unset: what each provider with a key lists.",
    )
    openai_api_key: Credential | None = Field(
        None, description="The key for OpenAI. Also read from `OPENAI_API_KEY`."
    )
    openai_base_url: Address | None = Field(
        None,
        description="The base address of an OpenAI-compatible server, with `/v1` where it has one. "
        "Also read from `OPENAI_BASE_URL`.",
    )
    compatible_model: str | None = Field(
        None, description="The name of the model on that server. Unset: one that the server lists."
    )
    anthropic_api_key: Credential | None = Field(
        None, description="The key for Anthropic. Also read from `ANTHROPIC_API_KEY`."
    )
    anthropic_base_url: Address | None = Field(
        None, description="Another address for Anthropic's API."
    )
    gemini_api_key: Credential | None = Field(
        None, description="The key for Gemini. Also read from `GEMINI_API_KEY`."
    )
    gemini_base_url: Address | None = Field(None, description="Another address for Gemini's API.")
    ollama_url: Address | None = Field(
        None, description="The address of Ollama. Unset: Gatehouse looks for it on this machine."
    )
    ollama_model: str | None = Field(
        None, description="The model that Ollama runs. Unset: the first one that Ollama has."
    )
    context_tokens: int | None = Field(
        None,
        ge=2048,
        description="The size of the model's context window in tokens, in place of the size "
        "that Gatehouse knows, reads in the server's list, or learns when something is too long.",
    )
    timeout_s: float = Field(
        120.0, gt=0, description="Seconds to wait for the next bytes of a response."
    )


class Budgets(Section):
    """`[budgets]`: how much the model may be used. Tokens are input and output together, money is
    in US dollars. A day ends at midnight of `timezone`. The call that crosses a limit is the last.
    """

    run_tokens: int | None = Field(
        None, ge=1, description="Tokens of one request: a message and all the steps that it takes."
    )
    run_usd: float | None = Field(
        None, gt=0, description="Money for one request: a message and all the steps that it takes."
    )
    session_tokens: int | None = Field(
        None, ge=1, description="Tokens of a session, over all its days."
    )
    session_usd: float | None = Field(
        None, gt=0, description="Money for a session, over all its days."
    )
    person_day_tokens: int | None = Field(
        None, ge=1, description="Tokens of each person on each day. A guest counts as one account."
    )
    person_day_usd: float | None = Field(
        None, gt=0, description="Money for each person on each day. A guest counts as one account."
    )
    room_day_tokens: int | None = Field(
        None, ge=1, description="Tokens of each group or channel on each day, with all its threads."
    )
    room_day_usd: float | None = Field(
        None, gt=0, description="Money for each group or channel on each day, with all its threads."
    )
    day_tokens: int | None = Field(
        None, ge=1, description="Tokens of everybody together on each day."
    )
    day_usd: float | None = Field(
        None, gt=0, description="Money for everybody together on each day."
    )


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
        description="Answers to commands, and notices about waiting messages, that one person "
        "gets in a minute.",
    )
    owners: bool = Field(False, description="Whether these limits apply to owners too.")


class Exec(Section):
    """`[tools.exec]`: what shell commands are granted."""

    network: bool = Field(False, description="Whether commands may use the network.")
    env: dict[VariableName, str] = Field(
        default_factory=dict,
        description="Environment variables for commands, in addition to the minimum.",
    )
    max_timeout_s: float = Field(
        600.0, gt=0, description="The longest time in seconds that a command may ask for."
    )
    memory_mb: int = Field(2048, ge=16, description="Memory of one command, in MiB.")
    processes: int = Field(256, ge=1, description="Processes of one command.")
    file_mb: int = Field(
        512, ge=1, description="The largest file that a command may write, in MiB."
    )
    disk_mb: int = Field(
        2048,
        ge=16,
        description="Disk space in MiB that the commands of one session may add together. A "
        "command that goes beyond it is ended.",
    )


class Tools(Section):
    """`[tools]`: where tools may reach and how commands are confined."""

    sandbox: Literal["auto", "bubblewrap", "landlock", "none"] = Field(
        "auto",
        description="What confines commands. `auto` takes bubblewrap or, if that does not work, "
        "Landlock. `none` confines nothing; a person is then asked about each "
        "command that nothing else allows.",
    )
    roots: tuple[Path, ...] = Field(
        (), description="More folders that tools and commands may use, besides the workspace."
    )
    exec: Exec = Field(default_factory=Exec, description="What shell commands are granted.")
    subagents: ChildTools = Field(
        default_factory=ChildTools, description="What subagents may have, and what they share."
    )


class Policy(Section):
    """`[policy]`: what the agent may do without asking."""

    mode: PermissionMode = Field(
        PermissionMode.DEFAULT, description="How much is allowed if no rule decides."
    )
    allow: tuple[RuleText, ...] = Field((), description="Rules for calls that need no approval.")
    ask: tuple[RuleText, ...] = Field(
        (), description="Rules for calls that always need an approval."
    )
    deny: tuple[RuleText, ...] = Field((), description="Rules for calls that are always refused.")


class Approvals(Section):
    """`[approvals]`: who may approve, and how long a card stays open."""

    approvers: tuple[AccountName, ...] = Field(
        (), description="Accounts that may approve besides the owners, as `channel:account:user`."
    )
    expiry_s: float = Field(
        7 * 24 * 3600.0,
        ge=10,
        description="Seconds until a card that nobody answered counts as denied.",
    )


class Queue(Section):
    """`[queue]`: what happens to messages that arrive while a run is active."""

    mode: Literal["collect", "followup", "steer", "interrupt"] = Field(
        "collect",
        description="`collect` joins the messages into one run, `followup` gives each its own "
        "run, `steer` tells them to the current run, `interrupt` ends the current "
        "run and starts a new one.",
    )
    debounce_ms: int = Field(
        700,
        ge=0,
        le=60_000,
        description="Milliseconds without a new message before waiting messages are joined.",
    )
    stale_after_s: float = Field(
        900.0,
        ge=1,
        description="Seconds after which a message that arrives counts as late. One run answers "
        "all late messages of a session.",
    )
    max_waiting: int = Field(
        500,
        ge=1,
        le=10_000,
        description="Messages of one session that may wait. Further messages are not taken; "
        "their sender is told so, once a minute.",
    )


class Sessions(Section):
    """`[sessions]`: how new sessions begin."""

    mode: SessionMode = Field(SessionMode.EDIT, description="The mode of a new session.")


class Workers(Section):
    """`[workers]`: how much this process does at once."""

    turns: int = Field(
        200, ge=1, le=10_000, description="Runs that may work at once in this process."
    )
    lease_ttl_s: float = Field(
        15.0,
        ge=1,
        le=600,
        description="The lease period in seconds. Other processes take over the work of a "
        "crashed one within two lease periods.",
    )


class Scheduler(Section):
    """`[scheduler]`: how a schedule's run is tried again that could not be made."""

    retry_base_delay_ms: int = Field(
        500,
        ge=1,
        le=3_600_000,
        description="The wait before the first retry; it doubles each time.",
    )
    retry_max_delay_ms: int = Field(
        30_000, ge=1, le=86_400_000, description="The longest wait between two tries."
    )
    retry_jitter_ms: int = Field(
        250, ge=0, le=3_600_000, description="Up to so much is added to each wait, at random."
    )
    retry_max_attempts: int = Field(
        0,
        ge=0,
        le=1_000_000,
        description="After so many tries the schedule is paused; 0 tries for ever.",
    )


class Mailboxes(Section):
    """`[mailboxes]`: what agents may write to each other."""

    max_queued: int = Field(
        100, ge=1, le=10_000, description="Messages that may wait for one agent."
    )
    max_hops: int = Field(
        20,
        ge=1,
        le=1_000,
        description="How often agents may pass messages on by themselves: a run that so many "
        "messages led to sends no more.",
    )
    allow: tuple[Annotated[str, Field(pattern=r"^[A-Za-z0-9_]{1,64}:[A-Za-z0-9_]{1,64}$")], ...] = (
        Field(
            (),
            description="Conversations whose agents may write to the agents of another one, each "
            "as `FROM:TO` with the ids of two sessions. Within a conversation all may.",
        )
    )


class Delivery(Section):
    """`[delivery]`: how replies are sent."""

    ambiguous_sends: Literal["mark", "resend"] = Field(
        "mark",
        description="What to do with a message that may or may not have been posted: `mark` it, "
        "or `resend` it and perhaps post it twice.",
    )
    give_up_after_s: float = Field(
        24 * 3600.0,
        gt=0,
        description="Seconds after which Gatehouse stops trying to send a message.",
    )
    file_mb: float = Field(
        50.0, gt=0, le=1_000, description="The largest file that the agent may send, in MB."
    )
    files_per_run: int = Field(
        10, ge=0, le=1_000, description="Files that one run may send. 0 allows none."
    )
    keep_files_s: float = Field(
        7 * 24 * 3600.0,
        ge=3600,
        description="Seconds for which copies of sent files are kept. The links to them on the "
        "page work as long.",
    )


class Settings(Section):
    """Everything that an operator may set."""

    timezone: Annotated[str, AfterValidator(_zone)] = Field(
        "UTC",
        description="The time zone in which the agent tells the time, such as `Europe/Berlin`. "
        "Days of budgets end at its midnight.",
    )
    roles: Annotated[tuple[RoleName, ...], AfterValidator(_roles)] = Field(
        ROLES, description="The parts of the gateway that this process runs. Unset: all of them."
    )
    shutdown_grace_s: float = Field(
        20.0,
        ge=0,
        le=3600,
        description="Seconds that running turns may take to finish after SIGTERM.",
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
    scheduler: Scheduler = Field(default_factory=Scheduler)
    mailboxes: Mailboxes = Field(default_factory=Mailboxes)
    delivery: Delivery = Field(default_factory=Delivery)
    slack: Slack = Field(default_factory=Slack)
    telegram: Telegram = Field(default_factory=Telegram)
