"""The checks of `doctor`: each looks at one thing and names the fix (OPS-5). They change nothing.

A check never raises for what it is there to find; it says so.
"""

import asyncio
import os
import shutil
import stat
from collections.abc import AsyncIterator, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Final

from pydantic import SecretStr

from gateway import home_socket, home_token, wiring, workspaces
from gateway.addresses import is_loopback
from gateway.agent_type_files import find
from gateway.cli.answers import Refused, Unreachable
from gateway.cli.check_result import Check
from gateway.cli.checks_platforms import platforms
from gateway.cli.client import GatewayClient, JsonObject
from gateway.config import SECRETS, Config, tokens_of
from gateway.config_keys import leaves
from gateway.config_report import masked_url
from runtime.domain.counts import counted
from runtime.domain.errors import InvalidInput, ModelCause, ModelError, Unavailable
from runtime.domain.json_fields import objects_of
from runtime.domain.schemas import Schema, Standing
from runtime.domain.tools import ToolSpec
from runtime.domain.transcript import UserMessage
from runtime.ports.model import ModelRequest, ModelResponse
from runtime.ports.sandbox import Sandbox

MODEL_S: Final = 30.0
SHORT: Final = 16
"""Characters of a token that somebody could guess who may try as often as they like."""
DISK_FAIL: Final = 200 * 1024**2
DISK_WARN: Final = 2 * 1024**3
RELEASED_MS: Final = 1_795_000_000_000
"""A day before this version was made, in milliseconds since the epoch."""
SYNCHRONISED: Final = Path("/run/systemd/timesync/synchronized")
"""timesyncd has the folder while it runs, and makes the file once it was told the time."""
_ABOUT: Final = "The checks below are about the settings of this shell."


async def run(config: Config) -> AsyncIterator[Check]:
    """Every check, in the order in which a person would mend things."""
    yield await _gateway(config)
    yield _config(config)
    yield _home(config)
    yield proxy()
    for check in (_workspace, _database, _model, _sandbox, _subagents):
        yield await check(config)
    async for found in platforms(config):
        yield found
    yield _exposure(config)
    yield _permissions(config)
    yield _disk(config)
    yield clock(wiring.system_clock().now_ms())


async def _gateway(config: Config) -> Check:
    """Whether a gateway of this home runs, and what it has that this shell's settings have not.

    One that was started from another shell has the variables that are set only there.
    """
    home = config.home
    if not await asyncio.to_thread(home_socket.live, home):
        return Check("gateway", "ok", f"no gateway of {home} is running. {_ABOUT}")
    found = f"a gateway of {home} is running."
    token = home_token.read(home)
    try:
        async with GatewayClient("", SecretStr(token) if token else None, home=home) as client:
            status, runtime = await client.get("/v1/status"), await client.get("/v1/runtime")
    except (Refused, Unreachable) as error:
        return Check("gateway", "ok", f"{found} It does not say what it has: {error}. {_ABOUT}")
    more = [*_platforms_elsewhere(config, status), *await _model_elsewhere(config, runtime)]
    if not more:
        return Check("gateway", "ok", f"{found} {_ABOUT}")
    lacks = f"It has settings that this shell does not have: {', '.join(more)}."
    fix = f"Put them into {home / SECRETS}, or export them in this shell too."
    return Check("gateway", "warn", f"{found} {lacks} {_ABOUT}", fix)


def _platforms_elsewhere(config: Config, status: JsonObject) -> list[str]:
    slack, telegram = config.settings.slack, config.settings.telegram
    own = {
        "slack": slack.bot_token is not None or bool(slack.workspaces),
        "telegram": telegram.token is not None or bool(telegram.bots),
    }
    served = dict.fromkeys(str(one.get("channel")) for one in objects_of(status, "adapters"))
    return [name.capitalize() for name in served if not own.get(name, True)]


async def _model_elsewhere(config: Config, runtime: JsonObject) -> list[str]:
    served = runtime.get("model")
    try:
        catalog = await wiring.find_models(config)
    except InvalidInput:
        return []
    await catalog.close()
    return [] if served == catalog.default else [f"the model {served}"]


