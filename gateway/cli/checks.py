"""The checks of `doctor`: each looks at one thing and names the fix (OPS-5). They change nothing.

A check never raises for what it is there to find; it says so.
"""

import asyncio
import os
import shutil
import stat
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from gateway import wiring
from gateway.config import Config
from gateway.config_exposure import is_loopback, refusal
from gateway.config_keys import leaves
from gateway.config_report import masked_url
from runtime.domain.errors import GatehouseError, InvalidInput, ModelError, Unavailable
from runtime.domain.transcript import UserMessage
from runtime.ports.chat import ChatAdapter
from runtime.ports.model import ModelRequest, ModelResponse

State = Literal["ok", "warn", "fail"]
MODEL_S: Final = 30.0
PLATFORM_S: Final = 20.0
DISK_FAIL: Final = 200 * 1024**2
DISK_WARN: Final = 2 * 1024**3
RELEASED_MS: Final = 1_795_000_000_000
"""A day before this version was made, in milliseconds since the epoch."""


@dataclass(frozen=True, slots=True)
class Check:
    """What a check found; `fix` is empty where nothing needs one."""

    name: str
    state: State
    found: str
    fix: str = ""


async def run(config: Config) -> AsyncIterator[Check]:
    """Every check, in the order in which a person would mend things."""
    yield _config(config)
    for check in (_workspace, _database, _model, _sandbox):
        yield await check(config)
    async for found in _platforms(config):
        yield found
    yield _exposure(config)
    yield _permissions(config)
    yield _disk(config)
    yield _clock()


def _config(config: Config) -> Check:
    if config.file is None:
        found = f"no gatehouse.toml; defaults, and {_settings(config)} from elsewhere"
        return Check("config", "ok", found)
    return Check("config", "ok", f"{config.file}, {_settings(config)}")


def _settings(config: Config) -> str:
    count = len(config.origins)
    return "1 setting" if count == 1 else f"{count} settings"


async def _workspace(config: Config) -> Check:
    root = config.workspace
    try:
        report = await asyncio.to_thread(wiring.prepare_workspace, config, dry_run=True)
    except Unavailable as error:
        return Check("workspace", "fail", str(error), "Make the folder readable.")
    if not root.is_dir():
        return Check("workspace", "warn", f"{root} is not there yet", "Run `gatehouse init`.")
    if not os.access(root, os.W_OK | os.X_OK):
        fix = f"Make it writable for the user that runs the gateway: chown -R USER {root}"
        return Check("workspace", "fail", f"{root} cannot be written", fix)
    if report.made:
        found = f"{root} lacks {', '.join(report.made)}"
        return Check("workspace", "warn", found, "Run `gatehouse init`, or start the gateway.")
    return Check("workspace", "ok", str(root))


async def _database(config: Config) -> Check:
    shown = masked_url(config.database_url)
    try:
        now, newest = await wiring.revisions(config)
    except (Unavailable, InvalidInput) as error:
        return Check("database", "fail", str(error), "See the sentence above; then run it again.")
    if now is None:
        fix = "`gatehouse serve` makes it."
        return Check("database", "warn", f"{shown} is empty", fix)
    if now != newest and newest is not None and now < newest:
        return Check("database", "warn", f"{shown} is at {now}", "Run `gatehouse migrate`.")
    return Check("database", "ok", f"{shown} at {now}")


async def _model(config: Config) -> Check:
    try:
        catalog = await wiring.find_models(config)
    except InvalidInput as error:
        return Check("model", "fail", str(error), "Change it in [models] of gatehouse.toml.")
    name = catalog.default
    if name.startswith("offline:"):
        fix = "Set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY."
        return Check("model", "warn", "no model is configured; the offline one answers", fix)
    request = ModelRequest(
        system="Answer with one word.",
        messages=(UserMessage(text="Say OK."),),
        present="",
        tools=(),
        max_output_tokens=64,
        run_id="run_doctor",
        step=1,
    )
    try:
        async with asyncio.timeout(MODEL_S):
            async for item in catalog.get(name).respond(request):
                if isinstance(item, ModelResponse):
                    return Check("model", "ok", f"{name} answers")
    except (ModelError, TimeoutError) as error:
        why = str(error) or f"no answer within {MODEL_S:g} s"
        return Check("model", "fail", f"{name}: {why}", "Check the key, the name and the network.")
    finally:
        await catalog.close()
    return Check("model", "fail", f"{name} gave no answer", "Try another model.")