def _config(config: Config) -> Check:
    if config.file is None:
        found = f"no gatehouse.toml; defaults, and {_settings(config)} from elsewhere"
        return Check("config", "ok", found)
    return Check("config", "ok", f"{config.file}, {_settings(config)}")


def _settings(config: Config) -> str:
    return counted(len(config.origins), "setting")


def _home(config: Config) -> Check:
    home = config.home
    fix = "Name another folder in GATEHOUSE_HOME, or let this user write there."
    if problem := _unwritable(home):
        return Check("home", "fail", problem, fix)
    if not home.is_dir():
        return Check("home", "warn", f"{home} is not there yet", "Run `gatehouse init`.")
    return Check("home", "ok", str(home))


def proxy() -> Check:
    """Which proxies of the environment are followed, and what of them cannot be (MDL-8)."""
    if problems := wiring.proxy_problems():
        fix = "Change the variable where it is set. `gatehouse serve` does not start with it."
        return Check("proxy", "fail", "\n".join(problems), fix)
    names = ", ".join(wiring.proxy_names())
    if not names:
        return Check("proxy", "ok", "none is set")
    if unread := wiring.unread_exceptions():
        found = f"{names}; NO_PROXY names no hosts with {', '.join(unread)}"
        fix = "Write each host, or a domain with all that is below it, as in .example.org."
        return Check("proxy", "warn", found, fix)
    return Check("proxy", "ok", f"{names}, except for what NO_PROXY names")


def _unwritable(folder: Path) -> str:
    """Why a folder cannot be written, or cannot be made; empty where it can."""
    nearest = _there(folder)
    if not nearest.is_dir():
        return f"{nearest} is a file where a folder is needed"
    if os.access(nearest, os.W_OK | os.X_OK):
        return ""
    if nearest == folder:
        return f"{folder} cannot be written by this user"
    return f"{folder} cannot be made: {nearest} cannot be written by this user"


async def _workspace(config: Config) -> Check:
    root = config.workspace
    try:
        report = await asyncio.to_thread(workspaces.prepare_workspace, config, dry_run=True)
    except Unavailable as error:
        return Check("workspace", "fail", str(error), "Make the folder readable.")
    if problem := _unwritable(root):
        fix = "Name another folder in workspace.path, or let this user write there."
        return Check("workspace", "fail", problem, fix)
    if not root.is_dir():
        return Check("workspace", "warn", f"{root} is not there yet", "Run `gatehouse init`.")
    if report.made:
        found = f"{root} lacks {', '.join(report.made)}"
        return Check("workspace", "warn", found, "Run `gatehouse init`, or start the gateway.")
    skipped = await workspaces.open_workspace(config).problems()
    if skipped:
        fix = "Fix what is named. Until then the agent works without it."
        return Check("workspace", "warn", "\n".join(skipped), fix)
    return Check("workspace", "ok", str(root))


async def _database(config: Config) -> Check:
    shown = masked_url(config.database_url)
    try:
        await asyncio.to_thread(wiring.examine_database, config)
        found = await wiring.schema_of(config)
    except (Unavailable, InvalidInput) as error:
        return Check("database", "fail", str(error), "See the sentence above; then run it again.")
    return schema(shown, found)


def schema(shown: str, found: Schema) -> Check:
    """What the schema of the database `shown` is to this version."""
    match found.standing:
        case Standing.EMPTY:
            return Check("database", "warn", f"{shown} is empty", "`gatehouse serve` makes it.")
        case Standing.BEHIND:
            behind = f"{shown} is at {found.revision}, this version makes {found.head}"
            return Check("database", "warn", behind, "Run `gatehouse migrate`.")
        case Standing.TOO_NEW:
            new = f"{shown} is at {found.revision}, which this version ({found.head}) cannot use"
            return Check("database", "fail", new, "Install the newer version here too.")
        case Standing.UNRELEASED:
            old = f"{shown} is at {found.revision}, from before the first release"
            fix = "Name another database in database.url, or move this one away."
            return Check("database", "fail", old, fix)
        case Standing.AHEAD:
            ahead = f"{shown} is at {found.revision}, ahead of this version ({found.head})"
            return Check("database", "warn", ahead, "Finish the upgrade: install it here too.")
    return Check("database", "ok", f"{shown} at {found.revision}")