async def _sandbox(config: Config) -> Check:
    sandbox = await wiring.choose_sandbox(config, wiring.system_clock())
    if sandbox.name == "refused":
        fix = "Install bubblewrap: apt install bubblewrap"
        return Check("sandbox", "fail", sandbox.describe(), fix)
    if sandbox.name == "none":
        fix = 'Set tools.sandbox = "auto".'
        return Check("sandbox", "warn", sandbox.describe(), fix)
    return Check("sandbox", "ok", sandbox.describe())


async def _platforms(config: Config) -> AsyncIterator[Check]:
    slack, bot = config.settings.slack, config.settings.telegram
    if (slack.bot_token is None) != (slack.app_token is None):
        missing = "SLACK_APP_TOKEN" if slack.app_token is None else "SLACK_BOT_TOKEN"
        yield Check("slack", "fail", "one of its two tokens is missing", f"Set {missing}.")
    elif slack.bot_token is None:
        yield Check("slack", "ok", "not configured")
    if bot.token is None:
        yield Check("telegram", "ok", "not configured")
    for adapter in wiring.chat_adapters(config, wiring.system_clock()):
        yield await _platform(adapter)


async def _platform(adapter: ChatAdapter) -> Check:
    try:
        async with asyncio.timeout(PLATFORM_S):
            await adapter.connect()
    except (GatehouseError, TimeoutError) as error:
        why = str(error) or f"no answer within {PLATFORM_S:g} s"
        fix = "Check the token and the network."
        if adapter.channel == "slack":
            fix = "Check the tokens; `gatehouse slack manifest` prints the scopes it needs."
        return Check(adapter.channel, "fail", why, fix)
    finally:
        await adapter.close()
    return Check(adapter.channel, "ok", f"connected as {adapter.account}")


def _exposure(config: Config) -> Check:
    http = config.settings.http
    refused = refusal(config)
    if refused is not None:
        return Check("exposure", "fail", refused, "See the sentence above.")
    if is_loopback(http.host):
        return Check("exposure", "ok", f"{http.host}: this machine only")
    fix = "Put a proxy with TLS in front of it, or listen on 127.0.0.1."
    return Check("exposure", "warn", f"{http.host} can be reached by others, without TLS", fix)


def _permissions(config: Config) -> Check:
    private = [config.home / "secrets.toml", config.home / "gatehouse.db"]
    http = config.settings.http
    private += [one for one in (http.admin_token_file, http.read_only_token_file) if one]
    if config.file is not None and _holds_secrets(config, config.file):
        private.append(config.file)
    open_ones = [path for path in private if _open_to_others(path)]
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


def _open_to_others(path: Path) -> bool:
    try:
        return bool(stat.S_IMODE(path.stat().st_mode) & 0o077)
    except OSError:
        return False


def _disk(config: Config) -> Check:
    place = next(path for path in (config.home, *config.home.parents) if path.exists())
    free = shutil.disk_usage(place).free
    found = f"{free / 1024**3:.1f} GiB free in {place}"
    if free < DISK_FAIL:
        return Check("disk", "fail", found, "Free some space: writes will fail soon.")
    if free < DISK_WARN:
        return Check("disk", "warn", found, "Free some space before it runs out.")
    return Check("disk", "ok", found)


def _clock() -> Check:
    now = wiring.system_clock().now_ms()
    if now < RELEASED_MS:
        fix = "Set the clock: timedatectl set-ntp true"
        return Check("clock", "fail", "it is before this version was made", fix)
    synchronised = Path("/run/systemd/timesync/synchronized")
    if synchronised.parent.is_dir() and not synchronised.exists():
        fix = "timedatectl set-ntp true"
        return Check("clock", "warn", "systemd has not synchronised it", fix)
    return Check("clock", "ok", "plausible")