_LOOK: Final = ToolSpec(
    name="read_file",
    description="Read a file.",
    parameters={"type": "object", "properties": {"path": {"type": "string"}}},
)
_MODEL_FIXES: Final[dict[ModelCause, str]] = {
    "unreached": "Check that the server runs, its address and the network.",
    "timeout": "Check that the server is not busy loading a model, or raise models.timeout_s.",
    "key": "Check the key.",
    "credit": "Add credit to the account, or choose another model.",
    "unknown_model": "Name a model that the server has: models.default in gatehouse.toml.",
    "not_a_model": "Check the address. OPENAI_BASE_URL ends in /v1 for most servers.",
    "busy": "Wait, or raise the limit with the provider.",
    "library": "Install the provider's library.",
}


async def _model(config: Config) -> Check:
    try:
        catalog = await wiring.find_models(config)
    except InvalidInput as error:
        return Check("model", "fail", str(error), "Change it in [models] of gatehouse.toml.")
    name = catalog.default
    if name.startswith("offline:"):
        fix = "Set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY."
        return Check("model", "warn", "no model is configured; the offline one answers", fix)
    unlisted = [said] if (said := catalog.settings.unlisted) else []
    # As a turn asks: with instructions, a tool and streamed.
    request = ModelRequest(
        system="Answer with one word.",
        messages=(UserMessage(text="Say OK."),),
        present="",
        tools=(_LOOK,),
        max_output_tokens=64,
        run_id="run_doctor",
        step=1,
    )
    try:
        async with asyncio.timeout(MODEL_S):
            async for item in catalog.get(name).respond(request):
                if isinstance(item, ModelResponse):
                    return _answered(item, unlisted)
    except TimeoutError:
        found = "\n".join((f"{name}: no answer within {MODEL_S:g} s", *unlisted))
        return Check("model", "fail", found, _MODEL_FIXES["timeout"])
    except ModelError as error:
        fix = _MODEL_FIXES.get(error.cause, "Check the key, the name and the network.")
        return Check("model", "fail", "\n".join((str(error), *unlisted)), fix)
    finally:
        await catalog.close()
    return Check("model", "fail", f"{name} gave no answer", "Try another model.")


def _answered(response: ModelResponse, unlisted: Sequence[str]) -> Check:
    found = "\n".join((f"{response.model} answers", *unlisted))
    if "tools" in response.missing:
        lacks = f"{found}\nIt takes no tools, so the agent can only talk with it."
        return Check("model", "warn", lacks, "Choose a model with tools, or switch them on there.")
    return Check("model", "ok", found)


async def _sandbox(config: Config) -> Check:
    chosen = await wiring.choose_sandbox(config, wiring.system_clock())
    return sandbox(chosen, config.settings.tools.sandbox)


def sandbox(chosen: Sandbox, setting: str) -> Check:
    """The check of what the setting of the sandbox chose."""
    if chosen.name == "refused":
        fix = "Install bubblewrap (apt install bubblewrap), or use Linux 6.2 with Landlock."
        if setting != "auto":
            fix = f'{fix} Or set tools.sandbox = "auto", which tries both.'
        return Check("sandbox", "fail", chosen.describe(), fix)
    if chosen.name == "none":
        fix = 'Set tools.sandbox = "auto".'
        return Check("sandbox", "warn", chosen.describe(), fix)
    return Check("sandbox", "ok", chosen.describe())


async def _subagents(config: Config) -> Check:
    """Which definitions cannot be used as they are, and why (SUB-2). A model that is wrong is
    another check's."""
    try:
        catalog = await wiring.find_models(config)
    except InvalidInput:
        return Check(
            "subagents", "warn", "not checked, because no model works", "Fix the model first."
        )
    try:
        found = await asyncio.to_thread(find, config, catalog)
    except Unavailable as error:
        return Check("subagents", "fail", str(error), "Make the folder readable.")
    finally:
        await catalog.close()
    problems = found.types.problems
    if problems:
        fix = "Change them; `gatehouse agents types validate FILE` checks one."
        return Check("subagents", "warn", "\n".join(problems), fix)
    usable = [one for one, reason in found.types.known.items() if not reason]
    return Check("subagents", "ok", counted(len(usable), "type"))


def _exposure(config: Config) -> Check:
    http = config.settings.http
    short = [one for group in astuple(tokens_of(config)) for one in group if len(one) < SHORT]
    if short:
        fix = "Make longer ones: openssl rand -hex 32"
        return Check("exposure", "warn", f"short: {counted(len(short), 'token')}", fix)
    if is_loopback(http.host):
        return Check("exposure", "ok", f"{http.host}: this machine only, and with a token")
    if http.public_url is not None and http.public_url.startswith("https:"):
        return Check("exposure", "ok", f"{http.host}, for people at {http.public_url}")
    fix = "Put a proxy with TLS in front of it and name it in http.public_url."
    return Check("exposure", "warn", f"{http.host} can be reached by others, without TLS", fix)


def _permissions(config: Config) -> Check:
    private = [config.home / name for name in ("secrets.toml", "gatehouse.db", "token", "run")]
    http = config.settings.http
    private += [one for one in (http.admin_token_file, http.read_only_token_file) if one]
    if config.file is not None and _holds_secrets(config, config.file):
        private.append(config.file)
    open_ones = [path for path in private if _lets(path, 0o077)]
    if _lets(config.home, 0o022):
        fix = f"chmod 700 {config.home}"
        return Check("permissions", "fail", f"others may write in {config.home}", fix)
    if open_ones:
        found = ", ".join(str(path) for path in open_ones)
        fix = f"chmod 600 {' '.join(str(path) for path in open_ones)}"
        return Check("permissions", "warn", f"others may read {found}", fix)
    return Check("permissions", "ok", "nobody else reads the gateway's secrets")


def _holds_secrets(config: Config, file: Path) -> bool:
    secret = {path for path, info in leaves() if "SecretStr" in str(info.annotation)}
    return any(
        key in secret and origin.startswith(str(file)) for key, origin in config.origins.items()
    )


def _lets(path: Path, others: int) -> bool:
    """Whether a path has any of these bits of a mode; what cannot be looked at has none."""
    try:
        return bool(stat.S_IMODE(path.stat().st_mode) & others)
    except OSError:
        return False


def _disk(config: Config) -> Check:
    """The least room of the disks that are written to."""
    written = [config.home, config.workspace]
    try:
        file = wiring.database_file(config)
    except InvalidInput:
        # What is wrong with its address is another check's.
        file = None
    written += [] if file is None else [file.parent]
    places = {_there(path) for path in written}
    free, place = min((shutil.disk_usage(path).free, path) for path in places)
    found = f"{free / 1024**3:.1f} GiB free in {place}"
    if free < DISK_FAIL:
        return Check("disk", "fail", found, "Free some space: writes will fail soon.")
    if free < DISK_WARN:
        return Check("disk", "warn", found, "Free some space before it runs out.")
    return Check("disk", "ok", found)


def _there(path: Path) -> Path:
    return next(one for one in (path, *path.parents) if one.exists())


def clock(now_ms: int, *, synchronised: Path = SYNCHRONISED) -> Check:
    """Whether the machine's time can be right: schedules, logins and TLS depend on it."""
    if now_ms < RELEASED_MS:
        fix = "Set the clock: timedatectl set-ntp true"
        return Check("clock", "fail", "it is before this version was made", fix)
    if synchronised.parent.is_dir() and not synchronised.exists():
        fix = "timedatectl set-ntp true; `timedatectl timesync-status` says what fails"
        return Check("clock", "warn", "systemd has not synchronised it", fix)
    return Check("clock", "ok", "plausible")
